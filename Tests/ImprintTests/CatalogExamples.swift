import Foundation
import Imprint
import ImprintBaseModels
import ImprintCore
import ImprintFleet
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintNetwork
import ImprintStore
import ImprintSynthesis
import ImprintTraining

// The examples of the DocC catalogs, word for word; DocumentedExampleTests compares them with the pages.

// MARK: Imprint

private func landingPage() throws {
    // Example of Sources/Imprint/README.md begins
    // Example of Sources/Imprint/Imprint.docc/Imprint.md begins
    let classifier = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
    let best = try classifier.classify(URL(filePath: "photo.jpg"))[0]
    print(best.label, best.confidence)
    // Example ends
}

private func novelty(classifier: ImageClassifier, photo: URL) throws {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    if let novelty = try classifier.novelty(of: .file(photo)), novelty > 1 {
        print("The photo shows none of the labels.")
    }
    // Example ends
}

private func severalRequests(
    contentRequest: ClassificationRequest, logoRequest: ClassificationRequest, detector: ImageClassifier, upload: Data
) async throws {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    let handler = RequestHandler(.data(upload))
    let objects = try await handler.perform([DetectionRequest(detector)])
    let results = try await handler.perform([contentRequest, logoRequest])
    // Example ends
    print(results.count, objects.count)
}

private func saliency(classifier: ImageClassifier, image: RasterImage) throws {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    let map = try classifier.saliency(of: image, for: "Logo")
    print(map.label, map.confidence, map.maximum)
    // Example ends
}

private func replacement(classifier: ImageClassifier, newClassifier: ImageClassifier) {
    // Example of Sources/Imprint/Imprint.docc/ClassifyAndDetect.md begins
    let live = LiveClassifier(classifier)
    let request = ClassificationRequest(live)
    live.replace(with: newClassifier)
    // Example ends
    print(request.classifier === live)
}

private struct Camera {
    let frames: AsyncStream<ImageSource>
}

private struct Gauge {
    func setConfidence(_ confidence: Float) { print(confidence) }
}

private func frames(classifier: ImageClassifier, camera: Camera, gauge: Gauge) async throws {
    // Example of Sources/Imprint/Imprint.docc/CameraStreams.md begins
    let stream = classifier.classifications(for: camera.frames, every: .milliseconds(100), smoothing: 0.5)
    for try await element in stream {
        let confidence = element.classifications.groupedConfidence(
            excluding: ["Other"], sumToOne: classifier.confidencesSumToOne)
        gauge.setConfidence(confidence)
    }
    // Example ends
}

private func pause(_ stream: ClassificationStream) {
    // Example of Sources/Imprint/Imprint.docc/CameraStreams.md begins
    stream.isPaused = true
    // Example ends
}

private func savedPersonalization(classifier: ImageClassifier, file: URL) throws -> ImageClassifier {
    // Example of Sources/Imprint/Imprint.docc/Personalize.md begins
    let personalization = try Personalization(contentsOf: file)
    let mine = try classifier.personalized(with: personalization)
    // Example ends
    return mine
}

private func manyPhotos(session: PersonalizationSession, photo: URL, otherPhoto: URL) throws {
    // Example of Sources/Imprint/Imprint.docc/Personalize.md begins
    let control = PersonalizationControl()
    let photos: [(photo: ImageSource, label: String)] = [(.file(photo), "MyLogo"), (.file(otherPhoto), "MyLogo")]
    try session.teach(photos, control: control) { progress in
        if case .step(let step) = progress { print(step.step, step.steps) }
    }
    // Example ends
}

private func undo(session: PersonalizationSession) throws {
    // Example of Sources/Imprint/Imprint.docc/Personalize.md begins
    try session.undo()
    try session.forget("MyLogo")
    // Example ends
}

private func merge(model: ModelFile, personalizations: [Personalization], file: URL) throws {
    // Example of Sources/Imprint/Imprint.docc/Personalize.md begins
    let merge = try model.merging(personalizations, options: MergeOptions(clip: 1, noise: 0.5))
    try merge.model.write(to: file)
    // Example ends
}

// MARK: ImprintTraining

private func trainingLandingPage() async throws {
    // Example of Sources/ImprintTraining/README.md begins
    // Example of Sources/ImprintTraining/ImprintTraining.docc/ImprintTraining.md begins
    let classifier = try await ImageClassifier.train(on: URL(filePath: "photos"))
    let best = try classifier.classify(URL(filePath: "photo.jpg"))[0]
    print(best.label, best.confidence)
    // Example ends
}

private func classifierTraining(photos: URL, model: URL) async throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    var configuration = ClassifierConfiguration()
    configuration.epochs = 10
    configuration.augmentation = Augmentation([.flip, .rotate, .blur])
    let trainer = ClassifierTrainer(photos: try ImageFolder(at: photos), configuration: configuration)
    for try await event in trainer.start() {
        switch event {
        case .epoch(let metrics, _): print(metrics.epoch, metrics.loss)
        case .finished(let result): try result.model.write(to: model)
        default: break
        }
    }
    // Example ends
}

private func photosInMemory(catImage: RasterImage, dogFile: Data) throws -> ClassifierTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    var photos = InMemorySource(labels: ["cat", "dog"])
    try photos.append(catImage, labels: ["cat"])
    try photos.append(dogFile, labels: ["dog"], identifier: "dog/1.jpg")
    let trainer = ClassifierTrainer(photos: photos)
    // Example ends
    return trainer
}

private func pretrained() throws -> ClassifierConfiguration {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    let bases = BaseModels()
    var configuration = ClassifierConfiguration()
    configuration.start = .pretrained(try bases.model(named: "efficientnet-lite0"), recipe: .fineTuning)
    // Example ends
    return configuration
}

private func customTrainer(model: ModelFile) -> some Trainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    struct PreviewTrainer: Trainer {
        let model: ModelFile

        func start() -> TrainingRun {
            TrainingRun { onEvent, shouldStop in
                for epoch in 1...10 where !shouldStop() {
                    Thread.sleep(forTimeInterval: 1)
                    let metrics = EpochMetrics(epoch: epoch, loss: 1 / Float(epoch), accuracy: 0.9, learningRate: 0.1)
                    onEvent(.epoch(metrics, seconds: 1))
                }
                return TrainingResult(model: model)
            }
        }
    }
    // Example ends
    return PreviewTrainer(model: model)
}

private func checkpoints(photos: URL, folder: URL, configuration: ClassifierConfiguration) throws -> ClassifierTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    let trainer = ClassifierTrainer(
        photos: try ImageFolder(at: photos), configuration: configuration,
        checkpoints: CheckpointOptions(folder: folder, resumes: true))
    // Example ends
    return trainer
}

private func detectorPhotosInMemory(
    leaf: Artwork, leafImage: RasterImage, streetFile: Data
) throws -> DetectorTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    var photos = InMemorySource(labels: ["Leaf", "other"])
    try photos.append(leafImage, labels: ["Leaf"])
    try photos.append(streetFile, labels: ["other"], identifier: "street.jpg")
    let trainer = DetectorTrainer(artwork: ["Leaf": [leaf]], photos: photos)
    // Example ends
    return trainer
}

private func boxTraining(boxes: URL) throws -> DetectorTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    var configuration = DetectorConfiguration()
    configuration.seed = 5
    let trainer = DetectorTrainer(annotations: try BoxAnnotations(contentsOf: boxes), configuration: configuration)
    // Example ends
    return trainer
}

private func newLogo(model: URL, crest: URL, file: URL) throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    let detector = try ImageClassifier(contentsOf: model)
    let personalizer = try DetectorPersonalizer(detector, artwork: ["Crest": [try Artwork(contentsOf: crest)]])
    let result = try personalizer.run()
    try result.personalization.write(to: file)
    // Example ends
}

private func matching(logo: URL, photo: URL) throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    let matcher = try ArtworkMatcher(["Logo": [try Artwork(contentsOf: logo)]])
    for object in try matcher.detect(photo) {
        print(object.label, object.confidence, object.box)
    }
    // Example ends
}

private func evaluation(model: URL, photos: URL) throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/EvaluateAModel.md begins
    let classifier = try ImageClassifier(contentsOf: model)
    let evaluation = try classifier.evaluate(on: ImageFolder(at: photos))
    print(evaluation.accuracy, evaluation.accuracyInterval)
    for metrics in evaluation.perLabel {
        print(metrics.label, metrics.precision ?? .nan, metrics.recall ?? .nan)
    }
    // Example ends
}

private func asynchronousEvaluation(classifier: ImageClassifier, photos: ImageFolder) async throws -> Evaluation {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/EvaluateAModel.md begins
    let evaluation = try await classifier.evaluate(on: photos) { done in
        print("\(done) of \(photos.items.count) photos")
    }
    // Example ends
    return evaluation
}

private func detectorEvaluation(detector: ImageClassifier, boxes: URL) throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/EvaluateAModel.md begins
    let detection = try detector.evaluate(on: BoxAnnotations(contentsOf: boxes))
    print(detection.metrics.meanAveragePrecision ?? .nan, detection.operatingPoint.total.recall ?? .nan)
    // Example ends
}

private func crossValidation(photos: URL) async throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/EvaluateAModel.md begins
    var options = CrossValidation.Options()
    options.folds = 10
    let validation = CrossValidation(photos: try ImageFolder(at: photos), options: options)
    for try await case .finished(let result) in validation.start() {
        print(result.metrics?.accuracy.value ?? .nan, result.metrics?.accuracy.interval ?? 0...1)
    }
    // Example ends
}

private func report(classifier: ImageClassifier, evaluation: Evaluation) throws {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/EvaluateAModel.md begins
    try Report(classifier, evaluation: .singleLabel(evaluation)).write(to: URL(filePath: "report.html"))
    // Example ends
}

// MARK: The other modules

private func modelFiles() throws {
    // Example of Sources/ImprintModel/ImprintModel.docc/ImprintModel.md begins
    let model = try ModelFile(contentsOf: URL(filePath: "logo.imprint"))
    print(model.labels, model.network.name, model.training?.accuracy ?? .nan)
    try model.write(to: URL(filePath: "small.imprint"), as: .int8)
    // Example ends
}

private func images(catImage: RasterImage, dogFile: Data) throws -> InMemorySource {
    // Example of Sources/ImprintImages/ImprintImages.docc/ImprintImages.md begins
    var photos = InMemorySource(labels: ["cat", "dog"])
    try photos.append(catImage, labels: ["cat"])
    try photos.append(dogFile, labels: ["dog"], identifier: "dog/1.jpg")
    // Example ends
    return photos
}

private func artwork() throws {
    // Example of Sources/ImprintSynthesis/ImprintSynthesis.docc/ImprintSynthesis.md begins
    let artwork = try Artwork(contentsOf: URL(filePath: "logo.png"))
    print(artwork.name, artwork.notes)
    // Example ends
}

private func importedModel() throws -> ImportedModel {
    // Example of Sources/ImprintInterop/README.md begins
    // Example of Sources/ImprintInterop/ImprintInterop.docc/ImprintInterop.md begins
    var importer = ModelImporter()
    importer.labels = ["cat", "dog"]
    let imported = try importer.read(URL(filePath: "model.onnx"))
    try imported.model.write(to: URL(filePath: "model.imprint"))
    // Example ends
    return imported
}

private func importing(_ file: URL, with importer: ModelImporter) throws -> ImportedModel {
    // Example of Sources/ImprintInterop/ImprintInterop.docc/ImprintInterop.md begins
    do {
        return try importer.read(file)
    } catch let error as ImportError {
        if case .unsupported(let operators) = error.problem {
            for unsupported in operators { print(unsupported.operation, unsupported.node) }
        }
        throw error
    }
    // Example ends
}

private func export(imported: ImportedModel) throws {
    // Example of Sources/ImprintInterop/ImprintInterop.docc/ImprintInterop.md begins
    try imported.model.writeONNX(to: URL(filePath: "copy.onnx"), options: ONNXOptions(containsPreprocessing: true))
    try imported.model.writeCoreML(to: URL(filePath: "copy.mlmodel"))
    // Example ends
}

private func store(folder: URL, url: URL, digest: String, photo: URL) async throws {
    // Example of Sources/ImprintStore/ImprintStore.docc/ImprintStore.md begins
    let store = try ModelStore(at: folder)
    try await store.install(from: url, verification: Verification(sha256: digest))
    let best = try store.live().current.classify(photo)[0]
    print(best.label, best.confidence)
    // Example ends
}

private func installation() async throws -> ModelFile {
    // Example of Sources/ImprintBaseModels/ImprintBaseModels.docc/ImprintBaseModels.md begins
    let installer = BaseModelInstaller()
    if let entry = installer.entryToAccept("efficientnet-lite0") {
        print(entry.license.name, entry.license.statement)
    }
    try await installer.install("efficientnet-lite0", acceptsLicense: true) { event in
        if case .downloading(let byteCount, let total) = event { print(byteCount, total ?? 0) }
    }
    let model = try installer.bases.model(named: "efficientnet-lite0")
    // Example ends
    return model
}

private func fileErrors(url: URL) throws {
    // Example of Sources/ImprintCore/ImprintCore.docc/ImprintCore.md begins
    do {
        _ = try ImageClassifier(contentsOf: url)
    } catch let error as FileError {
        print(error.localizedDescription)
    }
    // Example ends
}

// MARK: ImprintFleet

private func fleet(server: URL, model: URL, folder: URL, keyFile: URL) async throws {
    // Example of Sources/ImprintFleet/README.md begins
    // Example of Sources/ImprintFleet/ImprintFleet.docc/ImprintFleet.md begins
    let client = try FleetClient(
        server, classifier: ImageClassifier(contentsOf: model), photos: ImageFolder(at: folder, minimumLabels: 1),
        key: keyFile)
    try await client.run { event in print(event) }
    // Example ends
}

private func fleetTask(model: URL, folder: URL, keyFile: URL) throws {
    // Example of docs/how-to/train-a-fleet.md begins
    let client = try FleetClient(
        URL(string: "https://fleet.example:8000")!, classifier: ImageClassifier(contentsOf: model),
        photos: ImageFolder(at: folder, minimumLabels: 1), key: keyFile)
    let task = Task { try await client.run { event in print(event) } }
    task.cancel()  // leaves the fleet
    // Example ends
}
