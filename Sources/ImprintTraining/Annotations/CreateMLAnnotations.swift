internal import Foundation
internal import ImprintCore

/// A reader of the format of Create ML: a JSON array of photos, each with its boxes.
struct CreateMLAnnotations {
    private let file: URL
    private let entries: [Entry]

    init(_ data: Data, file: URL) throws(BoxAnnotationsError) {
        self.file = file
        entries = try decodeJSON(
            [Entry].self, data, file: file,
            expected: "photos such as {\"image\": \"a.jpg\", \"annotations\": [{\"label\": \"cat\", \"coordinates\": "
                + "{\"x\": 50, \"y\": 40, \"width\": 20, \"height\": 10}}]} in the format of Create ML")
    }

    func contents(_ finder: PhotoFinder) throws(BoxAnnotationsError) -> AnnotationContents {
        var contents = AnnotationContents(labels: [], photos: [], folders: finder.folders)
        var labels: Set<String> = []
        for (index, entry) in entries.enumerated() {
            guard let name = entry.image ?? entry.imageFileName, PhotoFinder.isValid(name) else {
                throw .invalidEntry(
                    file: file, entry: "[\(index)]", found: "\"image\" is missing, empty or not a path",
                    expected: "the path of a photo as \"image\" or \"imagefilename\"")
            }
            var photo = StatedPhoto(url: finder.url(name), source: file, isInPixels: true)
            for (number, annotation) in entry.annotations.enumerated() {
                let position = "[\(index)].annotations[\(number)]"
                let label = annotation.label.trimmingWhiteSpace()
                guard !isBlank(label) else {
                    throw .invalidEntry(
                        file: file, entry: position, found: "the label is blank: \(quotedBlank(label))",
                        expected: "a name")
                }
                labels.insert(label)
                let box = annotation.coordinates
                photo.boxes.append(
                    StatedBox(
                        label: label, x: box.x - box.width / 2, y: box.y - box.height / 2, width: box.width,
                        height: box.height, entry: position))
            }
            contents.photos.append(photo)
        }
        contents.labels = Array(labels)
        return contents
    }

    private struct Entry: Decodable {
        let image: String?
        let imageFileName: String?
        let annotations: [Annotation]

        private enum CodingKeys: String, CodingKey {
            case image, annotation, annotations
            case imageFileName = "imagefilename"
        }

        /// Reads the keys `image` and `annotations`, or `imagefilename` and `annotation` as in Apple's documentation of `MLObjectDetector`.
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            image = try container.decodeIfPresent(String.self, forKey: .image)
            imageFileName = try container.decodeIfPresent(String.self, forKey: .imageFileName)
            annotations =
                try container.decodeIfPresent([Annotation].self, forKey: .annotation)
                ?? container.decode([Annotation].self, forKey: .annotations)
        }
    }

    private struct Annotation: Decodable {
        let label: String
        let coordinates: Coordinates
    }

    /// The centre and the size of a box, in pixels.
    private struct Coordinates: Decodable {
        let x: Double
        let y: Double
        let width: Double
        let height: Double
    }
}
