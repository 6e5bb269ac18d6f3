internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// A reader of a YOLO data set: the class names in data.yaml, and one text file per photo.
///
/// A line of a text file is `class cx cy width height` or `class x1 y1 x2 y2 …`, in fractions of the photo. The second
/// form is a polygon of three or more points, which becomes its bounding box.
struct YOLOAnnotations {
    private let file: URL
    private let root: URL
    /// The folder of the photos to read; nil for all photos of the data set.
    private let photoFolder: URL?
    private let names: [Int: String]

    init(_ file: URL, photos: URL?) throws(BoxAnnotationsError) {
        (self.file, photoFolder) = (file, photos)
        root = file.absoluteURL.deletingLastPathComponent()
        let yaml = try YOLONames(file)
        guard !yaml.hasKeypoints else { throw .unsupported(file: file, found: "keypoints (kpt_shape)") }
        names = yaml.names
    }

    func contents() throws -> AnnotationContents {
        var contents = AnnotationContents(labels: Array(names.values), photos: [])
        var unique: Set<String> = []
        for (_, name) in names.sorted(by: { $0.key < $1.key }) where !unique.insert(name).inserted {
            contents.warnings.add(.equalNames, name)
        }
        let folder = photoFolder ?? root
        let paths = try ImageFolder.imagePaths(in: folder)
        let hasImageFolder = photoFolder == nil && paths.contains { Self.imageFolderIndex($0) != nil }
        var used: Set<String> = []
        var splits: [DatasetPart: Set<String>] = [:]
        for path in paths {
            let url = folder.appending(path: path)
            let text = textFile(of: path, in: folder)
            guard text != nil || !hasImageFolder || Self.imageFolderIndex(path) != nil else {
                contents.warnings.add(.unusedPhoto, path)
                continue
            }
            var photo = StatedPhoto(url: url, source: text ?? file, isInPixels: false)
            if let text {
                used.insert(text.standardizedFileURL.displayPath)
                photo.boxes = try boxes(text)
            }
            for name in path.split(separator: "/").dropLast() {
                if let part = DatasetPart(folder: name) { splits[part, default: []].insert(name.lowercased()) }
            }
            contents.photos.append(photo)
        }
        guard !used.isEmpty || paths.isEmpty else {
            throw BoxAnnotationsError.missingTextFiles(folder: folder, photos: paths.count)
        }
        if photoFolder == nil {
            if splits.count > 1 {
                let names = splits.values.joined().sorted(by: precedes)
                contents.warnings.add(.severalSplits, names.joined(separator: " and "))
            }
            // Text files beside photos may be anything, but those in a folder labels have boxes.
            for path in try annotationPaths(in: root, extensions: ["txt"]) where isUnused(path, used) {
                contents.warnings.add(.unusedTextFile, path)
            }
        }
        return contents
    }

    private func isUnused(_ path: String, _ used: Set<String>) -> Bool {
        path.split(separator: "/").dropLast().contains("labels")
            && !used.contains(root.appending(path: path).standardizedFileURL.displayPath)
    }

    /// Returns the index of the last folder `images` in a path.
    private static func imageFolderIndex(_ path: String) -> Int? {
        path.split(separator: "/").dropLast().lastIndex(of: "images")
    }

    /// Returns the text file of a photo; nil if it does not exist.
    private func textFile(of path: String, in folder: URL) -> URL? {
        let photo = folder.appending(path: path).standardizedFileURL
        let stem = photo.deletingPathExtension()
        var candidates: [URL] = []
        // The last folder images, which can be above the folder of the photos.
        var components = stem.displayPath.split(separator: "/").map(String.init)
        if let index = components.dropLast().lastIndex(of: "images") {
            components[index] = "labels"
            candidates.append(URL(filePath: "/" + components.joined(separator: "/") + ".txt"))
        }
        candidates.append(URL(filePath: stem.displayPath + ".txt"))
        let relative = path.split(separator: "/").dropLast() + [Substring(stem.lastPathComponent + ".txt")]
        candidates.append(root.appending(path: "labels/" + relative.joined(separator: "/")))
        return candidates.first { FileStatus($0)?.isFile == true }
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
            guard let id = Int(exactly: number), let label = names[id] else {
                let known =
                    names.count == 1
                    ? "class \(names.keys.first ?? 0)"
                    : "one of the \(names.count) classes of \(file.lastPathComponent)"
                throw .unknownClass(file: url, entry: entry, id: String(first.prefix(40)), known: known)
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

/// The class names in data.yaml, in the subset of YAML that data sets use for them.
///
/// `names` is a list (`[a, b]`, or a line `- a` for each name) or a map from class numbers (`{0: a}`, or a line `0: a`
/// for each). Names are plain or in quotes.
struct YOLONames {
    private(set) var names: [Int: String] = [:]
    /// Whether the data set annotates keypoints; their lines look like polygons.
    private(set) var hasKeypoints = false
    private let file: URL

    init(_ file: URL) throws(BoxAnnotationsError) {
        self.file = file
        let lines = try annotationText(file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { Self.withoutComment($0) }
        hasKeypoints = lines.contains { $0.hasPrefix("kpt_shape:") }
        guard let start = lines.firstIndex(where: { $0.hasPrefix("names:") }) else {
            throw fail("there is no key names", line: nil)
        }
        let value = Self.trimmed(lines[start].dropFirst("names:".count))
        switch value.first {
        case nil: try readBlock(lines, from: start + 1)
        case "[", "{": try readFlow([value] + lines[(start + 1)...], line: start + 1)
        default: throw fail("names is \"\(value.prefix(40))\", not a list", line: start + 1)
        }
        guard !names.isEmpty else { throw fail("names is empty", line: start + 1) }
    }

    private func fail(_ found: String, line: Int?) -> BoxAnnotationsError {
        .invalidEntry(
            file: file, entry: line.map { "line \($0)" } ?? "the file", found: found,
            expected: "the names of the classes, such as names: [cat, dog]")
    }

    private static func trimmed(_ text: some StringProtocol) -> Substring {
        Substring(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Removes the comment at the end of a line.
    private static func withoutComment(_ line: Substring) -> Substring {
        var quotes = YAMLQuotes()
        var previous: Character = " "
        for index in line.indices {
            let character = line[index]
            if !quotes.contains(character), character == "#", previous.isWhitespace { return line[..<index] }
            previous = character
        }
        return line
    }

    private mutating func add(_ name: Substring, index: Int, line: Int) throws(BoxAnnotationsError) {
        guard let text = Self.scalar(Self.trimmed(name)), !text.isEmpty else {
            throw fail("\"\(name.prefix(40))\" is not a name", line: line)
        }
        guard names.updateValue(text, forKey: index) == nil else {
            throw fail("the class \(index) has two names", line: line)
        }
    }

    private mutating func add(pair: Substring, line: Int) throws(BoxAnnotationsError) {
        guard let colon = pair.firstIndex(of: ":"), let key = Self.scalar(Self.trimmed(pair[..<colon])),
            let index = Int(key), index >= 0
        else { throw fail("\"\(pair.prefix(40))\" has no class number", line: line) }
        try add(pair[pair.index(after: colon)...], index: index, line: line)
    }

    private mutating func readBlock(_ lines: [Substring], from start: Int) throws(BoxAnnotationsError) {
        for (offset, line) in lines[start...].enumerated() {
            let content = Self.trimmed(line)
            if content.isEmpty { continue }
            let isItem = content.hasPrefix("- ") || content == "-"
            // The next key of the file, or the end of the document.
            if !isItem, line.first?.isWhitespace != true { return }
            if isItem {
                try add(content.dropFirst(), index: names.count, line: start + offset + 1)
            } else {
                try add(pair: content, line: start + offset + 1)
            }
        }
    }

    private mutating func readFlow(_ lines: [Substring], line: Int) throws(BoxAnnotationsError) {
        let text = lines.joined(separator: "\n")
        let isMap = text.first == "{"
        var (quotes, line) = (YAMLQuotes(), line)
        var start = text.index(after: text.startIndex)
        for index in text.indices.dropFirst() {
            let character = text[index]
            if character.isNewline { line += 1 }
            guard !quotes.contains(character), [",", "]", "}"].contains(character) else { continue }
            let item = Self.trimmed(text[start..<index])
            let isEnd = character != ","
            // A comma may follow the last name.
            if !(isEnd && item.isEmpty) {
                if isMap { try add(pair: item, line: line) } else { try add(item, index: names.count, line: line) }
            }
            if isEnd { return }
            start = text.index(after: index)
        }
        throw fail("names does not end", line: line)
    }

    /// Returns the text of a plain or quoted scalar; nil if it is invalid or of another kind.
    private static func scalar(_ text: Substring) -> String? {
        guard let first = text.first else { return nil }
        if first == "'" || first == "\"" {
            guard text.count >= 2, text.last == first else { return nil }
            let inner = text.dropFirst().dropLast()
            if first == "'" {
                let unescaped = inner.replacing("''", with: "\u{0}")
                return unescaped.contains("'") ? nil : trimmed(unescaped.replacing("\u{0}", with: "'")).description
            }
            // JSON has the escapes that names need.
            return (try? JSONDecoder().decode(String.self, from: Data("\"\(inner)\"".utf8))).map {
                trimmed($0).description
            }
        }
        return "[]{}&*!|>%@`,".contains(first) ? nil : text.description
    }
}

/// Finds the quoted scalars in YAML; a quote within a word is an apostrophe.
private struct YAMLQuotes {
    private var quote: Character?
    private var isEscaped = false
    /// The last character that is neither a space nor quoted, or the last quote.
    private var last: Character = ","

    /// Returns whether the next character of the text is quoted or a quote.
    mutating func contains(_ character: Character) -> Bool {
        guard let open = quote else {
            let isQuote = character == "\"" || character == "'"
            // A scalar starts after these; a quote after a quote stands for itself.
            if isQuote, last == character || ",[{:-".contains(last) {
                quote = character
                return true
            }
            if !character.isWhitespace { last = character }
            return false
        }
        if isEscaped {
            isEscaped = false
        } else if open == "\"", character == "\\" {
            isEscaped = true
        } else if character == open {
            (quote, last) = (nil, character)
        }
        return true
    }
}
