internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Writes copies of photos with their results drawn on them.
///
/// A copy replaces only an earlier annotated copy of the same photo.
final class AnnotatedCopies {
    private let folder: URL
    private let path: String
    private let format: PhotoFormat
    private var written = 0

    init(in path: String, _ format: PhotoFormat) {
        (folder, self.path, self.format) = (URL(filePath: path), path, format)
    }

    var summary: String { "Wrote \(counted(written, "annotated photo")) to \(path)." }

    /// Returns the annotated copy of a photo as a JPEG; any number of threads can call it.
    /// - Throws: `PhotoFailure` if the photo is in the folder of the copies, `ImageError` if it cannot be decoded or encoded.
    func copy(of photo: PhotoInput, _ result: PhotoResult) throws -> [UInt8] {
        let source = resolvedPath(photo.path)
        guard !URL(filePath: source).isInside(folder) else {
            throw PhotoFailure(
                description:
                    "\(photo.path) is in \(path), the folder of the annotated copies. Annotate into another folder.")
        }
        return try format.annotation(result).copy(of: photo.url, source: source)
    }

    /// Writes a copy to the path of the photo in its folder, with the extension jpg, or to a free path beside it.
    /// - Throws: `FileError` if it cannot be written.
    func write(_ copy: [UInt8], of photo: PhotoInput) throws {
        let relative = URL(filePath: photo.relativePath)
        let parent = photo.relativePath.split(separator: "/").dropLast().joined(separator: "/")
        let target = parent.isEmpty ? folder : folder.appending(path: parent)
        try AtomicFile.makeFolder(target)
        for name in copyNames(relative.lastPathComponent, fileExtension: "jpg") {
            let url = target.appending(path: name)
            if ImageAnnotation.isCopy(url, of: resolvedPath(photo.path)) {
                try AtomicFile.write(copy, to: url)
            } else {
                guard !exists(url), try AtomicFile.create(url, { try $0.write(copy) }) else { continue }
            }
            written += 1
            return
        }
    }
}
