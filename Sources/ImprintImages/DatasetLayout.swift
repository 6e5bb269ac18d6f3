package import Foundation
internal import ImprintCore

extension ImageFolder {
    /// Returns the file or folders that show that a folder is a data set with bounding boxes; nil for other folders, and those that cannot be read.
    package static func signOfBoxes(in url: URL) -> String? {
        (try? FolderListing(url)).flatMap { signOfBoxes($0, url) }
    }

    /// Returns the file or folders that show that a folder is a data set with bounding boxes, or contains its parts; nil for other folders.
    static func signOfBoxes(_ root: FolderListing, _ url: URL) -> String? {
        let description = root.files.first {
            let file = url.appending(path: $0)
            return file.isYAML && boxFormat(of: file) == .yolo
        }
        if let description { return description }
        if root.folders.contains("images"), hasBoxFiles(url.appending(path: "labels")) {
            return "the folders images and labels"
        }
        return partsOfYOLO(root.folders, url) ?? annotations(root, url)
    }

    /// Returns the format of boxes of a small file; nil for other files.
    private static func boxFormat(of file: URL) -> BoxFormat? {
        guard let status = FileStatus(file), status.isFile, status.size <= byteLimit,
            let content = try? Data(contentsOf: file)
        else { return nil }
        return BoxFormat([UInt8](content), of: file)
    }

    /// Returns a file with bounding boxes: beside the photos of a folder or of a dataset split, such as train/_annotations.coco.json or an XML
    /// file per photo, or in a folder annotations; nil without such a file.
    private static func annotations(_ root: FolderListing, _ url: URL) -> String? {
        if root.folders.isEmpty { return annotationFile(root.files, url) }
        // A label may be named annotations, too.
        let name = root.folders.first { $0.lowercased() == "annotations" && root.folders.count > 1 }
        let folders = parts(root.folders) + [name].compactMap(\.self)
        for folder in folders {
            let location = url.appending(path: folder)
            let files = (try? FolderListing(location))?.files ?? []
            let isSeparate = folder == name && !files.contains { isImage(location.appending(path: $0)) }
            let json = isSeparate ? files.first { $0.hasSuffix(".json") } : nil
            if let file = json ?? annotationFile(files, location) { return "\(folder)/\(file)" }
            // CVAT and Darknet write the list of classes beside the folders of the parts.
            if folder != name, let list = root.files.first(where: { url.appending(path: $0).isClassList }),
                hasTextFile((try? filePaths(below: folder, in: url)) ?? [], url)
            {
                return list
            }
        }
        return nil
    }

    /// Returns the name of a file with bounding boxes among files of a folder; nil without such a file.
    private static func annotationFile(_ files: [String], _ folder: URL) -> String? {
        let json = files.first { $0.hasPrefix("_annotations.") && $0.hasSuffix(".json") }
        if let json { return json }
        if let list = files.first(where: { folder.appending(path: $0).isClassList }), hasTextFile(files, folder) {
            return list
        }
        let xml = files.first { $0.hasSuffix(".xml") }
        return xml.flatMap { boxFormat(of: folder.appending(path: $0)) == .pascalVOC ? $0 : nil }
    }

    /// Whether a photo among files of a folder has a text file of the same name, as YOLO boxes.
    /// - Parameter files: The paths of the files, relative to the folder.
    private static func hasTextFile(_ files: [String], _ folder: URL) -> Bool {
        func stem(_ file: String) -> String { folder.appending(path: file).deletingPathExtension().displayPath }
        let texts = Set(files.filter { $0.hasSuffix(".txt") }.map(stem))
        return files.contains { texts.contains(stem($0)) && isImage(folder.appending(path: $0)) }
    }

    /// Returns the sub-folders with the names of the parts of a dataset split; empty if they may be labels, such as train beside bus.
    private static func parts(_ folders: [String]) -> [String] {
        let parts = folders.filter { BoxFormat.partKey(ofFolder: $0) != nil }
        let isSplit = Set(parts.map { BoxFormat.partKey(ofFolder: $0) }).count > 1 || parts.count == folders.count
        return isSplit ? parts : []
    }

    /// Returns the folders by which the sub-folders of a folder are the parts of a YOLO data set; nil if they are labels.
    private static func partsOfYOLO(_ folders: [String], _ url: URL) -> String? {
        let parts = Self.parts(folders)
        guard let first = parts.first else { return nil }
        let location = url.absoluteURL.standardizedFileURL
        if location.lastPathComponent == "images",
            hasBoxFiles(location.deletingLastPathComponent().appending(path: "labels"))
        {
            return "the folders images/\(first) and labels"
        }
        let part = parts.first { part in
            FileStatus(url.appending(path: "\(part)/images"))?.isFolder == true
                && hasBoxFiles(url.appending(path: "\(part)/labels"))
        }
        return part.map { "the folders \($0)/images and \($0)/labels" }
    }

    /// Whether a folder exists and has text files but no photos; other programs keep files such as train.cache beside the text files.
    private static func hasBoxFiles(_ folder: URL) -> Bool {
        guard FileStatus(folder)?.isFolder == true, let paths = try? filePaths(below: "", in: folder) else {
            return false
        }
        return paths.contains { $0.hasSuffix(".txt") }
            && !paths.contains { imageExtensions.contains(URL(filePath: $0).pathExtension.lowercased()) }
    }

    /// The maximum size of a file that is checked for bounding boxes, in bytes (1 MiB).
    private static let byteLimit = 1 << 20

    /// Checks that the sub-folders of a folder are labels rather than the parts of a dataset split, such as train and val.
    ///
    /// They are parts if all of them have such names, or if those with such names have sub-folders of photos in common.
    static func checkSplits(_ folders: [String], in url: URL) throws(ImageError) {
        let splits = folders.filter { BoxFormat.partKey(ofFolder: $0) != nil }
        guard Set(splits.map { BoxFormat.partKey(ofFolder: $0) }).count > 1 else { return }
        var paths = splits
        var labels = try commonLabels(of: paths, in: url)
        if labels.count < 2 {
            // Archives often contain a folder of their own name, as in train/train/cat and test/test/cat.
            let inner = try splits.map { split throws(ImageError) in try innerPath(of: split, in: url) }
            let innerLabels = try inner == splits ? [] : commonLabels(of: inner, in: url)
            if innerLabels.count > labels.count { (paths, labels) = (inner, innerLabels) }
        }
        if !labels.isEmpty || splits.count == folders.count {
            throw .splitFolders(folder: url, splits: paths, labels: labels)
        }
    }

    /// Returns the names of the sub-folders of photos that all of some folders have.
    private static func commonLabels(of paths: [String], in url: URL) throws(ImageError) -> [String] {
        var common: [String]?
        for path in paths {
            let location = url.appending(path: path)
            let names = try FolderListing(location).folders.filter { common?.contains($0) != false }
            common = try foldersOfPhotos(names, in: location)
        }
        return common ?? []
    }

    /// Returns those sub-folders that have photos at any depth.
    private static func foldersOfPhotos(_ names: [String], in url: URL) throws(ImageError) -> [String] {
        var found: [String] = []
        for name in names {
            let paths = try filePaths(below: name, in: url)
            if paths.contains(where: { isImage(url.appending(path: $0)) }) { found.append(name) }
        }
        return found
    }

    /// Returns the path of the first folder with several sub-folders below a chain of folders that contain only the next one.
    /// - Parameter path: The path of the first folder of the chain; the result if the chain ends in a folder without sub-folders.
    private static func innerPath(of path: String, in url: URL) throws(ImageError) -> String {
        var inner = path
        while true {
            let location = url.appending(path: inner)
            let folders = try FolderListing(location).folders
            guard let folder = folders.first else { return path }
            if folders.count > 1 { return inner }
            // A chain of links may not end.
            if isLink(location.appending(path: folder)) { return path }
            inner += "/\(folder)"
        }
    }

    /// Checks that the only sub-folder of a folder is a label: not a data set with bounding boxes, nor a folder above those of the labels or of a
    /// dataset split, such as archive/photos with the folders archive/photos/cat and archive/photos/dog.
    ///
    /// The folders of the labels may be deeper, as in archive/photos/photos/cat. If a single class is enough, a folder with photos beside its
    /// sub-folders is a label, unless a known label is among its sub-folders.
    /// - Parameter knownLabels: The labels of a model or of other photos; a folder with such a name is a label.
    static func checkNesting(
        _ name: String, in url: URL, minimumLabels: Int, knownLabels: [String]
    ) throws(ImageError) {
        var (folder, path) = (name, name)
        while !knownLabels.contains(folder) {
            let location = url.appending(path: path)
            let listing = try FolderListing(location)
            if let found = signOfBoxes(listing, location) { throw .hasBoxes(folder: location, found: found) }
            try checkSplits(listing.folders, in: location)
            let labels = try foldersOfPhotos(listing.folders, in: location)
            let hasPhotos = listing.files.contains { isImage(location.appending(path: $0)) }
            let mayBeLabel = minimumLabels == 1 && hasPhotos
            if labels.contains(where: knownLabels.contains) || (labels.count > 1 && !mayBeLabel) {
                throw .labelsInSubfolder(folder: url, name: path, labels: labels)
            }
            // A chain of links may not end.
            guard labels.count == 1, !hasPhotos, !isLink(location.appending(path: labels[0])) else { return }
            folder = labels[0]
            path += "/\(folder)"
        }
    }

    /// Checks that the photos without a logo are not in a folder with the name of a logo, such as train/Logo, or a similar name.
    static func checkSubfolders(_ paths: [String], logos: [String], in url: URL) throws(ImageError) {
        var checked: Set<[Substring]> = []
        for path in paths {
            let folders = Array(path.split(separator: "/").dropLast())
            guard !checked.contains(folders) else { continue }
            guard isImage(url.appending(path: path)) else { continue }
            checked.insert(folders)
            for (position, name) in folders.enumerated() {
                let path = folders[...position].joined(separator: "/")
                if logos.contains(String(name)) { throw .logoInSubfolder(folder: url, path: path) }
                if let logo = similarLabel(to: String(name), in: logos, looksEqual: true) {
                    throw .similarToLogo(source: url.displayPath, label: path, logo: logo)
                }
            }
        }
    }
}
