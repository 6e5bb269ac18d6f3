import Crypto
import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport

@testable import ImprintStore

/// A small model with distinctive results.
struct TestModel {
    let bytes: Data
    let sha256: String
    /// The classification of `photo`.
    let answer: [Classification]

    static let photo = RasterImage(width: 8, height: 8, filledWith: 200)

    /// Models with different parameters.
    static let all: [TestModel] = (1...4).map { seed in
        do { return try TestModel(seed: seed) } catch { preconditionFailure("\(error)") }
    }

    /// Creates a model with random parameters.
    /// - Parameters:
    ///   - scale: The factor of the parameters.
    ///   - version: The version in the model file.
    init(seed: Int, scale: Float = 1, width: Int = 4, version: Int? = nil) throws {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 8, width: 8, channels: 3))
        net.add(Convolution(outputChannels: width, kernelSize: 3, padding: .same))
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 3))
        net.add(Softmax())
        let network = try net.network()
        let parameters = try Parameters(network, seed: UInt64(seed))
        for entry in parameters.layout.entries { parameters[entry.name] = parameters[entry.name]?.map { $0 * scale } }
        var model = ModelFile(
            network: network, parameters: parameters, labels: ["A", "B", "C"],
            preprocessing: Preprocessing(width: 8, height: 8))
        model.details.version = version
        bytes = try withTemporaryFolder { folder in
            let file = folder.appending(path: "x.imprint")
            try model.write(to: file)
            return try Data(contentsOf: file)
        }
        sha256 = hexadecimal(SHA256.hash(data: bytes))
        // A model whose output is not finite has no result.
        answer = (try? ImageClassifier(model).classify(Self.photo)) ?? []
    }

    var verification: Verification {
        get throws { try Verification(sha256: sha256) }
    }

    /// Calls `body` with the URL of a file with the model.
    func inFile<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "model.imprint")
            try bytes.write(to: file)
            return try await body(file)
        }
    }

    func install(into store: ModelStore) async throws {
        try await inFile { _ = try await store.install(from: $0, verification: verification) }
    }
}

func hexadecimal(_ bytes: some Sequence<UInt8>) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

extension ModelStore {
    /// The classification of `photo` by the model in use.
    var answer: [Classification] {
        get throws { try load().classify(TestModel.photo) }
    }
}

extension DownloadLimits {
    /// Limits for tests that do not test time, because the machine may be busy.
    static var patient: DownloadLimits { DownloadLimits(interval: .seconds(300)) }
}

/// Returns the names of the model files in the folder of a store.
func modelFiles(in folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".imprint") }.sorted()
}
