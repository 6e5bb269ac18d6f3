internal import Foundation
internal import ImprintCore

/// A comment in a prepared copy that identifies its original: path in the data set, number of bytes, and a digest of the end.
///
/// It is a comment segment (COM; ITU-T T.81, B.2.4.5) right after the start of the JPEG.
struct CopyComment: Equatable {
    /// The UTF-8 of the path of the original, relative to its data set.
    ///
    /// Bytes, because canonically equivalent strings are equal but name different files.
    let source: [UInt8]
    /// The number of bytes of the original, a space, and 16 digits of the SHA-256 digest of the last 64 KiB.
    ///
    /// It distinguishes photos of equal size and time that swap names, without reading the whole files.
    private let content: String

    private static let prefix = "Imprint copy of "
    private static let separator = " bytes: "

    /// Creates the comment for a copy of the file at `url`.
    init(of url: URL, _ source: String) {
        self.source = Array(source.utf8)
        let file = try? RegularFile(url.displayPath)
        let byteCount = file?.byteCount ?? 0
        var end = [UInt8](repeating: 0, count: min(byteCount, 1 << 16))
        // A file that cannot be read has no copy, so its comment does not matter.
        _ = try? end.withUnsafeMutableBytes { try file?.read(into: $0, at: byteCount - $0.count) }
        content = "\(byteCount) \(SHA256.hexadecimal(of: end).prefix(16))"
    }

    /// Reads the comment in the copy at `url`; fails if the copy has no comment.
    init?(_ url: URL) {
        guard let bytes = firstBytes(1 << 17, of: url), bytes.starts(with: [0xFF, 0xD8]),
            let comment = JPEGSegments(bytes).first(where: {
                $0.marker == 0xFE && $0.content.starts(with: Self.prefix.utf8)
            })
        else { return nil }
        let text = comment.content.dropFirst(Self.prefix.utf8.count)
        guard let separator = text.firstRange(of: Array(Self.separator.utf8)) else { return nil }
        content = String(decoding: text[..<separator.lowerBound], as: UTF8.self)
        source = Array(text[separator.upperBound...])
    }

    /// Inserts the comment into a JPEG.
    func inserted(into jpeg: [UInt8]) -> [UInt8] {
        let text = Array("\(Self.prefix)\(content)\(Self.separator)".utf8) + source
        // A path has at most 4,096 bytes, a segment 65,533.
        let length = UInt16(text.count + 2)
        return jpeg.prefix(2) + [0xFF, 0xFE, UInt8(length >> 8), UInt8(length & 0xFF)] + text + jpeg.dropFirst(2)
    }
}

/// The possible paths of the copy of an original, relative to the folder of copies.
struct CopyNames {
    /// The path of the original, relative to its data set.
    let source: String
    private let stem: Substring
    private let fileExtension: String

    init(of source: String, fileExtension: String) {
        self.source = source
        self.fileExtension = fileExtension.lowercased()
        stem = source.dropLast(fileExtension.isEmpty ? 0 : fileExtension.count + 1)
    }

    var isJPEG: Bool { fileExtension == "jpg" }

    /// `a.jpg`, `a-png.jpg`, `a-png-2.jpg`, and so on.
    var candidates: some Sequence<String> { (0...).lazy.map { name($0) } }

    /// Returns the index of a path in `candidates`; nil if it is not one of them.
    func index(of path: String) -> Int? {
        for index in 0...1 where path.utf8.elementsEqual(name(index).utf8) { return index }
        // The number lies between the last hyphen and the extension.
        guard let number = path.dropLast(4).split(separator: "-").last.flatMap({ Int($0) }), number > 1,
            path.utf8.elementsEqual(name(number).utf8)
        else { return nil }
        return number
    }

    private func name(_ index: Int) -> String {
        switch index {
        case 0: "\(stem).jpg"
        case 1: "\(stem)-\(fileExtension).jpg"
        default: "\(stem)-\(fileExtension)-\(index).jpg"
        }
    }
}

/// The files in a folder of prepared copies before a run.
struct ExistingCopies {
    /// The paths of all files, relative to the folder.
    let paths: [String]
    private let pathsBySource: [[UInt8]: [String]]

    init(in folder: URL) throws(ImageError) {
        paths = FileStatus(folder) == nil ? [] : try Self.filePaths(in: folder)
        var pathsBySource: [[UInt8]: [String]] = [:]
        for path in paths where path.hasSuffix(".jpg") {
            guard let comment = CopyComment(folder.appending(path: path)) else { continue }
            pathsBySource[comment.source, default: []].append(path)
        }
        self.pathsBySource = pathsBySource
    }

    /// Returns the relative paths of all files in a folder of copies.
    ///
    /// Unlike a data set, it may have empty sub-folders, if the photos of a label are unreadable or its copies were removed.
    static func filePaths(in folder: URL) throws(ImageError) -> [String] {
        let root = try FolderListing(folder)
        var paths = root.files
        for name in root.folders { paths += try ImprintImages.filePaths(below: name, in: folder) }
        return paths
    }

    /// Returns the path of the copy of an original, or nil if the folder has no such copy.
    ///
    /// Only paths that a run can choose count, because a copy that the user duplicated, renamed or moved has the comment too.
    func path(ofCopyWith names: CopyNames) -> String? {
        let found = (pathsBySource[Array(names.source.utf8)] ?? []).compactMap { path in
            names.index(of: path).map { (index: $0, path: path) }
        }
        return found.min { $0.index < $1.index }?.path
    }
}

/// Returns the modification time of the file at `url`; follows symbolic links.
func modificationTime(_ url: URL) -> Date? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().displayPath)
    return attributes?[.modificationDate] as? Date
}

/// Whether there is a file, folder or link at `url`, including a broken link.
func exists(_ url: URL) -> Bool {
    var status = stat()
    return lstat(url.displayPath, &status) == 0
}
