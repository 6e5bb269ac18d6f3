import Foundation
import Imprint
import ImprintBaseModels
import ImprintCore
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
    let results = try await handler.perform([contentRequest, logoRequest])
    let objects = try await handler.detect([DetectionRequest(detector)])
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

private func photosInMemory(catImage: RasterImage, dogFile: Data) -> ClassifierTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    var photos = InMemorySource(labels: ["cat", "dog"])
    photos.append(catImage, labels: ["cat"])
    photos.append(dogFile, labels: ["dog"], identifier: "dog/1.jpg")
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

private func checkpoints(photos: URL, folder: URL, configuration: ClassifierConfiguration) throws -> ClassifierTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainAClassifier.md begins
    let trainer = ClassifierTrainer(
        photos: try ImageFolder(at: photos), configuration: configuration,
        checkpoints: CheckpointOptions(folder: folder, resumes: true))
    // Example ends
    return trainer
}

private func boxTraining(boxes: URL) throws -> DetectorTrainer {
    // Example of Sources/ImprintTraining/ImprintTraining.docc/TrainADetector.md begins
    var configuration = DetectorConfiguration()
    configuration.seed = 5
    let trainer = DetectorTrainer(
        artwork: [:], photos: nil, annotations: try BoxAnnotations(contentsOf: boxes), configuration: configuration)
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
    let best = try matcher.classify(photo)[0]
    print(best.label, best.confidence, best.box ?? .all)
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
    try Report(classifier.model, evaluation: evaluation).write(to: URL(filePath: "report.html"))
    // Example ends
}

// MARK: ImprintNetwork

private func networkLandingPage() throws {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/ImprintNetwork.md begins
    let network = try Network.mobileNetV2(labels: 10)
    let plan = try ExecutionPlan(
        network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
    for index in plan.input.indices { plan.input[index] = 0.5 }
    plan.forward(count: 1)
    print(plan.output.count)
    // Example ends
}

private enum CustomTypes {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    struct Scale: Layer {
        static let kind = "example.scale"
        let factor: Float

        func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
            guard inputs.count == 1 else {
                throw .inputCount(layer: "Scale", expected: "one input", found: inputs.count)
            }
            guard factor.isFinite else {
                throw .invalidProperty(
                    layer: "Scale", property: "factor", found: "\(factor)", expected: "a finite number")
            }
            return inputs[0]
        }

        var backwardReads: BackwardReads { [] }
        var inPlace: InPlace { .overwriting }

        func forward(_ context: LayerContext, batch: Int) {
            let (x, y) = (context.input.values, context.output.values)
            context.parallelFor(batch * context.output.shape.count) { range in
                for index in range { y[index] = factor * x[index] }
            }
        }

        func backward(_ context: LayerContext, batch: Int) {
            guard let dx = context.input.gradient else { return }
            let dy = context.outputGradient
            context.parallelFor(batch * context.output.shape.count) { range in
                for index in range { dx[index] = factor * dy[index] }
            }
        }
    }
    // Example ends

    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    final class LeastSquares: TrainingObjective {
        let plan: ExecutionPlan
        private let samples: [(input: [Float], target: Float)]

        init(_ network: Network, samples: [(input: [Float], target: Float)]) throws {
            self.samples = samples
            plan = try ExecutionPlan(
                network, parameters: Parameters(network, seed: 1),
                options: ExecutionPlan.Options(batchSize: 1, mode: .training))
        }

        func trainingStep(round: Int, step: Int) -> StepLoss? {
            guard step < samples.count else { return nil }
            for (index, value) in samples[step].input.enumerated() { plan.input[index] = value }
            plan.forward(count: 1)
            let error = plan.output[0] - samples[step].target
            plan.outputGradient[0] = 2 * error
            return StepLoss(loss: error * error, count: 1)
        }
    }
    // Example ends
}

private typealias Scale = CustomTypes.Scale
private typealias LeastSquares = CustomTypes.LeastSquares

// Not called: tests of ImprintNetwork check that they know all registered layers.
private func registration() {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    LayerRegistry.register(Scale.self)
    // Example ends
}

func scaledOutput() throws -> [Float] {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/AddALayer.md begins
    var builder = NetworkBuilder(name: "scaled", input: TensorShape(height: 2, width: 2, channels: 3))
    builder.add(Scale(factor: 0.5))
    builder.add(Flatten())
    let network = try builder.network()
    let plan = try ExecutionPlan(
        network, parameters: Parameters(network, seed: 1), options: ExecutionPlan.Options(batchSize: 1))
    for index in plan.input.indices { plan.input[index] = Float(index) }
    plan.forward(count: 1)
    print(Array(plan.output))
    // Example ends
    return Array(plan.output)
}

func fittedWeights(samples: [(input: [Float], target: Float)]) throws -> [Float] {
    // Example of Sources/ImprintNetwork/ImprintNetwork.docc/TrainWithAnObjective.md begins
    var builder = NetworkBuilder(name: "line", input: TensorShape(height: 1, width: 1, channels: 2))
    builder.add(Dense(outputChannels: 1), named: "line")
    let objective = try LeastSquares(builder.network(), samples: samples)
    let rounds = TrainingLoop.Rounds.epochs(.init(count: 50, steps: samples.count, learningRate: 0.05))
    let loop = try TrainingLoop(
        objective, options: TrainingLoop.Options(rounds: rounds, optimizer: .sgd(SGD.Options(momentum: 0.9))))
    _ = try loop.run(onEvent: { event in
        if case .round(let epoch, _) = event { print(epoch.epoch, epoch.loss) }
    })
    print(loop.parameters["line.weight"] ?? [])
    // Example ends
    return loop.parameters["line.weight"] ?? []
}

// MARK: The other modules

private func modelFiles() throws {
    // Example of Sources/ImprintModel/ImprintModel.docc/ImprintModel.md begins
    let model = try ModelFile(contentsOf: URL(filePath: "logo.imprint"))
    print(model.labels, model.network.name, model.training?.accuracy ?? .nan)
    try model.write(to: URL(filePath: "small.imprint"), as: .int8)
    // Example ends
}

private func images(catImage: RasterImage, dogFile: Data) -> InMemorySource {
    // Example of Sources/ImprintImages/ImprintImages.docc/ImprintImages.md begins
    var photos = InMemorySource(labels: ["cat", "dog"])
    photos.append(catImage, labels: ["cat"])
    photos.append(dogFile, labels: ["dog"], identifier: "dog/1.jpg")
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
    // Example of Sources/ImprintInterop/ImprintInterop.docc/ImprintInterop.md begins
    var importer = ModelImporter()
    importer.labels = ["cat", "dog"]
    let imported = try importer.read(URL(filePath: "model.onnx"))
    try imported.model.write(to: URL(filePath: "model.imprint"))
    // Example ends
    return imported
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
