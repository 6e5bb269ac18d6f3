internal import Foundation
internal import ImprintCore

/// A comment in a prepared copy that identifies its original: path in the data set, number of bytes, and a digest of the end.
///
/// It is a comment segment of the JPEG, which also contains a digest of the data after it.
struct CopyComment: Equatable {
    /// The UTF-8 of the path of the original, relative to its data set.
    ///
    /// Bytes, because canonically equivalent strings are equal but name different files.
    let source: [UInt8]
    /// The number of bytes of the original, and 16 digits of the SHA-256 digest of its last 64 KiB.
    ///
    /// They distinguish photos of equal size and time that swap names, without reading the whole files.
    private let original: [String]

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
        original = ["\(byteCount)", Self.digest(of: end)]
    }

    /// Reads the comment in the copy at `url`; fails if the copy has no comment.
    init?(_ url: URL) {
        guard let bytes = firstBytes(1 << 17, of: url), let (comment, _, _) = Self.find(in: bytes) else { return nil }
        self = comment
    }

    private init(source: [UInt8], original: [String]) { (self.source, self.original) = (source, original) }

    /// Whether the file at `url` is a copy with this comment and has all of its data.
    ///
    /// After a power cut, the data of a copy can be lost although its name, time and comment are not.
    func isOfWholeCopy(at url: URL) -> Bool {
        guard let bytes = firstBytes(ImageFile.byteLimit, of: url), let (comment, digest, data) = Self.find(in: bytes)
        else {
            return false
        }
        return comment == self && digest == Self.digest(of: data)
    }

    /// Inserts the comment into a JPEG.
    func inserted(into jpeg: [UInt8]) -> [UInt8] {
        let data = jpeg.dropFirst(2)
        let fields = (original + [Self.digest(of: data)]).joined(separator: " ")
        // A path has at most 4,096 bytes.
        let text = Array("\(Self.prefix)\(fields)\(Self.separator)".utf8) + source
        return jpeg.prefix(2) + JPEGSegments.segment(JPEGSegments.commentMarker, text) + data
    }

    /// Returns the comment in a copy, the digest in it, and the data after it; nil if the copy has no comment.
    ///
    /// Copies of earlier versions have an empty digest.
    private static func find(in bytes: [UInt8]) -> (comment: CopyComment, digest: String, data: ArraySlice<UInt8>)? {
        guard bytes.starts(with: [0xFF, 0xD8]),
            let segment = JPEGSegments(bytes).first(where: {
                $0.marker == JPEGSegments.commentMarker && $0.content.starts(with: prefix.utf8)
            })
        else { return nil }
        let text = segment.content.dropFirst(prefix.utf8.count)
        guard let range = text.firstRange(of: Array(separator.utf8)) else { return nil }
        let fields = String(decoding: text[..<range.lowerBound], as: UTF8.self).split(separator: " ").map(String.init)
        let comment = CopyComment(source: Array(text[range.upperBound...]), original: Array(fields.prefix(2)))
        return (comment, fields.dropFirst(2).joined(), bytes[segment.content.endIndex...])
    }

    private static func digest(of bytes: some Sequence<UInt8>) -> String {
        String(SHA256.hexadecimal(of: Array(bytes)).prefix(16))
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
    /// The paths of all files but empty copies, relative to the folder.
    let paths: [String]
    private let pathsBySource: [[UInt8]: [String]]

    init(in folder: URL) throws(ImageError) {
        paths =
            FileStatus(folder) == nil
            ? [] : try Self.filePaths(in: folder).filter { !isEmptyCopy(folder.appending(path: $0)) }
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

/// Whether the file at `url` is an empty JPEG, as a copy can be after a power cut.
func isEmptyCopy(_ url: URL) -> Bool {
    var status = stat()
    return url.pathExtension == "jpg" && lstat(url.displayPath, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        && status.st_size == 0
}
