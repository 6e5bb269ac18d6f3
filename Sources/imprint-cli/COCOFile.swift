internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// Collects the boxes of all photos, and writes them in the format of COCO.
final class COCOFile {
    /// A box in a photo; `score` is the confidence of a detection, or nil for a known box.
    typealias Object = (label: String, box: NormalizedRectangle, score: Float?)

    private let path: String
    private let header: String
    private var document: COCODocument

    /// - Parameter header: The start of the file.
    init(_ path: String, labels: [String], header: String) {
        (self.path, self.header) = (path, header)
        document = COCODocument(labels: labels, roundsBoxes: false)
    }

    /// The number of boxes so far.
    var objectCount: Int { document.boxCount }
    /// The number of photos so far.
    var imageCount: Int { document.imageCount }

    /// Adds a photo and its boxes.
    func add(_ objects: [Object], inPhotoAt path: String, size: (width: Int, height: Int)) {
        document.addImage(name(of: path), width: size.width, height: size.height)
        for (label, box, score) in objects { document.addBox(label, box, score: score) }
    }

    /// Returns the path relative to the folder of the file, or the whole path of a photo elsewhere.
    private func name(of photo: String) -> String {
        let components = URL(filePath: resolvedPath(photo)).pathComponents
        let folder = URL(filePath: resolvedPath(path)).deletingLastPathComponent().pathComponents
        guard components.starts(with: folder) else { return resolvedPath(photo) }
        return components.dropFirst(folder.count).joined(separator: "/")
    }

    /// Writes the file.
    /// - Parameter path: The path, or nil for that of the initializer.
    /// - Throws: `FileError` if it cannot be written.
    func write(to path: String? = nil) throws {
        try AtomicFile.write(Array(document.lines(header: header)), to: URL(filePath: path ?? self.path))
    }
}
