import Foundation
import Imprint
import ImprintBaseModels
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import ImprintTraining

// The examples of the guides to training, word for word; DocumentedExampleTests compares them with the pages.

private func builtInBase(_ configuration: inout ClassifierConfiguration) throws {
    // Example of docs/explanation/base.md begins
    configuration.start = .base(try .builtInBase(), trainableLayers: .all)
    // Example ends
}

private func compositing(photos: [TrainingPhoto]) throws -> [Composite] {
    // Example of docs/explanation/compositing.md begins
    let artwork = try Artwork(contentsOf: URL(filePath: "logo.png"))
    let backdrops = try Backdrops(photos, size: 224, workers: Workers(2))  // photos: [TrainingPhoto]
    let compositor = Compositor(artworks: [artwork], backdrops: backdrops, seed: 1)
    let composite = try compositor.positive(0)  // image, logo (x, y and diameter `span` in pixels), kind
    let hardNegative = try compositor.hardNegative(0)  // logo is nil
    // Example ends
    return [composite, hardNegative]
}

private func matching(logo: URL, photo: URL) throws {
    // Example of docs/explanation/matching.md begins
    let matcher = try ArtworkMatcher(["Logo": [try Artwork(contentsOf: logo)]])
    for object in try matcher.detect(photo) {
        print(object.label, object.confidence, object.box)
    }
    // Example ends
}

private func fineTuning(file: URL) throws -> ClassifierConfiguration {
    // Example of docs/explanation/transfer.md begins
    var configuration = ClassifierConfiguration()
    configuration.start = .base(try ModelFile(contentsOf: file), trainableLayers: .headFirst)
    configuration.fineTuning = FineTuning(layerDecay: 0.4, stageEpochs: 3)
    // Example ends
    return configuration
}

private func boxes(model: URL) throws {
    // Example of docs/how-to/annotations.md begins
    let annotations = try BoxAnnotations(contentsOf: URL(filePath: "boxes.json"))
    let trainer = DetectorTrainer(annotations: annotations)
    let evaluation = try ImageClassifier(contentsOf: model).evaluate(on: annotations)
    print(evaluation.metrics.meanAveragePrecision50 ?? 0, evaluation.operatingPoint.total.recall ?? 0)
    // Example ends
    print(trainer)
}

private func boxesInMemory(url: URL) throws -> BoxAnnotations {
    // Example of docs/how-to/annotations.md begins
    let box = NormalizedRectangle(x: 0.1, y: 0.2, width: 0.3, height: 0.4)
    let photo = AnnotatedPhoto(url: url, width: 640, height: 480, objects: [.init(label: "car", box: box)])
    let annotations = try BoxAnnotations(labels: ["car"], photos: [photo])
    // Example ends
    return annotations
}

private func audit(photos: URL, annotations: URL) throws {
    // Example of docs/how-to/audit-photos.md begins
    let audit = try Audit(ImageFolder(at: photos), threads: 4)
    for finding in audit.findings { print(finding.kind.title, finding.names, finding.reason) }

    let boxes = try BoxAnnotations(contentsOf: annotations, recordsProblems: true)
    print(Audit(boxes).objects.map { "\($0.label): \($0.objects)" })
    // Example ends
}

private func augmentation(_ configuration: inout ClassifierConfiguration) throws {
    // Example of docs/how-to/augmentation.md begins
    configuration.augmentation = Augmentation([.flip, .rotate, .crop])
    configuration.augmentation = try Augmentation(named: "flip,rotate,crop")
    // Example ends
}

private func pretrained() async throws -> ClassifierConfiguration {
    // Example of docs/how-to/base-models.md begins
    let installer = BaseModelInstaller()
    try await installer.install("efficientnet-lite0", acceptsLicense: true) { event in print(event) }

    var configuration = ClassifierConfiguration()
    configuration.start = .pretrained(try BaseModels().model(named: "efficientnet-lite0"))
    // Example ends
    return configuration
}

private func checkpoints(photos: URL, model: URL) async throws {
    // Example of docs/how-to/checkpoints.md begins
    let checkpoints = CheckpointOptions(folder: URL(filePath: "checkpoints"), interval: .seconds(60), resumes: true)
    let trainer = ClassifierTrainer(photos: try ImageFolder(at: photos), checkpoints: checkpoints)
    for try await case .finished(let result) in trainer.start() {
        try result.model.write(to: model)
    }
    // Example ends
}

private func crossValidation(list: URL) async throws {
    // Example of docs/how-to/cross-validation.md begins
    var options = CrossValidation.Options()
    options.folds = 5
    let validation = CrossValidation(photos: try LabelList(at: list), options: options)
    for try await event in validation.start() {
        if case .finished(let result) = event { print(result.metrics?.accuracy.value ?? 0) }
    }
    // Example ends
}

private func report(classifier: ImageClassifier, photos: URL) throws {
    // Example of docs/how-to/report.md begins
    let evaluation = try classifier.evaluate(on: ImageFolder(at: photos))
    try Report(classifier, evaluation: .singleLabel(evaluation)).write(to: URL(filePath: "report.html"))
    // Example ends
}

private func photosInMemory(image: RasterImage, data: Data) throws -> ClassifierTrainer {
    // Example of docs/how-to/training-data.md begins
    var photos = InMemorySource(labels: ["cat", "dog"])
    try photos.append(image, labels: ["cat"])  // a RasterImage
    try photos.append(data, labels: ["dog"], identifier: "dogs/2.jpg")  // the bytes of an image file
    let trainer = ClassifierTrainer(photos: photos)
    // Example ends
    return trainer
}

private func hyperparameters(photos: URL) throws -> ClassifierTrainer {
    // Example of docs/reference/hyperparameters.md begins
    var configuration = ClassifierConfiguration()
    configuration.epochs = 10
    configuration.augmentation = Augmentation([.flip, .rotate])
    configuration.start = .network("logonet")
    let trainer = ClassifierTrainer(photos: try ImageFolder(at: photos), configuration: configuration)
    // Example ends
    return trainer
}

private func network(_ configuration: inout ClassifierConfiguration) throws {
    // Example of docs/reference/networks.md begins
    var builder = NetworkBuilder(name: "small", input: TensorShape(height: 32, width: 32, channels: 3))
    builder.add(Convolution(outputChannels: 16, kernelSize: 3))
    builder.add(ReLU())
    builder.add(GlobalAveragePool())
    builder.add(Dense(outputChannels: 2))
    builder.add(Softmax())
    configuration.start = .untrained(try builder.network(), preprocessing: Preprocessing(width: 32, height: 32))
    // Example ends
}
