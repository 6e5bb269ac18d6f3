internal import Foundation
internal import ImprintCore

extension ImageFolder {
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
        return partsOfYOLO(root.folders, url) ?? annotationsInSplit(root.folders, url)
    }

    /// Returns the format of boxes of a small file; nil for other files.
    private static func boxFormat(of file: URL) -> BoxFormat? {
        guard let status = FileStatus(file), status.isFile, status.size <= byteLimit,
            let content = try? Data(contentsOf: file)
        else { return nil }
        return BoxFormat([UInt8](content), of: file)
    }

    /// Returns a file with bounding boxes beside the photos of a dataset split, such as train/_annotations.coco.json or an XML file per photo;
    /// nil if there is none.
    private static func annotationsInSplit(_ folders: [String], _ url: URL) -> String? {
        for split in parts(folders) {
            let files = (try? FolderListing(url.appending(path: split)))?.files ?? []
            let xml = files.first { $0.hasSuffix(".xml") }
            let isVOC = xml.map { boxFormat(of: url.appending(path: "\(split)/\($0)")) == .pascalVOC } ?? false
            let found = files.first { $0.hasPrefix("_annotations.") && $0.hasSuffix(".json") } ?? (isVOC ? xml : nil)
            if let found { return "\(split)/\(found)" }
        }
        return nil
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
        var common: [String]?
        for split in splits {
            var labels: [String] = []
            for name in try FolderListing(url.appending(path: split)).folders where common?.contains(name) != false {
                let paths = try filePaths(below: "\(split)/\(name)", in: url)
                if paths.contains(where: { isImage(url.appending(path: $0)) }) { labels.append(name) }
            }
            common = labels
        }
        if let common, !common.isEmpty || splits.count == folders.count {
            throw .splitFolders(folder: url, splits: splits, labels: common)
        }
    }

    /// Checks that the photos without a logo are not in a folder with the name of a logo, such as train/Logo.
    static func checkSubfolders(_ paths: [String], logos: [String], in url: URL) throws(ImageError) {
        for path in paths {
            let folders = path.split(separator: "/").dropLast()
            guard let position = folders.firstIndex(where: { logos.contains(String($0)) }),
                isImage(url.appending(path: path))
            else { continue }
            throw .invalidSource(
                name: url.displayPath,
                found: "photos of a logo in the folder \(quotedName(folders[...position].joined(separator: "/")))",
                expected:
                    "the sub-folder \(quotedName(String(folders[position]))) directly in the photo folder, because photos in other "
                    + "sub-folders count as photos without a logo")
        }
    }
}
