internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Finds the text files with the boxes of the photos of a YOLO data set.
struct YOLOTextFiles {
    /// The folder of the data set.
    let root: URL

    /// Returns the locations at which the text file of a photo can be, the usual one first.
    /// - Parameter path: The path of the photo relative to the folder of the photos, to look for the same path in `labels`.
    func candidates(of photo: URL, path: String? = nil) -> [URL] {
        let stem = photo.standardizedFileURL.deletingPathExtension()
        var candidates: [URL] = []
        // The last folder images, which can be above the folder of the photos.
        var components = stem.displayPath.split(separator: "/").map(String.init)
        if let index = components.dropLast().lastIndex(of: "images") {
            components[index] = "labels"
            candidates.append(URL(filePath: "/" + components.joined(separator: "/") + ".txt"))
        }
        candidates.append(URL(filePath: stem.displayPath + ".txt"))
        if let path {
            let relative = path.split(separator: "/").dropLast() + [Substring(stem.lastPathComponent + ".txt")]
            candidates.append(root.appending(path: "labels/" + relative.joined(separator: "/")))
        }
        return candidates
    }

    /// Returns the first of some locations that has a file; nil if none has one.
    static func existing(_ files: [URL]) -> URL? { files.first { FileStatus($0)?.isFile == true } }
}

/// The number of photos of a folder or list that have a text file.
struct TextFileCoverage {
    /// The folder or list.
    let source: URL
    /// The part of the data set; nil if data.yaml names no parts.
    var part: DatasetPart?
    private(set) var photos = 0
    /// The number of photos without a text file.
    private(set) var missing = 0
    /// The folder in which the first missing text file was searched for.
    private(set) var textFolder: URL?

    /// Creates the coverage of a folder or list whose photos are not yet counted.
    init(source: URL, part: DatasetPart? = nil) { (self.source, self.part) = (source, part) }

    /// Adds a photo with its text file, or with the locations at which it was searched for.
    mutating func add(_ text: URL?, _ candidates: [URL]) {
        photos += 1
        guard text == nil else { return }
        missing += 1
        textFolder = textFolder ?? candidates.first?.deletingLastPathComponent()
    }

    /// A note about the photos without a text file.
    var note: String {
        "\(missing) of \(counted(photos, "photo"))\(part.map { " of \($0.yamlKey)" } ?? "") "
            + "\(missing == 1 ? "has" : "have") no text file in \(textFolder?.displayPath ?? "labels"): photos without a text file "
            + "count as background"
    }
}
