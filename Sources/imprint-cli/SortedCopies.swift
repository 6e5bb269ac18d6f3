internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Copies photos into one folder per label, without replacing files.
final class SortedCopies {
    private let folder: URL
    private let path: String
    private let noneName: String
    private var copied = 0
    private var unchanged = 0

    init(in path: String, noneName: String) {
        (folder, self.path, self.noneName) = (URL(filePath: path), path, noneName)
    }

    var summary: String {
        let earlier = unchanged > 0 ? "; \(unchanged) more had a copy there" : ""
        return "Copied \(counted(copied, "photo")) to \(path)\(earlier)."
    }

    /// Copies a photo with its modification time, unless the folder of the label already has an identical copy under one of its names.
    /// - Parameter label: The best label, or nil if the photo shows none of the labels.
    /// - Throws: `PhotoFailure` if the photo cannot be read, `FileError` if the copy cannot be written.
    func copy(_ photo: PhotoInput, label: String?) throws {
        let target = folder.appending(path: label.map { Self.folderName($0, noneName: noneName) } ?? noneName)
        try AtomicFile.makeFolder(target)
        let source = try OpenFile(photo)
        for name in copyNames(URL(filePath: photo.relativePath).lastPathComponent) {
            let copy = target.appending(path: name)
            if try source.isIdentical(to: copy) {
                unchanged += 1
                return
            }
            guard !exists(copy) else { continue }
            let isCreated = try AtomicFile.create(copy) { output in
                try source.forEachChunk { try output.write($0) }
                try output.setModificationTime(source.modificationTime)
            }
            if isCreated {
                copied += 1
                return
            }
        }
    }

    /// Returns a label as the name of a folder, on any system.
    ///
    /// Characters that a file system does not allow, and a dot at the start, become "_". A changed name ends with a digest of the label, so that
    /// it differs from the names of other labels. The same applies to a label that is named like the folder of photos without a label.
    /// - Parameter noneName: The name of the folder of photos without a label.
    static func folderName(_ label: String, noneName: String) -> String {
        let forbidden = "/\\:*?\"<>|".unicodeScalars
        var name = String.UnicodeScalarView(
            label.unicodeScalars.map { scalar in
                scalar.properties.generalCategory == .control || forbidden.contains(scalar) ? "_" : scalar
            })
        if name.first == "." { name.replaceSubrange(name.startIndex...name.startIndex, with: ["_"]) }
        while let last = name.last, last == "." || last == " " { name.removeLast() }
        while String(name).utf8.count > 200 { name.removeLast() }
        let text = String(name)
        guard text.isEmpty || text == noneName || !text.utf8.elementsEqual(label.utf8) else { return text }
        return (text.isEmpty ? "_" : text) + "-" + SHA256.hexadecimal(of: Array(label.utf8)).prefix(8)
    }
}

/// Returns the names for a copy: the name of the file, then the name with "-2", "-3" and so on before its extension.
///
/// The names have at most 255 bytes. For this, the start of the name is truncated, and an extension that leaves no room is omitted.
/// - Parameter fileExtension: The extension of the copies, or nil for the extension of the file.
func copyNames(_ name: String, fileExtension: String? = nil) -> some Sequence<String> {
    let url = URL(filePath: name)
    let ending = (fileExtension ?? url.pathExtension).isEmpty ? "" : "." + (fileExtension ?? url.pathExtension)
    let stem = url.pathExtension.isEmpty ? name : String(name.dropLast(url.pathExtension.count + 1))
    return (1...).lazy.map { (number: Int) -> String in
        let ordinal = number == 1 ? "" : "-\(number)"
        let suffix = ordinal.utf8.count + ending.utf8.count < 255 ? ordinal + ending : ordinal
        var start = stem[...]
        while !start.isEmpty && start.utf8.count + suffix.utf8.count > 255 { start = start.dropLast() }
        return start + suffix
    }
}

/// A photo that is open for copying.
private final class OpenFile {
    private let photo: PhotoInput
    private let descriptor: Int32
    private let size: Int
    let modificationTime: timespec

    init(_ photo: PhotoInput) throws(PhotoFailure) {
        self.photo = photo
        descriptor = retryingInterrupts { open(photo.path, O_RDONLY | O_CLOEXEC) }
        var status = stat()
        guard descriptor >= 0, fstat(descriptor, &status) == 0 else { throw Self.failure(photo) }
        size = Int(status.st_size)
        #if canImport(Darwin)
            modificationTime = status.st_mtimespec
        #else
            modificationTime = status.st_mtim
        #endif
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    private static func failure(_ photo: PhotoInput) -> PhotoFailure {
        PhotoFailure(
            description:
                "\(photo.path) cannot be copied: \(errorText(errno)). Check the file and its permissions."
        )
    }

    /// Calls `body` with the bytes of the file in order.
    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        var offset = 0
        while true {
            let bytes = try Self.chunk(descriptor, at: offset, photo)
            if bytes.isEmpty { return }
            try bytes.withUnsafeBytes(body)
            offset += bytes.count
        }
    }

    /// Returns whether another file exists and has the same bytes.
    func isIdentical(to other: URL) throws -> Bool {
        guard let status = FileStatus(other), status.isFile, status.size == size else { return false }
        let otherDescriptor = retryingInterrupts { open(other.displayPath, O_RDONLY | O_CLOEXEC) }
        guard otherDescriptor >= 0 else { return false }
        defer { close(otherDescriptor) }
        var offset = 0
        while true {
            let bytes = try Self.chunk(descriptor, at: offset, photo)
            guard try bytes == Self.chunk(otherDescriptor, at: offset, photo) else { return false }
            if bytes.isEmpty { return true }
            offset += bytes.count
        }
    }

    private static func chunk(_ descriptor: Int32, at offset: Int, _ photo: PhotoInput) throws(PhotoFailure) -> [UInt8]
    {
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            result = retryingInterrupts { pread(descriptor, buffer.baseAddress, 1 << 20, off_t(offset)) }
            count = max(result, 0)
        }
        guard result >= 0 else { throw failure(photo) }
        return bytes
    }
}
