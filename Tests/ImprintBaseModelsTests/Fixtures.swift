import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintStore
import ImprintTraining
import Synchronization
import TestSupport

/// A small model file that can be a base model.
struct SmallModel {
    let bytes: Data
    let sha256: String

    /// Creates a model with random parameters.
    init(seed: UInt64, channels: Int = 4) throws {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 16, width: 16, channels: 3))
        net.add(Convolution(outputChannels: channels, kernelSize: 3, padding: .same))
        net.add(GlobalAveragePool())
        net.add(Dense(outputChannels: 3))
        net.add(Softmax())
        let network = try net.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: seed), labels: ["A", "B", "C"],
            preprocessing: Preprocessing(width: 16, height: 16))
        bytes = try withTemporaryFolder { folder in
            let file = folder.appending(path: "x.imprint")
            try model.write(to: file)
            return try Data(contentsOf: file)
        }
        sha256 = SHA256.hexadecimal(of: [UInt8](bytes))
    }
}

/// An ONNX model of the file format tests: a network with three outputs, which `make_onnx.py` there wrote.
let onnxFile = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/ONNX/gemm.onnx")

/// Calls `body` with an empty folder of base models and another empty folder.
func withBases<Result>(_ body: (BaseModels, URL) async throws -> Result) async throws -> Result {
    try await withTemporaryFolder { folder in
        try await body(BaseModels(folder: folder.appending(path: "home/models")), folder)
    }
}

/// Returns the paths of all files in a folder of base models.
func files(of bases: BaseModels) -> [String] {
    let paths = FileManager.default.enumerator(atPath: bases.folder.path)?.allObjects as? [String]
    return (paths ?? []).sorted()
}

/// Returns the name of the model file of a base model.
func modelFileName(_ name: String, _ sha256: String) -> String { "\(name)@\(sha256.prefix(16)).imprint" }

/// Returns a catalog with one entry, of an ONNX file or another file.
func catalog(
    source: String, sha256: String, name: String = "small", license: String = "Test Licence"
) throws -> BaseModelCatalog {
    try BaseModelCatalog(
        json: Data(
            """
            [{"name": "\(name)", "task": "tests", "inputSize": 16, "mean": [96, 128, 160], "scale": [0.5, 0.5, 0.5],
              "parameters": 10, "downloadSize": 100, "sha256": "\(sha256)", "source": \(source),
              "license": {"name": "\(license)", "statement": "A file states it."}}]
            """.utf8))
}

/// Flips a bit in the middle of a file.
func flipBit(in file: URL) throws {
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count / 2] ^= 1
    try bytes.write(to: file)
}

/// The events of an installation.
final class Events: Sendable {
    private let storage = Mutex<[BaseInstallationEvent]>([])

    @Sendable func add(_ event: BaseInstallationEvent) { storage.withLock { $0.append(event) } }

    var all: [BaseInstallationEvent] { storage.withLock { $0 } }
}
