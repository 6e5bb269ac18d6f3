internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// A reader of a YOLO data set: the class names and the dataset split in data.yaml, and one text file per photo.
///
/// A list of classes, such as classes.txt, can replace data.yaml.
///
/// A line of a text file is `class cx cy width height` or `class x1 y1 x2 y2 …`, in fractions of the photo. The second
/// form is a polygon of three or more points, which becomes its bounding box.
struct YOLOAnnotations {
    private let file: URL
    private let root: URL
    /// The folder that the relative paths in data.yaml start at.
    private let base: URL
    /// The folder of the photos to read; nil for all photos of the data set.
    private let photoFolder: URL?
    /// The part of the data set to read; nil for all parts.
    private let part: DatasetPart?
    private let yaml: DataYAML
    private var names: [Int: String] { yaml.names }
    private var textFiles: YOLOTextFiles { YOLOTextFiles(root: root) }

    init(_ file: URL, photos: URL?, part: DatasetPart?) throws(BoxAnnotationsError) {
        (self.file, photoFolder, self.part) = (file, photos, part)
        let folder = file.absoluteURL.deletingLastPathComponent()
        // LabelImg writes the list beside the text files, which may be in the folder labels.
        let isInLabels = file.isClassList && folder.lastPathComponent == "labels"
        root = isInLabels ? folder.deletingLastPathComponent() : folder
        yaml = try file.isClassList ? DataYAML(listOfClasses: file) : DataYAML(file)
        base = Self.base(of: yaml, root: root)
        guard !yaml.hasKeypoints else { throw .unsupported(file: file, found: "keypoints (kpt_shape)") }
    }

    func contents() throws -> AnnotationContents {
        var contents = AnnotationContents(labels: Array(names.values), photos: [])
        var unique: Set<String> = []
        for (_, name) in names.sorted(by: { $0.key < $1.key }) where !unique.insert(name).inserted {
            contents.warnings.add(.equalNames, name)
        }
        var warnings = yaml.warnings
        if photoFolder == nil, yaml.parts.isEmpty, yaml.hasMisspeltPart {
            warnings.append(
                "all photos are read, including those for validation and testing, because no key names the training photos; correct the key"
            )
        }
        if !warnings.isEmpty { contents.warnings.note(.keys, warnings.joined(separator: "; ")) }
        if photoFolder == nil, !yaml.parts.isEmpty {
            try addParts(to: &contents)
        } else {
            try addFolder(to: &contents)
        }
        return contents
    }

    /// Adds the photos that the keys `train`, `val` and `test` name.
    private func addParts(to contents: inout AnnotationContents) throws {
        contents.availableParts = Set(yaml.parts.keys)
        var seen: [[UInt8]: (photo: URL, part: DatasetPart)] = [:]
        var (coverages, names): ([TextFileCoverage], [String]) = ([], [])
        var emptyLists: [URL] = []
        for part in try selectedParts() {
            let locations = try (yaml.parts[part] ?? []).map { try location($0, key: part.yamlKey) }
            contents.folders += locations.filter { FileStatus($0)?.isFile == true }.map {
                $0.deletingLastPathComponent()
            }
            names.append("\(part.yamlKey) (\(locations.map(\.displayPath).joined(separator: ", ")))")
            for source in locations {
                var coverage = TextFileCoverage(source: source, part: part)
                let found = try photos(source)
                if found.isEmpty { emptyLists.append(source) }
                for photo in found {
                    let path = Array(photo.standardizedFileURL.displayPath.utf8)
                    if let first = seen[path] {
                        if first.part != part, contents.sharedPhotos[first.photo] == nil {
                            contents.sharedPhotos[first.photo] = part
                        }
                        continue
                    }
                    seen[path] = (photo, part)
                    let candidates = textFiles.candidates(of: photo)
                    let text = try YOLOTextFiles.existing(candidates, of: photo)
                    // The photos of a list can be missing.
                    if text != nil || FileStatus(photo) != nil { coverage.add(text, candidates) }
                    contents.photos.append(try statedPhoto(photo, text))
                    contents.parts[photo] = part
                }
                coverages.append(coverage)
            }
        }
        contents.folders.append(base)
        contents.warnings.note(.parts, "read the photos of \(listed(names))")
        if let list = emptyLists.first {
            guard !contents.photos.isEmpty else {
                throw BoxAnnotationsError.invalidEntry(
                    file: list, entry: "", found: "the list is empty", expected: "one path of a photo per line")
            }
            let paths = emptyLists.map(\.displayPath).joined(separator: ", ")
            contents.warnings.note(.emptyLists, "\(counted(emptyLists.count, "list")) without photos (\(paths))")
        }
        try Self.check(coverages, &contents.warnings)
    }

    /// Returns the parts to read: all, or the requested part, or else the nearest part before it.
    ///
    /// The test set of an export without a test set is its validation set, and a separate test set may only have the key `train`.
    private func selectedParts() throws(BoxAnnotationsError) -> [DatasetPart] {
        let available = DatasetPart.allCases.filter { yaml.parts[$0] != nil }
        guard let part else { return available }
        // The requested part, and the parts that stand for it.
        let accepted = DatasetPart.allCases.prefix { $0.rawValue <= part.rawValue }
        guard let nearest = available.last(where: accepted.contains) else {
            let missing = Array(accepted.reversed())
            let keys = missing.filter { yaml.emptyKeys[$0] == nil }.map(\.yamlKey)
            var problems = missing.compactMap { yaml.emptyKeys[$0] }.map { "\($0) names no path" }
            if !keys.isEmpty {
                problems.append("there is no key \(keys.joined(separator: " or "))" + yaml.misspelt(keys))
            }
            let conjunction = yaml.misspelt(keys).isEmpty ? ", but" : " and"
            let other = available[0].yamlKey + (keys.isEmpty ? " does" : "")
            throw .invalidEntry(
                file: file, entry: "",
                found: "\(problems.joined(separator: ", and "))\(conjunction) \(other)",
                expected: "the photos of the \(part) set, such as \(part.yamlKey): images/\(part.yamlKey)")
        }
        return [nearest]
    }

    /// Returns the folder that the relative paths in data.yaml start at.
    ///
    /// It is `path`, or the folder of data.yaml if `path` does not exist, because `path` is often of another computer.
    private static func base(of yaml: DataYAML, root: URL) -> URL {
        guard let path = yaml.path else { return root }
        let candidates = spellings(path).map { $0.hasPrefix("/") ? URL(filePath: $0) : root.appending(path: $0) }
        return candidates.first { FileStatus($0)?.isFolder == true } ?? root
    }

    /// Returns a path as written, then with the separators of Windows replaced or the home folder inserted for "~".
    private static func spellings(_ path: String) -> [String] {
        var spellings = [path]
        if path.contains("\\") { spellings.append(path.replacing("\\", with: "/")) }
        if path.hasPrefix("~/") {
            spellings.append(
                FileManager.default.homeDirectoryForCurrentUser.appending(path: path.dropFirst(2)).displayPath)
        }
        return spellings
    }

    /// Returns the location of a folder or list that data.yaml names; as in Ultralytics, a wrong "../" at its start is ignored.
    private func location(_ name: String, key: String) throws(BoxAnnotationsError) -> URL {
        var candidates: [URL] = []
        for name in Self.spellings(name) {
            candidates.append(name.hasPrefix("/") ? URL(filePath: name) : base.appending(path: name))
            if name.hasPrefix("../") { candidates.append(base.appending(path: name.dropFirst(3))) }
        }
        candidates = candidates.map(\.standardizedFileURL)
        guard let location = candidates.first(where: { FileStatus($0) != nil }) else {
            let paths = candidates.map(\.displayPath)
            var expected = "a folder of photos, or a text file with a list of photos"
            if name.contains("*") { expected += "; data.yaml cannot have wildcards" }
            if let url = [name, yaml.path ?? ""].first(where: { $0.contains("://") }) {
                throw .invalidEntry(
                    file: file, entry: url == name ? key : "path", found: "\(url) is a URL",
                    expected: "\(expected); download the data set first")
            }
            throw .invalidEntry(
                file: file, entry: key, found: "there is no \(paths.joined(separator: ", and no "))", expected: expected
            )
        }
        return location
    }

    /// Returns the photos of a folder or of a text file with one path per line.
    ///
    /// Relative paths start at the folder of the list, or else at the folder of the data set.
    private func photos(_ source: URL) throws -> [URL] {
        if FileStatus(source)?.isFolder == true { return try ImageFolder.images(in: source) }
        let finder = PhotoFinder(folders: [source.deletingLastPathComponent(), base])
        var photos: [URL] = []
        let lines = try annotationText(source).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let name = line.trimmingCharacters(in: .whitespaces)
            guard PhotoFinder.isValid(name) else { continue }
            let spellings = Self.spellings(name)
            let photo = spellings.lazy.compactMap { finder.existing($0) }.first
            if photo == nil, let folder = spellings.lazy.compactMap({ finder.folder($0) }).first {
                throw BoxAnnotationsError.invalidEntry(
                    file: source, entry: "line \(index + 1)", found: "the list names the folder \(folder.displayPath)",
                    expected: "the path of a photo; data.yaml can name the folder instead of the list")
            }
            photos.append(photo ?? finder.url(name))
        }
        return photos
    }

    /// Adds the photos of the folder.
    private func addFolder(to contents: inout AnnotationContents) throws {
        let folder = photoFolder ?? root
        contents.folders = [folder]
        let paths = Self.distinct(
            try ImageFolder.imagePaths(in: folder) { Self.followsLink($0, in: folder) }, in: folder)
        let hasImageFolder = photoFolder == nil && paths.contains { Self.imageFolderIndex($0) != nil }
        var used: Set<String> = []
        var coverage = TextFileCoverage(source: folder)
        var splitNames: Set<String> = []
        var splitPaths: [DatasetPart: String] = [:]
        for path in paths {
            let url = folder.appending(path: path)
            let candidates = textFiles.candidates(of: url, path: path)
            let text = try YOLOTextFiles.existing(candidates, of: url)
            guard text != nil || !hasImageFolder || Self.imageFolderIndex(path) != nil else {
                contents.warnings.add(.unusedPhoto, path)
                continue
            }
            coverage.add(text, candidates)
            if let text { used.insert(Self.pathWithoutExtension(text)) }
            let folders = path.split(separator: "/").dropLast()
            for (index, name) in folders.enumerated() {
                guard let part = DatasetPart(folder: name) else { continue }
                splitNames.insert(name.lowercased())
                splitPaths[part] = splitPaths[part] ?? folders[...index].joined(separator: "/")
            }
            contents.photos.append(try statedPhoto(url, text))
        }
        try Self.check([coverage], &contents.warnings)
        guard photoFolder == nil else { return }
        if splitPaths.count > 1 {
            contents.splitFolders = splitPaths.mapValues { root.appending(path: $0) }
            noteSplits(splitNames.sorted(by: precedes), splitPaths, &contents.warnings)
        }
        // Text files beside photos may be anything, but those in a folder labels have boxes.
        for path in try annotationPaths(in: root, extensions: ["txt"]) where isUnused(path, used) {
            contents.warnings.add(.unusedTextFile, path)
        }
    }

    /// Notes folders of several parts, which are read together because the file names no parts.
    /// - Parameter paths: The path of the first folder of each part.
    private func noteSplits(_ names: [String], _ paths: [DatasetPart: String], _ warnings: inout AnnotationWarnings) {
        let keys = paths.sorted { $0.key.rawValue < $1.key.rawValue }.map { part, path in
            // Other paths start at the key path.
            "\(part.yamlKey): \(yaml.path == nil ? path : root.appending(path: path).displayPath)"
        }
        let fix =
            file.isClassList
            ? "write data.yaml with the names of the classes and the paths of the photos"
            : "add the paths of the photos"
        warnings.note(
            .severalSplits,
            "the file does not say which photos are for training, so the photos in the folders \(listed(names)) are read together. To "
                + "separate them, \(fix), such as \(listed(keys))")
    }

    /// Whether to follow a link in the folder of the photos: `images`, the same in the folder of a part or the reverse, or Darknet's folder.
    ///
    /// A link to the folder itself or above would form a cycle, and the photos of another folder `images` are read there.
    private static func followsLink(_ path: String, in folder: URL) -> Bool {
        let names = path.split(separator: "/")
        guard names.count <= 2, names.contains("images") || names == ["obj_train_data"] else { return false }
        let link = folder.appending(path: path)
        guard !folder.isInside(link) else { return false }
        return !(link.isInside(folder) && link.resolvingSymlinksInPath().lastPathComponent == "images")
    }

    /// Returns the paths without those of a photo that has another path through a link; those in a folder `images` are preferred.
    private static func distinct(_ paths: [String], in folder: URL) -> [String] {
        var targets: [Substring: String] = [:]
        func location(_ path: String) -> String {
            let name = path.lastIndex(of: "/").map { path[$0...] } ?? path[...]
            let parent = path.dropLast(name.count)
            let target =
                targets[parent]
                ?? folder.appending(path: String(parent)).resolvingSymlinksInPath().standardizedFileURL.displayPath
            targets[parent] = target
            return "\(target)/\(name)"
        }
        var locations: Set<String> = []
        let inImages = paths.filter { imageFolderIndex($0) != nil }
        let others = paths.filter { imageFolderIndex($0) == nil }
        let distinct = Set((inImages + others).filter { locations.insert(location($0)).inserted })
        return paths.filter(distinct.contains)
    }

    /// Returns a photo with the boxes of its text file.
    private func statedPhoto(_ photo: URL, _ text: URL?) throws(BoxAnnotationsError) -> StatedPhoto {
        var stated = StatedPhoto(url: photo, source: text ?? file, isInPixels: false)
        if let text { stated.boxes = try boxes(text) }
        return stated
    }

    private func isUnused(_ path: String, _ used: Set<String>) -> Bool {
        let file = root.appending(path: path)
        return path.split(separator: "/").dropLast().contains("labels") && !file.isClassList
            && !used.contains(Self.pathWithoutExtension(file))
    }

    /// Returns the path that a text file has in common with spellings of its extension, because some file systems ignore case.
    private static func pathWithoutExtension(_ file: URL) -> String {
        file.standardizedFileURL.deletingPathExtension().displayPath
    }

    /// Returns the index of the last folder `images` in a path.
    private static func imageFolderIndex(_ path: String) -> Int? {
        path.split(separator: "/").dropLast().lastIndex(of: "images")
    }

    /// Throws an error if none of the photos has a text file, and notes folders in which at least half of the photos have none.
    private static func check(
        _ coverages: [TextFileCoverage], _ warnings: inout AnnotationWarnings
    ) throws(BoxAnnotationsError) {
        let incomplete = coverages.filter { $0.missing > 0 }
        if let first = incomplete.first, let folder = first.textFolder,
            coverages.allSatisfy({ $0.missing == $0.photos })
        {
            throw .missingTextFiles(folder: first.source, photos: first.photos, textFolder: folder)
        }
        let notes = incomplete.filter { 2 * $0.missing >= $0.photos }.map(\.note)
        if !notes.isEmpty { warnings.note(.missingTextFiles, notes.joined(separator: "; ")) }
    }

    /// The class numbers with a name in an error, such as "class 0 to 4" or "class 0 or 2".
    private var classNumbers: String {
        let numbers = names.keys.sorted()
        guard let first = numbers.first, let last = numbers.last, numbers.count > 1 else {
            return "class \(numbers.first ?? 0)"
        }
        if numbers.count > 2, last - first == numbers.count - 1 { return "class \(first) to \(last)" }
        let limit = 20
        if numbers.count > limit {
            return "one of the \(numbers.count) classes of \(file.lastPathComponent), \(first) to \(last) with gaps"
        }
        return "class \(numbers.dropLast().map(String.init).joined(separator: ", ")) or \(last)"
    }

    /// The description of a class number in an error about a number that cannot be one, such as "a whole number from 0 to 4".
    private var wholeClassNumber: String {
        let isContiguous = names.count > 1 && names.keys.allSatisfy { $0 < names.count }
        return isContiguous ? "a whole number from 0 to \(names.count - 1)" : "a whole number: \(classNumbers)"
    }

    /// Reads the boxes in a text file.
    private func boxes(_ url: URL) throws(BoxAnnotationsError) -> [StatedBox] {
        var boxes: [StatedBox] = []
        let lines = try annotationText(url).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        for (index, line) in lines.enumerated() {
            let columns = line.split(whereSeparator: \.isWhitespace)
            guard let first = columns.first else { continue }
            let entry = "line \(index + 1)"
            let numbers = columns.dropFirst().compactMap { Double($0) }
            func fail(_ found: String) -> BoxAnnotationsError {
                .invalidEntry(
                    file: url, entry: entry, found: found,
                    expected: "a class number, then centre x, centre y, width and height, or a polygon")
            }
            guard let number = Double(first), numbers.count == columns.count - 1 else {
                let invalid = columns.first { Double($0) == nil } ?? first
                throw fail("\"\(invalid.prefix(40))\" is not a number")
            }
            guard let id = Int(exactly: number), id >= 0 else {
                throw .invalidEntry(
                    file: url, entry: entry, found: "found the class \(first.prefix(40))",
                    expected: wholeClassNumber)
            }
            guard let label = names[id] else {
                throw .unknownClass(file: url, entry: entry, id: String(first.prefix(40)), known: classNumbers)
            }
            switch numbers.count {
            case 4:
                boxes.append(
                    StatedBox(
                        label: label, x: numbers[0] - numbers[2] / 2, y: numbers[1] - numbers[3] / 2,
                        width: numbers[2], height: numbers[3], entry: entry))
            case 5: throw .hasConfidence(file: url, entry: entry)
            case 6... where numbers.count.isMultiple(of: 2):
                boxes.append(boundingBox(numbers, label: label, entry: entry))
            default: throw fail("found \(counted(numbers.count, "number")) after the class")
            }
        }
        return boxes
    }

    private func boundingBox(_ polygon: [Double], label: String, entry: String) -> StatedBox {
        let x = stride(from: 0, to: polygon.count, by: 2).map { polygon[$0] }
        let y = stride(from: 1, to: polygon.count, by: 2).map { polygon[$0] }
        // The minimum and maximum ignore NaN, depending on its position.
        guard polygon.allSatisfy(\.isFinite), let left = x.min(), let right = x.max(), let top = y.min(),
            let bottom = y.max()
        else { return StatedBox(label: label, x: .nan, y: .nan, width: .nan, height: .nan, entry: entry) }
        return StatedBox(label: label, x: left, y: top, width: right - left, height: bottom - top, entry: entry)
    }
}
