internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Finds the text files with the boxes of the photos of a YOLO data set.
struct YOLOTextFiles {
    /// The folder of the data set.
    let root: URL

    /// The spellings of the extension, the usual one first; programs for Windows also write it in capital letters.
    private static let extensions = ["txt", "TXT", "Txt"]

    /// Returns the locations at which the text file of a photo can be, the usual one first.
    /// - Parameter path: The path of the photo relative to the folder of the photos, to look for the same path in `labels`.
    func candidates(of photo: URL, path: String? = nil) -> [URL] {
        let photo = photo.standardizedFileURL.deletingPathExtension()
        /// The paths of the text files, without their extension.
        var stems: [String] = []
        // The last folder images, which can be above the folder of the photos.
        var components = photo.displayPath.split(separator: "/").map(String.init)
        if let index = components.dropLast().lastIndex(of: "images") {
            components[index] = "labels"
            stems.append("/" + components.joined(separator: "/"))
        }
        stems.append(photo.displayPath)
        if let path {
            let relative = path.split(separator: "/").dropLast() + [Substring(photo.lastPathComponent)]
            stems.append(root.appending(path: "labels/" + relative.joined(separator: "/")).displayPath)
        }
        return stems.flatMap { stem in Self.extensions.map { URL(filePath: "\(stem).\($0)") } }
    }

    /// Returns the text file of a photo: the first of its candidates that exists; nil if none exists.
    /// - Throws: `BoxAnnotationsError.unusableTextFile` if it is a folder, a broken link or another special file: its photo is not background.
    static func existing(_ candidates: [URL], of photo: URL) throws(BoxAnnotationsError) -> URL? {
        for file in candidates {
            if let status = FileStatus(file) {
                guard let kind = status.specialKind else { return file }
                throw .unusableTextFile(file: file, photo: photo, found: kind)
            }
            if exists(file) { throw .unusableTextFile(file: file, photo: photo, found: "a broken symbolic link") }
        }
        return nil
    }
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
