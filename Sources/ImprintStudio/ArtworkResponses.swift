internal import FlyingFox
internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

extension Studio {
    /// Returns the response to a request for composites of the artwork, for its labels, or for matching; nil for other requests.
    func artworkResponse(to request: HTTPRequest) async throws -> HTTPResponse? {
        switch (request.method, request.path) {
        case (.PUT, "/artwork"):
            try artwork.rename(try request.required("id"), to: try request.label)
            return try .json(BoxesResponse(boxes, artwork))
        case (.GET, "/composites"):
            guard let seed = UInt64(try request.required("seed")) else {
                throw RequestError("The seed of the composites is not a whole number. Add ?seed=1, for example.")
            }
            return .image("image/jpeg", try await composites(seed: seed))
        case (.POST, "/matching"): try await trainer.startMatching { artwork.current }
        case (.DELETE, "/matching"): trainer.stopMatching()
        default: return nil
        }
        return try .json(model)
    }

    /// Draws composites of the artwork as a JPEG, on another thread.
    @concurrent
    private func composites(seed: UInt64) async throws -> Data {
        let data = artworkData
        guard !data.artwork.isEmpty else {
            throw RequestError("There is no artwork to composite. Add an image of the logo first.", .conflict)
        }
        return Data(try ImageFile.encodeJPEG(data.sheet(seed: seed, workers: Workers(trainer.threads)).image))
    }

    /// The training data of a detector that learns only from artwork: the artwork, and the photos that show none of the objects.
    ///
    /// Photos with boxes that cannot be read do not prevent the training.
    var artworkData: DetectorData {
        let annotations = try? boxes.annotations
        return DetectorData(
            annotations: BoxAnnotations(
                uncheckedLabels: [], photos: annotations?.photos.filter(\.objects.isEmpty) ?? []),
            artwork: artwork.artwork)
    }
}
