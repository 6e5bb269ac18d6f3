internal import Foundation

/// What a prepared copy says of its original: the path in the data set and the number of bytes.
///
/// It is a comment segment (COM; ITU-T T.81, B.2.4.5) right after the start of the JPEG.
struct CopyComment: Equatable {
    /// The path of the original, relative to its data set.
    let source: String
    /// The number of bytes of the original.
    let byteCount: Int

    private static let prefix = "Imprint copy of "

    /// The comment for a copy of the file at `url`.
    init(of url: URL, _ source: String) {
        self.source = source
        byteCount = FileStatus(url)?.size ?? 0
    }

    /// The comment in the copy at `url`; nil if there is none.
    init?(_ url: URL) {
        guard let file = try? FileHandle(forReadingFrom: url) else { return nil }
        defer { try? file.close() }
        guard let head = try? file.read(upToCount: 1 << 17) else { return nil }
        let bytes = [UInt8](head)
        guard bytes.starts(with: [0xFF, 0xD8]),
            let comment = JPEGSegments(bytes).first(where: {
                $0.marker == 0xFE && $0.content.starts(with: Self.prefix.utf8)
            })
        else { return nil }
        let text = String(decoding: comment.content.dropFirst(Self.prefix.utf8.count), as: UTF8.self)
        let parts = text.split(separator: " bytes: ", maxSplits: 1)
        guard parts.count == 2, let byteCount = Int(parts[0]) else { return nil }
        self.byteCount = byteCount
        source = String(parts[1])
    }

    /// A JPEG with the comment.
    func inserted(into jpeg: [UInt8]) -> [UInt8] {
        let text = Array("\(Self.prefix)\(byteCount) bytes: \(source)".utf8)
        // A path has at most 4,096 bytes, a segment 65,533.
        let length = UInt16(text.count + 2)
        return jpeg.prefix(2) + [0xFF, 0xFE, UInt8(length >> 8), UInt8(length & 0xFF)] + text + jpeg.dropFirst(2)
    }
}

/// The files that are in a folder of prepared copies before a run.
final class ExistingCopies {
    /// The paths of all images, relative to the folder.
    let paths: [String]
    private let folder: URL
    private let pathBySource: [String: String]
    /// Images without a comment: the user's own, or copies of an earlier version of Imprint.
    private var unmarked: Set<String>

    init(in folder: URL) {
        self.folder = folder
        let copies = try? ImageFolder(at: folder, minimumClasses: 1)
        let found = (copies?.items ?? []).map { (path: copies?.path(of: $0) ?? "", comment: CopyComment($0.url)) }
        paths = found.map(\.path)
        pathBySource = Dictionary(
            found.compactMap { copy in copy.comment.map { ($0.source, copy.path) } },
            uniquingKeysWith: { first, _ in first })
        unmarked = Set(found.filter { $0.comment == nil }.map(\.path))
    }

    /// The path of the copy of an original; nil if there is none.
    func path(ofCopyOf source: String) -> String? { pathBySource[source] }

    /// Whether an image without a comment is a copy of `original` by an earlier version, which set the time of the original.
    func isEarlierCopy(_ path: String, of original: URL) -> Bool {
        guard unmarked.contains(path) else { return false }
        guard let made = modificationTime(folder.appending(path: path)), let original = modificationTime(original)
        else { return false }
        return abs(made.timeIntervalSince(original)) < 1e-3
    }

    /// Takes a path, so that it is the copy of no other original.
    func claim(_ path: String) { unmarked.remove(path) }
}

/// When the file that `url` leads to was last changed.
func modificationTime(_ url: URL) -> Date? {
    let attributes = try? FileManager.default.attributesOfItem(atPath: url.resolvingSymlinksInPath().displayPath)
    return attributes?[.modificationDate] as? Date
}
