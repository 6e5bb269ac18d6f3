import Foundation
import Imprint
import ImprintImages
import ImprintInterop
import ImprintModel
import ImprintStore
import ImprintSynthesis
import ImprintTraining

// The examples of the guides to apps and models, word for word; DocumentedExampleTests compares them with the pages.

private func firstRequest() async throws {
    // Example of docs/how-to/apps.md begins
    let classifier = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
    let request = ClassificationRequest(classifier)
    for classification in try await request.perform(on: .file(URL(filePath: "photo.jpg"))) {
        print(classification.label, classification.confidence)
    }
    // Example ends
}

private struct Camera {
    let frames: AsyncStream<ImageSource>
}

private struct Gauge {
    func setConfidence(_ confidence: Float) { print(confidence) }
}

private func frames(classifier: ImageClassifier, camera: Camera, gauge: Gauge) async throws {
    // Example of docs/how-to/apps.md begins
    let stream = classifier.classifications(for: camera.frames, every: .seconds(1), smoothing: 0.5)
    for try await element in stream {
        let confidence = element.classifications.groupedConfidence(
            excluding: ["Other"], sumToOne: classifier.confidencesSumToOne)
        gauge.setConfidence(confidence)
    }
    // Example ends
}

private func replacement(classifier: ImageClassifier, newClassifier: ImageClassifier) {
    // Example of docs/how-to/apps.md begins
    let live = LiveClassifier(classifier)
    let request = ClassificationRequest(live)
    live.replace(with: newClassifier)  // on any thread, at any time
    // Example ends
    print(request.classifier === live)
}

private func novelty(classifier: ImageClassifier, photo: URL) async throws -> [Classification] {
    // Example of docs/how-to/apps.md begins
    if let novelty = try classifier.novelty(of: .file(photo)), novelty > 1 { print("none of these") }

    var request = ClassificationRequest(classifier)
    request.rejectsNovelImages = true
    let classifications = try await request.perform(on: .file(photo))  // empty for an image unlike the training photos
    // Example ends
    return classifications
}

private func categories(classifier: ImageClassifier, found: [Classification]) throws -> Float {
    var classifications = found
    // Example of docs/how-to/apps.md begins
    if let categories = classifier.model.categories {
        classifications = classifications.rolledUp(into: categories, sumToOne: classifier.confidencesSumToOne)
    }
    let confidence = classifications.groupedConfidence(excluding: ["Other"], sumToOne: classifier.confidencesSumToOne)
    // Example ends
    return confidence
}

private func thresholds(classifier: ImageClassifier) -> ClassificationRequest {
    // Example of docs/how-to/training-data.md begins
    let request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .perLabel))
    // Example ends
    return request
}

private func faces(photo: URL) async throws {
    // Example of docs/how-to/faces.md begins
    let detector = try ImageClassifier(contentsOf: URL(filePath: "faces.imprint"))
    for face in try await DetectionRequest(detector).perform(on: .file(photo)) {
        print(face.confidence, face.box)
    }
    // Example ends
}

private func logos(photo: URL) async throws {
    // Example of docs/how-to/logo-detection.md begins
    let detector = try ImageClassifier(contentsOf: URL(filePath: "logo.imprint"))
    for object in try await DetectionRequest(detector).perform(on: .file(photo)) {
        print(object.label, object.confidence, object.box)
    }
    // Example ends
}

private func userLogo(mine: URL, photo: URL) throws -> [DetectedObject] {
    // Example of docs/how-to/personalization.md begins
    let detector = try ImageClassifier(contentsOf: URL(filePath: "logos.imprint"))
    let result = try DetectorPersonalizer(detector, artwork: ["Mine": [try Artwork(contentsOf: mine)]]).run()
    let objects = try detector.personalized(with: result.personalization).detect(photo)
    // Example ends
    return objects
}

private func merge(model: URL, files: [URL], output: URL) throws {
    // Example of docs/how-to/merging.md begins
    let base = try ModelFile(contentsOf: model)
    let merge = try base.merging(files.map { try Personalization(contentsOf: $0) })
    try merge.model.write(to: output)
    // Example ends
}

private func precision(url: URL, photos: [URL], smallFile: URL) throws -> ImageClassifier {
    // Example of docs/how-to/precision.md begins
    let model = try ModelFile(contentsOf: url)
    let quantized = try model.quantized(for: photos)
    try quantized.model.write(to: smallFile)
    let classifier = try ImageClassifier(model, precision: .bfloat16)
    // Example ends
    return classifier
}

private func export() throws {
    // Example of docs/how-to/export.md begins
    let model = try ModelFile(contentsOf: URL(filePath: "logo.imprint"))
    try model.writeCoreML(to: URL(filePath: "Logo.mlmodel"), options: CoreMLOptions(storagePrecision: .float16))
    try model.writeONNX(to: URL(filePath: "logo.onnx"), options: ONNXOptions(containsPreprocessing: true))
    try model.write(to: URL(filePath: "small.imprint"), as: .int8)
    // Example ends
}

private func importedModel() throws {
    // Example of docs/how-to/import.md begins
    var importer = ModelImporter()
    importer.labels = ["cat", "dog"]
    let imported = try importer.read(URL(filePath: "model.onnx"))
    for note in imported.notes { print(note) }
    try imported.model.write(to: URL(filePath: "model.imprint"))
    // Example ends
}

private func store(folder: URL, digest: String, photo: URL) async throws -> Classification {
    // Example of docs/how-to/model-store.md begins
    let store = try ModelStore(at: folder)
    try await store.install(
        from: URL(string: "https://models.example/logo.imprint")!,
        verification: Verification(sha256: digest))  // of the file, as sha256sum prints it

    let live = try store.live()  // keep it: each request reads live.current
    let best = try live.current.classify(photo)[0]

    try store.rollBack()  // live.current is the previous model again
    // Example ends
    return best
}

private func signedInstallation(store: ModelStore, publicKey: String) async throws {
    // Example of docs/how-to/model-store.md begins
    let model = URL(string: "https://models.example/logo.imprint")!
    let verification = try Verification(
        modelSignature: .file(URL(string: "https://models.example/model.sig")!),
        key: VerificationKey(pem: publicKey))  // the text of public.pem
    try await store.install(from: model, verification: verification)
    // Example ends
}

private func signature(store: ModelStore, model: URL, publicKey: Data) async throws {
    // Example of docs/how-to/model-store.md begins
    let verification = try Verification(
        publicKey: publicKey,  // the 32 bytes of public.key
        signature: .file(model.appendingPathExtension("signature")))
    try await store.install(from: model, verification: verification)
    // Example ends
}

private func signing(model: URL, privateKey: URL, publicKey: URL, file: URL) throws {
    // Example of docs/how-to/sign-models.md begins
    let signature = try ModelSignature(signing: model, with: SigningKey(contentsOf: privateKey))
    try signature.write(to: file)

    let received = try ModelSignature(contentsOf: file)
    let signed = try received.verify(model, with: VerificationKey(contentsOf: publicKey))
    print(signed.files)
    // Example ends
}

/// The type that the plugin ImprintModels generates for Logo.imprint.
private enum GeneratedTypes {
    // Example of docs/how-to/typed-models.md begins
    struct Logo: Imprint.TypedModel {
        enum Label: Swift.String, Swift.CaseIterable, Swift.Sendable {
            case logo = "Logo"
            case noLogo = "NoLogo"
        }

        let classifier: Imprint.ImageClassifier

        init(threads: Swift.Int = 1) throws {
            try self.init(resource: "Logo", in: Foundation.Bundle.module, threads: threads)
        }

        init(_ classifier: Imprint.ImageClassifier) throws {
            self.classifier = try Self.checked(classifier)
        }
    }
    // Example ends
}

private typealias Logo = GeneratedTypes.Logo

extension Bundle {
    // SwiftPM generates this property for targets with resources.
    fileprivate static let module = Bundle.main
}

private func typedModel() async throws {
    // Example of docs/how-to/typed-models.md begins
    let logo = try Logo()
    let rule = ConfidenceRule(threshold: .confidence(0.7))
    switch try await logo.best(in: .file(URL(filePath: "photo.jpg")), rule: rule)?.label {
    case .logo: print("The photo shows the logo.")
    case .noLogo: print("The photo does not show the logo.")
    case nil: print("The model is not sure.")
    }
    // Example ends
}

private func newerModel(downloaded: URL) throws -> Logo {
    // Example of docs/how-to/typed-models.md begins
    let newer = try Logo(contentsOf: downloaded)
    // Example ends
    return newer
}
