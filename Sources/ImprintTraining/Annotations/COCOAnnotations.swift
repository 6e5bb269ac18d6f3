public import Foundation
internal import ImprintCore
internal import ImprintImages

/// A reader of the COCO format for object detection: JSON with the arrays `images`, `annotations` and `categories`.
struct COCOAnnotations {
    private let file: URL
    private let content: Content

    init(_ data: Data, file: URL) throws(BoxAnnotationsError) {
        self.file = file
        content = try decodeJSON(
            Content.self, data, file: file,
            expected: "an object with the arrays images, annotations and categories in the COCO format")
    }

    func contents(_ finder: PhotoFinder) throws(BoxAnnotationsError) -> AnnotationContents {
        var warnings = AnnotationWarnings()
        let names = try names(&warnings)
        var photos: [StatedPhoto] = []
        var indices: [ID: Int] = [:]
        for (index, image) in content.images.enumerated() {
            let entry = "images[\(index)]"
            guard PhotoFinder.isValid(image.fileName) else {
                throw .invalidEntry(
                    file: file, entry: entry, found: "the file_name is empty or not a path",
                    expected: "the path of a photo")
            }
            guard indices.updateValue(index, forKey: image.id) == nil else {
                throw .duplicateID(file: file, entry: entry, id: image.id.shown)
            }
            let size = image.width.flatMap { width in image.height.map { (width, $0) } }
            photos.append(StatedPhoto(url: finder.url(image.fileName), source: file, size: size, isInPixels: true))
        }
        for (index, annotation) in content.annotations.enumerated() {
            let entry = annotation.id.map { "annotation \($0.shown)" } ?? "annotations[\(index)]"
            guard annotation.bbox.count == 4 else {
                throw .invalidEntry(
                    file: file, entry: entry, found: "the bbox has \(counted(annotation.bbox.count, "number"))",
                    expected: "4 numbers: x and y of the upper left corner, width and height, in pixels")
            }
            guard let label = names[annotation.categoryID] else {
                throw .unknownClass(
                    file: file, entry: entry, id: annotation.categoryID.shown,
                    known: "the id of one of the \(content.categories.count) categories")
            }
            guard let photo = indices[annotation.imageID] else {
                warnings.add(.unknownImage, "\(entry), image_id \(annotation.imageID.shown)")
                continue
            }
            let box = annotation.bbox
            photos[photo].boxes.append(
                StatedBox(
                    label: label, x: box[0], y: box[1], width: box[2], height: box[3],
                    isCrowd: annotation.isCrowd?.value ?? false, entry: entry))
        }
        return AnnotationContents(
            labels: Array(names.values), photos: photos, warnings: warnings, folders: finder.folders)
    }

    /// Returns the label of each category.
    private func names(_ warnings: inout AnnotationWarnings) throws(BoxAnnotationsError) -> [ID: String] {
        var names: [ID: String] = [:]
        var unique: Set<String> = []
        for (index, category) in content.categories.enumerated() {
            let entry = "categories[\(index)]"
            let name = category.name.trimmingWhiteSpace()
            guard !isBlank(name) else {
                throw .invalidEntry(
                    file: file, entry: entry, found: "the name is blank: \(quotedBlank(name))", expected: "a name")
            }
            if !unique.insert(name).inserted { warnings.add(.equalNames, name) }
            guard names.updateValue(name, forKey: category.id) == nil else {
                throw .duplicateID(file: file, entry: entry, id: category.id.shown)
            }
        }
        return names
    }

    private struct Content: Decodable {
        let images: [Image]
        let annotations: [Annotation]
        let categories: [Category]
    }

    private struct Image: Decodable {
        let id: ID
        let fileName: String
        let width: Double?
        let height: Double?

        enum CodingKeys: String, CodingKey {
            case id, width, height
            case fileName = "file_name"
        }
    }

    private struct Annotation: Decodable {
        let id: ID?
        let imageID: ID
        let categoryID: ID
        let bbox: [Double]
        let isCrowd: Flag?

        enum CodingKeys: String, CodingKey {
            case id, bbox
            case imageID = "image_id"
            case categoryID = "category_id"
            case isCrowd = "iscrowd"
        }
    }

    private struct Category: Decodable {
        let id: ID
        let name: String
    }

    /// An id; most tools write integers, some write strings.
    private struct ID: Decodable, Hashable {
        private let text: String

        /// The id as messages show it.
        var shown: String { abbreviated(text) }

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let integer = try? container.decode(Int.self) {
                text = "\(integer)"
            } else if let integer = try? container.decode(UInt64.self) {
                text = "\(integer)"
            } else if let number = try? container.decode(Double.self) {
                text = "\(number)"
            } else {
                text = try container.decode(String.self)
            }
        }
    }

    /// A flag, written as 0 and 1 or as false and true.
    private struct Flag: Decodable {
        let value: Bool

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let flag = try? container.decode(Bool.self) {
                value = flag
            } else {
                value = try container.decode(Double.self) != 0
            }
        }
    }
}

// MARK: - JSON

/// Decodes JSON; an error names the first entry with an unexpected structure.
///
/// The decoder rejects JSON of more than 512 levels, so deep nesting cannot exhaust the stack.
func decodeJSON<Value: Decodable>(
    _ type: Value.Type, _ data: Data, file: URL, expected: String
) throws(BoxAnnotationsError) -> Value {
    do {
        return try JSONDecoder().decode(type, from: data)
    } catch DecodingError.keyNotFound(let key, let context) {
        throw .invalidEntry(
            file: file, entry: jsonPath(context.codingPath), found: "\"\(key.stringValue)\" is missing",
            expected: expected)
    } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
        throw .invalidEntry(
            file: file, entry: jsonPath(context.codingPath), found: "the value has another type", expected: expected)
    } catch {
        // Python writes these constants, although JSON does not allow them.
        let constant = ["NaN", "Infinity"].first { data.range(of: Data($0.utf8)) != nil }
        throw .invalidSyntax(
            file: file, format: "JSON",
            reason: constant.map { "it contains \($0), which JSON does not allow" }
                ?? "the file is cut short or damaged, or a number is too large")
    }
}

/// Returns a path as in "annotations[12].bbox"; empty for the whole file.
private func jsonPath(_ path: [any CodingKey]) -> String {
    path.reduce(into: "") { text, key in
        if let index = key.intValue {
            text += "[\(index)]"
        } else {
            text += (text.isEmpty ? "" : ".") + key.stringValue
        }
    }
}

// MARK: - Writing

extension BoxAnnotations {
    /// Encodes the annotations in the COCO format.
    ///
    /// The ids of images, categories and annotations are their positions from 1: those of images in `photos`, those of
    /// categories in `labels`. Equal annotations give equal bytes. Boxes refer to the upright photos and are rounded to
    /// a thousandth of a pixel.
    /// - Parameter folder: The folder that the file names are relative to; nil for the deepest folder that contains all
    ///   photos. A photo outside of the folder has an absolute path.
    /// - Throws: `EncodingError` if a coordinate of a box is not finite.
    public func cocoData(relativeTo folder: URL? = nil) throws -> Data {
        let paths = photos.map { $0.url.standardizedFileURL.displayComponents }
        let base = folder?.standardizedFileURL.displayComponents ?? Self.commonFolder(of: paths)
        var document = COCODocument(labels: labels, roundsBoxes: true)
        for (path, photo) in zip(paths, photos) {
            let isInside = path.count > base.count && path.starts(with: base)
            let name =
                isInside ? path.dropFirst(base.count).joined(separator: "/") : photo.url.standardizedFileURL.displayPath
            document.addImage(name, width: photo.width, height: photo.height)
            for object in photo.objects { document.addBox(object.label, object.box, isCrowd: object.isCrowd) }
        }
        return try document.data()
    }

    static func commonFolder(of paths: [[String]]) -> [String] {
        guard var common = paths.first?.dropLast() else { return [] }
        for path in paths {
            common = common.prefix(zip(common, path.dropLast()).prefix { $0 == $1 }.count)
        }
        return Array(common)
    }
}
