internal import FlyingFox
internal import Foundation
internal import ImprintModel
internal import ImprintTraining

/// The response with the photos with boxes, and the artwork.
struct BoxesResponse: Encodable {
    struct Artwork: Encodable {
        let id: Int
        let label: String
        let name: String
        let notes: [String]
    }

    let photos: [BoxPhoto]
    /// The number of changes of the photos; a response with a smaller number is older.
    let version: Int
    /// The annotation file.
    let file: String
    /// The photos of the annotation file that are missing, and its other problems.
    let problems: [String]
    let artwork: [Artwork]
    /// The reason why the data are not sufficient for training; nil if they are.
    let shortage: String?
    /// The name of the photo that the request added; nil for other requests.
    var added: String?

    init(_ boxes: BoxStore, _ artwork: ArtworkStore, added: String? = nil) throws {
        let content = try boxes.content
        (photos, version, problems) = (content.photos, content.version, content.problems)
        file = boxes.file.path
        self.artwork = artwork.items.map { Artwork(id: $0.id, label: $0.label, name: $0.name, notes: $0.notes) }
        shortage = DetectorData(annotations: try boxes.annotations, artwork: artwork.artwork).shortage
        self.added = added
    }
}

/// The response to an edit of the boxes of a photo: only this photo, because there may be thousands.
private struct BoxEditResponse: Encodable {
    let photo: BoxPhoto
    /// The number of changes of the photos; if the page's own number was not the previous one, it lacks changes of other pages.
    let version: Int
    /// The reason why the data are not sufficient for training; nil if they are.
    let shortage: String?
}

extension Studio {
    /// The training data of a detector.
    private var detectorData: DetectorData {
        get throws { DetectorData(annotations: try boxes.annotations, artwork: artwork.artwork) }
    }

    /// Returns the response to a request for the photos with boxes, their artwork and their detector; nil for other requests.
    func boxResponse(to request: HTTPRequest, _ body: Data?) async throws -> HTTPResponse? {
        switch (request.method, request.path) {
        case (.GET, "/boxes"): break
        case (.POST, "/boxes"):
            let photo = try self.photo(body)
            try await check(photo)
            return try .json(BoxesResponse(boxes, artwork, added: boxes.add(photo)))
        case (.PUT, "/boxes"):
            guard let body, let edit = try? JSONDecoder().decode(BoxPhoto.Edit.self, from: body) else {
                throw RequestError(
                    "The boxes in the request are not valid JSON. Send revision, objects and isBackground.")
            }
            let (photo, version) = try boxes.update(try request.required("name"), edit)
            return try .json(BoxEditResponse(photo: photo, version: version, shortage: detectorData.shortage))
        case (.DELETE, "/boxes"): try boxes.remove(try request.required("name"))
        case (.GET, "/box-photo"):
            let (type, bytes) = try await boxes.image(
                try request.required("name"), isThumbnail: request.parameter("size") == "small")
            return .image(type, bytes)
        case (.POST, "/artwork"):
            try await artwork.add(
                try photo(body), label: try request.label,
                name: String((request.parameter("name") ?? "The artwork").prefix(100)))
        case (.DELETE, "/artwork"): try artwork.remove(try request.required("id"))
        case (.GET, "/artwork"): return .image("image/png", try artwork.item(try request.required("id")).picture)
        case (.GET, "/sheet"):
            guard let sheet = trainer.sheet else { throw RequestError("There is no contact sheet.", .notFound) }
            return .image("image/jpeg", sheet)
        case (.POST, "/detector"):
            let isArtworkOnly = request.parameter("data") == "artwork"
            try trainer.start(
                isArtworkOnly ? artworkData : try detectorData, try configuration(request),
                panel: isArtworkOnly ? .logo : .annotate)
            return try .json(trainer.status)
        default: return nil
        }
        return try .json(BoxesResponse(boxes, artwork))
    }

    /// Returns the configuration of a detector with the length of training that the request chooses.
    private func configuration(_ request: HTTPRequest) throws -> DetectorConfiguration {
        var configuration = detectorConfiguration
        configuration.threads = trainer.threads
        switch request.parameter("length") {
        case "standard": break
        case "short": configuration.epochs = max(configuration.epochs / 4, 1)
        default:
            throw RequestError("The request does not name a training length. Add ?length=short or ?length=standard.")
        }
        return configuration
    }
}
