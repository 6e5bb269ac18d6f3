internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Collects the boxes of all photos, and writes them in the format of COCO (https://cocodataset.org/#format-data).
///
/// A detection is an annotation with the additional key `score`, its confidence. Boxes are in pixels of the upright photo.
final class COCOFile {
    private struct Image: Encodable {
        let id: Int
        let fileName: String
        let width: Int
        let height: Int

        private enum CodingKeys: String, CodingKey {
            case id, width, height
            case fileName = "file_name"
        }
    }

    private struct Category: Encodable {
        let id: Int
        let name: String
    }

    private struct Annotation: Encodable {
        let id: Int
        let image: Int
        let category: Int
        /// The left and upper edge, the width and the height.
        let bbox: [Double]
        let area: Double
        let iscrowd = 0
        let score: Float?

        private enum CodingKeys: String, CodingKey {
            case id, bbox, area, iscrowd, score
            case image = "image_id"
            case category = "category_id"
        }
    }

    /// A box in a photo; `score` is the confidence of a detection, or nil for a known box.
    typealias Object = (label: String, box: NormalizedRectangle, score: Float?)

    private let path: String
    private let labels: [String]
    private let header: String
    /// The parts of the path of the folder of the file.
    private let folder: [String]
    private var images: [Image] = []
    private var annotations: [Annotation] = []

    /// - Parameter header: The start of the file.
    init(_ path: String, labels: [String], header: String) {
        (self.path, self.labels, self.header) = (path, labels, header)
        folder = URL(filePath: resolvedPath(path)).deletingLastPathComponent().pathComponents
    }

    /// The number of boxes so far.
    var objectCount: Int { annotations.count }
    /// The number of photos so far.
    var imageCount: Int { images.count }

    /// Adds a photo and its boxes.
    func add(_ objects: [Object], inPhotoAt path: String, size: (width: Int, height: Int)) {
        images.append(Image(id: images.count + 1, fileName: name(of: path), width: size.width, height: size.height))
        for (name, box, score) in objects {
            guard let label = labels.firstIndex(of: name) else { continue }
            let (columns, rows) = (Double(size.width), Double(size.height))
            let (width, height) = (Double(box.width) * columns, Double(box.height) * rows)
            annotations.append(
                Annotation(
                    id: annotations.count + 1, image: images.count, category: label + 1,
                    bbox: [Double(box.x) * columns, Double(box.y) * rows, width, height], area: width * height,
                    score: score))
        }
    }

    /// Returns the path relative to the folder of the file, or the whole path of a photo elsewhere.
    private func name(of photo: String) -> String {
        let components = URL(filePath: resolvedPath(photo)).pathComponents
        guard components.starts(with: folder) else { return resolvedPath(photo) }
        return components.dropFirst(folder.count).joined(separator: "/")
    }

    /// Writes the file.
    /// - Parameter path: The path, or nil for that of the initializer.
    /// - Throws: `FileError` if it cannot be written.
    func write(to path: String? = nil) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        func list(_ values: [some Encodable]) throws -> Data {
            // One value per line, so that the file can be read and compared by line.
            let lines = try values.map { try encoder.encode($0) }
            return lines.reduce(into: Data("[".utf8)) { data, line in
                data += (data.count > 1 ? Data(",\n".utf8) : Data("\n".utf8)) + line
            } + Data("\n]".utf8)
        }
        let categories = labels.enumerated().map { Category(id: $0.offset + 1, name: $0.element) }
        var data = Data(header.utf8)
        data += Data("\"images\":".utf8) + (try list(images))
        data += Data(",\n\"categories\":".utf8) + (try list(categories))
        data += Data(",\n\"annotations\":".utf8) + (try list(annotations)) + Data("}\n".utf8)
        try AtomicFile.write(Array(data), to: URL(filePath: path ?? self.path))
    }
}
