internal import FlyingFox
internal import Foundation
internal import Imprint
internal import ImprintImages

/// The response with the collected examples of each class.
struct ExamplesResponse: Encodable {
    struct Class: Encodable {
        let label: String
        let count: Int
        /// The numbers of the examples, oldest first.
        let ids: [Int]
    }

    let classes: [Class]
    /// The number of changes of the examples; a response with a smaller number is older.
    let version: Int
    let byteCount: Int
    let byteLimit: Int
    let classLimit: Int
    /// The minimum number of examples of a class for training.
    let minimumCount: Int
    /// The recommended number of examples of a class.
    let recommendedCount: Int
    /// The reason why the examples are not sufficient for training; nil if they are.
    let shortage: String?
    /// The deletion or move that can be undone, as a sentence; nil without one.
    let undo: String?

    init(_ examples: Examples, _ trainer: ExampleTrainer) {
        classes = examples.classes.map {
            Class(label: $0.label, count: $0.examples.count, ids: $0.examples.map(\.id))
        }
        version = examples.version
        byteCount = examples.byteCount
        byteLimit = Examples.byteLimit
        classLimit = Examples.classLimit
        minimumCount = Examples.minimumExampleCount
        recommendedCount = Examples.recommendedExampleCount
        shortage = trainer.shortage(of: examples)
        undo = examples.undo.last?.sentence
    }
}

extension Studio {
    /// Returns the response to a request for the classes and their examples; nil for other requests.
    func exampleResponse(to request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse? {
        switch (request.method, request.path) {
        case (.GET, "/examples"): return try .json(ExamplesResponse(trainer.examples, trainer))
        case (.POST, "/examples"):
            let (label, photo) = (try request.label, try self.photo(body))
            let thumbnail = try await Self.thumbnail(of: photo)
            let isFile = request.parameter("source") == "file"
            return try updateExamples { try $0.add(photo, thumbnail: thumbnail, to: label, isFile: isFile) }
        case (.POST, "/classes"):
            let label = try request.label
            return try .json(ExamplesResponse(trainer.add(class: label), trainer))
        case (.DELETE, "/classes"):
            let label = try request.label
            return try updateExamples { try $0.remove(label) }
        case (.PUT, "/classes"):
            let (label, name) = (try request.label, try request.required("name"))
            return try .json(ExamplesResponse(trainer.rename(class: label, to: name), trainer))
        case (.POST, "/undo"): return try updateExamples { try $0.undoRemoval() }
        case (_, let path):
            guard let id = Self.exampleID(path) else { return nil }
            switch request.method {
            case .GET:
                let example = try trainer.examples.example(id)
                return request.parameter("size") == "full"
                    ? .image("application/octet-stream", example.photo) : .image("image/jpeg", example.thumbnail)
            case .DELETE: return try updateExamples { try $0.remove(id) }
            case .PUT:
                let label = try request.label
                return try updateExamples { try $0.move(id, to: label) }
            default: return nil
            }
        }
    }

    /// Returns the number of the example in a path, such as 12 in "/examples/12"; nil for other paths.
    private static func exampleID(_ path: String) -> Int? {
        let prefix = "/examples/"
        guard path.hasPrefix(prefix), let id = Int(path.dropFirst(prefix.count)), path == "\(prefix)\(id)" else {
            return nil
        }
        return id
    }

    private func updateExamples(_ change: (inout Examples) throws -> Void) throws -> HTTPResponse {
        try .json(ExamplesResponse(trainer.updateExamples(change), trainer))
    }

    /// The side of a thumbnail, in pixels.
    private static let thumbnailSide = 96

    /// Checks that the bytes are a readable photo, and returns its middle as a small JPEG.
    @concurrent
    private static func thumbnail(of photo: Data) async throws -> Data {
        let side = thumbnailSide
        let image = try ImageSource.data(photo).stored(
            coveringShortSide: ImageFile.shortSideToDecode(covering: side)
        ).upright
        return Data(
            try ImageFile.encodeJPEG(CropAndScale.centerCrop.apply(image, width: side, height: side), quality: 80))
    }
}
