package import Foundation
package import ImprintImages

/// The content of a file in the COCO format (https://cocodataset.org/#format-data).
///
/// The ids of images, categories and annotations are their positions from 1. Boxes are in pixels of the upright photos. A detection is an
/// annotation with the additional key `score`, its confidence.
package struct COCODocument: Encodable {
    private struct Image: Encodable {
        let id: Int
        let fileName: String
        let width: Int
        let height: Int

        enum CodingKeys: String, CodingKey {
            case id, width, height
            case fileName = "file_name"
        }
    }

    private struct Annotation: Encodable {
        let id: Int
        let imageID: Int
        let categoryID: Int
        /// The left and upper edge, the width and the height.
        let bbox: [Double]
        let area: Double
        let isCrowd: Int
        let score: Float?

        enum CodingKeys: String, CodingKey {
            case id, bbox, area, score
            case imageID = "image_id"
            case categoryID = "category_id"
            case isCrowd = "iscrowd"
        }
    }

    private struct Category: Encodable {
        let id: Int
        let name: String
    }

    private enum CodingKeys: String, CodingKey {
        case images, annotations, categories
    }

    private var images: [Image] = []
    private var annotations: [Annotation] = []
    private var categories: [Category]
    /// The ids of the categories by their labels.
    private var categoryIDs: [String: Int]
    private let roundsBoxes: Bool

    /// Creates a document without images.
    /// - Parameters:
    ///   - labels: The labels of the first categories; a box with another label adds its category.
    ///   - roundsBoxes: Whether to round boxes to a thousandth of a pixel.
    package init(labels: [String], roundsBoxes: Bool) {
        categories = zip(labels, 1...).map { Category(id: $1, name: $0) }
        categoryIDs = Dictionary(zip(labels, 1...), uniquingKeysWith: { first, _ in first })
        self.roundsBoxes = roundsBoxes
    }

    /// The number of images.
    package var imageCount: Int { images.count }
    /// The number of boxes.
    package var boxCount: Int { annotations.count }

    /// Adds an image.
    package mutating func addImage(_ fileName: String, width: Int, height: Int) {
        images.append(Image(id: images.count + 1, fileName: fileName, width: width, height: height))
    }

    /// Adds a box in the last image.
    /// - Parameter score: The confidence of a detection; nil for a known box.
    package mutating func addBox(
        _ label: String, _ box: NormalizedRectangle, isCrowd: Bool = false, score: Float? = nil
    ) {
        let category = categoryID(label)
        guard let image = images.last else { preconditionFailure("a box needs an image") }
        let box = pixels(box, width: Double(image.width), height: Double(image.height))
        annotations.append(
            Annotation(
                id: annotations.count + 1, imageID: image.id, categoryID: category, bbox: box,
                area: rounded(box[2] * box[3]), isCrowd: isCrowd ? 1 : 0, score: score))
    }

    /// Returns the id of the category of a label; adds the category if it is missing.
    private mutating func categoryID(_ label: String) -> Int {
        if let id = categoryIDs[label] { return id }
        let id = categories.count + 1
        categories.append(Category(id: id, name: label))
        categoryIDs[label] = id
        return id
    }

    /// Returns x, y, width and height in pixels.
    private func pixels(_ box: NormalizedRectangle, width: Double, height: Double) -> [Double] {
        let values = [
            Double(box.x) * width, Double(box.y) * height, Double(box.width) * width, Double(box.height) * height,
        ].map(rounded)
        // Rounding must not make a box empty.
        return roundsBoxes ? Array(values.prefix(2)) + values.suffix(2).map { max($0, 0.001) } : values
    }

    private func rounded(_ value: Double) -> Double { roundsBoxes ? (value * 1000).rounded() / 1000 : value }

    /// Returns the document in one line.
    package func data() throws -> Data { try Self.makeEncoder().encode(self) }

    /// Returns the document with one value per line, so that the file can be read and compared by line.
    /// - Parameter header: The start of the file, with the opening bracket.
    package func lines(header: String) throws -> Data {
        let encoder = Self.makeEncoder()
        func list(_ values: [some Encodable]) throws -> Data {
            try values.map { try encoder.encode($0) }.reduce(into: Data("[".utf8)) { data, line in
                data += (data.count > 1 ? Data(",\n".utf8) : Data("\n".utf8)) + line
            } + Data("\n]".utf8)
        }
        var data = Data(header.utf8)
        data += Data("\"images\":".utf8) + (try list(images))
        data += Data(",\n\"categories\":".utf8) + (try list(categories))
        data += Data(",\n\"annotations\":".utf8) + (try list(annotations)) + Data("}\n".utf8)
        return data
    }

    private static func makeEncoder() -> JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return encoder
    }
}
