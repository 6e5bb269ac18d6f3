internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// Collects the boxes of all photos, and writes them in COCO format.
final class COCOFile {
    /// A box in a photo; `score` is the confidence of a detection, or nil for a known box.
    typealias Object = (label: String, box: NormalizedRectangle, score: Float?)

    private let path: String
    private let header: String
    private var document: COCODocument
    /// The names of the photos in the document.
    private var names: Set<String> = []
    /// The parts of the path of the folder of the file, as it was typed and with symbolic links resolved.
    private let folders: (typed: [String], resolved: [String])

    /// - Parameter header: The start of the file.
    init(_ path: String, labels: [String], header: String) {
        (self.path, self.header) = (path, header)
        folders = (
            Self.typed(path).deletingLastPathComponent().displayComponents,
            URL(filePath: resolvedPath(path)).deletingLastPathComponent().displayComponents
        )
        document = COCODocument(labels: labels, roundsBoxes: false)
    }

    /// The number of boxes so far.
    var objectCount: Int { document.boxCount }
    /// The number of photos so far.
    var imageCount: Int { document.imageCount }

    /// Adds a photo and its boxes, unless the file already has the photo; a reader would give it all boxes twice.
    func add(_ objects: [Object], inPhotoAt path: String, size: (width: Int, height: Int)) {
        let name = name(of: path)
        guard names.insert(name).inserted else { return }
        document.addImage(name, width: size.width, height: size.height)
        for (label, box, score) in objects { document.addBox(label, box, score: score) }
    }

    /// Returns the path relative to the folder of the file, or the whole path of a photo elsewhere.
    ///
    /// A photo that is a symbolic link keeps its own name.
    private func name(of photo: String) -> String {
        let typed = Self.typed(photo)
        if typed.displayComponents.starts(with: folders.typed) {
            return typed.displayComponents.dropFirst(folders.typed.count).joined(separator: "/")
        }
        let resolved = URL(filePath: resolvedPath(photo)).displayComponents
        guard resolved.starts(with: folders.resolved) else { return typed.path }
        return resolved.dropFirst(folders.resolved.count).joined(separator: "/")
    }

    /// Returns the absolute path with its symbolic links, or resolved if it contains "..", which refers to the parent of a link's
    /// target.
    private static func typed(_ path: String) -> URL {
        path.split(separator: "/").contains("..")
            ? URL(filePath: resolvedPath(path)) : URL(filePath: path).standardizedFileURL
    }

    /// Writes the file.
    /// - Parameter path: The path, or nil for the path of the initializer.
    /// - Throws: `FileError` if it cannot be written.
    func write(to path: String? = nil) throws {
        try AtomicFile.write(Array(document.lines(header: header)), to: URL(filePath: path ?? self.path))
    }
}
