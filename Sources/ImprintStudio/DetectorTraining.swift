internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintSynthesis
internal import ImprintTraining

/// The training data of a detector: photos with boxes, and the artwork of logos.
struct DetectorData: Sendable {
    /// The minimum number of photos with boxes to train without artwork.
    static let minimumPhotoCount = 5

    let annotations: BoxAnnotations
    let artwork: [String: [Artwork]]

    /// The photos with boxes.
    var photos: [AnnotatedPhoto] { annotations.photos.filter { !$0.objects.isEmpty } }
    /// The photos that show none of the objects.
    var backgrounds: [URL] { annotations.photos.filter(\.objects.isEmpty).map(\.url) }

    /// The reason why the data are not sufficient for training; nil if they are.
    var shortage: String? {
        let count = photos.count
        guard artwork.isEmpty, count < Self.minimumPhotoCount else { return nil }
        return "Draw boxes in at least \(Self.minimumPhotoCount) photos (now \(count)), or add artwork."
    }

    /// The data in a sentence: "3 photos with 5 boxes and 1 image of artwork".
    var summary: String {
        func text(_ count: Int, _ singular: String, _ plural: String) -> String {
            "\(count) \(count == 1 ? singular : plural)"
        }
        let boxes = photos.reduce(0) { $0 + $1.objects.count }
        let images = artwork.values.reduce(0) { $0 + $1.count }
        return [
            boxes > 0 ? "\(text(photos.count, "photo", "photos")) with \(text(boxes, "box", "boxes"))" : nil,
            images > 0 ? text(images, "image of artwork", "images of artwork") : nil,
        ].compactMap(\.self).joined(separator: " and ")
    }
}

extension DetectorData {
    private static let sheetSide = 160
    private static let sheetCount = 12

    /// Returns a contact sheet of typical training images: composites of the artwork, or else the annotated objects.
    /// - Throws: `ImageError` if no photo can be read.
    func sheet(seed: UInt64, workers: Workers) throws -> (title: String, image: RasterImage) {
        let images = artwork.isEmpty ? try objects(workers) : try composites(seed: seed, workers: workers)
        let title = artwork.isEmpty ? "Objects that the detector learns" : "Composites that the detector learns from"
        return (title, ContactSheet.make(images, columns: 4))
    }

    private func composites(seed: UInt64, workers: Workers) throws -> [RasterImage] {
        let photos = backgrounds.prefix(40).map { TrainingPhoto(url: $0, labels: []) }
        let backdrops = try Backdrops(photos, size: Self.sheetSide, seed: seed, workers: workers)
        let logos = artwork.sorted { precedes($0.key, $1.key) }
        let compositors = logos.map { label, artworks in
            Compositor(artworks: artworks, backdrops: backdrops, seed: seed, label: logos.count > 1 ? label : nil)
        }
        return try workers.parallelMap(Self.sheetCount) { index throws(ImageError) in
            try compositors[index % compositors.count].positive(index / compositors.count).image
        }
    }

    private func objects(_ workers: Workers) throws -> [RasterImage] {
        let chosen = photos.flatMap { photo in photo.objects.map { (photo: photo, box: $0.box) } }
            .prefix(Self.sheetCount)
        return try workers.parallelMap(chosen.count) { index throws(ImageError) in
            let (photo, box) = chosen[index]
            let image = try StoredImage(photo.url, coveringShortSide: nil)
            // A square around the object, with twice its longer side, clipped to the photo.
            let (width, height) = (Float(photo.width), Float(photo.height))
            let side = min(max(box.width * width, box.height * height) * 2, min(width, height))
            let left = min(max((box.x + box.width / 2) * width - side / 2, 0), width - side)
            let top = min(max((box.y + box.height / 2) * height - side / 2, 0), height - side)
            let part = NormalizedRectangle(x: left / width, y: top / height, width: side / width, height: side / height)
            return CropAndScale.scaleFill.apply(
                image.cropped(to: part).upright.flattenedOnWhite(), width: Self.sheetSide, height: Self.sheetSide)
        }
    }
}

extension ExampleTrainer {
    /// Starts training a detector, which then replaces the classifier.
    /// - Parameter panel: The panel of the page that shows the run.
    func start(
        _ data: DetectorData, _ configuration: DetectorConfiguration, panel: TrainingStatus.Panel
    ) throws {
        if let shortage = data.shortage { throw RequestError(shortage, .conflict) }
        try begin("Preparing the training images …", panel: panel) { trainer, _, _ in
            { await trainer.train(on: data, configuration) }
        }
    }

    private func train(on data: DetectorData, _ configuration: DetectorConfiguration) async {
        let text = await attempt(ifStopped: "Stopped; the model did not change.") {
            try await showSheet(of: data, configuration)
            return try await learn(data, configuration)
        }
        if let text { end(.learned, text) }
    }

    /// Draws the contact sheet on another thread.
    @concurrent
    private func showSheet(of data: DetectorData, _ configuration: DetectorConfiguration) async throws {
        let (title, image) = try data.sheet(seed: configuration.seed, workers: Workers(threads))
        let bytes = Data(try ImageFile.encodeJPEG(image))
        state.withLock { $0.sheet = bytes }
        update { $0.show(sheet: title) }
        try Task.checkCancellation()
    }

    private func learn(_ data: DetectorData, _ configuration: DetectorConfiguration) async throws -> String {
        // Photos without any boxes are only backgrounds of composites.
        let hasBoxes = !data.photos.isEmpty
        let trainer = DetectorTrainer(
            artwork: data.artwork, annotations: hasBoxes ? data.annotations : nil,
            backgrounds: hasBoxes || data.backgrounds.isEmpty ? nil : data.backgrounds, configuration: configuration)
        let run = trainer.start()
        state.withLock { $0.keepBest = { run.stop() } }
        defer { state.withLock { $0.keepBest = nil } }
        var result: TrainingResult?
        do {
            for try await event in run {
                update { $0.updateDetector(with: event) }
                if case .finished(let finished) = event { result = finished }
            }
        } catch ImprintError.stoppedTooEarly {
            throw CancellationError()
        }
        guard let result, !Task.isCancelled else { throw CancellationError() }
        let note = await use(try ImageClassifier(result.model, threads: threads), .detector(result.model))
        return Self.message(about: result, data) + note + result.featureNote
    }

    /// Returns a message about a finished run.
    static func message(about result: TrainingResult, _ data: DetectorData) -> String {
        if let error = result.photoError {
            return
                "Training ended early because too few photos are left: \("\(error)".sentence) The new detector is the "
                + "best one so far, from \(data.summary). Put the photos back, and train again."
        }
        if let error = result.divergence {
            return
                "Training ended early: \("\(error)".sentence) The new detector is the best one so far, from \(data.summary)."
        }
        return result.ending == .stopped
            ? "Stopped early, and kept the best detector so far, from \(data.summary)."
            : "Trained a detector from \(data.summary)."
    }
}
