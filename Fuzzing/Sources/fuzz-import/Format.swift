import Foundation
import ImprintInterop
import ImprintModel

/// The file format of the bytes from libFuzzer.
enum Format: String, CaseIterable {
    /// An ONNX or Core ML file; the importer detects the format.
    case file
    /// A Core ML package: the byte count of the model (4 bytes), the model, and its weight.bin.
    case program
    /// A Caffe model: the byte count of the network (4 bytes), the network, and the weights.
    case caffe
    /// A PyTorch checkpoint in any of its formats, after a byte that selects the architecture.
    case pytorch
    /// A model file of Imprint.
    case imprint

    /// The format in the environment variable.
    static let chosen = ProcessInfo.processInfo.environment["IMPRINT_FUZZ"].flatMap(Format.init)

    /// A folder in memory, because the importers read files.
    static let folder = URL(filePath: "/dev/shm/imprint-fuzz-\(ProcessInfo.processInfo.processIdentifier)")
    private static let package = folder.appending(path: "model.mlpackage")
    private static let data = package.appending(path: "Data")

    /// Creates the folder and the files that do not depend on the fuzzed bytes.
    static func prepare() throws {
        try FileManager.default.createDirectory(
            at: data.appending(path: "weights"), withIntermediateDirectories: true)
        try Data(#"{"itemInfoEntries":{"m":{"path":"model.mlmodel"}},"rootModelIdentifier":"m"}"#.utf8)
            .write(to: package.appending(path: "Manifest.json"))
    }

    /// Reads bytes; thrown errors are expected, crashes are not.
    func read(_ bytes: Data) throws {
        let model = Self.folder.appending(path: "model")
        var importer = ModelImporter()
        switch self {
        case .file:
            try bytes.write(to: model)
            _ = try importer.read(model)
        case .program:
            let (program, weights) = parts(bytes)
            try program.write(to: Self.data.appending(path: "model.mlmodel"))
            try weights.write(to: Self.data.appending(path: "weights/weight.bin"))
            _ = try importer.read(Self.package)
        case .caffe:
            let (prototxt, weights) = parts(bytes)
            importer.prototxt = Self.folder.appending(path: "prototxt")
            try prototxt.write(to: Self.folder.appending(path: "prototxt"))
            try weights.write(to: model)
            _ = try importer.read(model)
        case .pytorch:
            let architectures = ModelImporter.architectures
            importer.architecture = bytes.first.map { architectures[Int($0) % architectures.count] }
            try bytes.dropFirst().write(to: model)
            _ = try importer.read(model)
        case .imprint:
            try bytes.write(to: model)
            _ = try ModelFile(contentsOf: model)
        }
    }

    /// Splits bytes into a part whose length precedes it, and the rest.
    private func parts(_ bytes: Data) -> (Data, Data) {
        let length = bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let rest = bytes.dropFirst(4)
        return (Data(rest.prefix(length)), Data(rest.dropFirst(length)))
    }
}
