import Foundation
import ImprintInterop
import ImprintModel

/// What the bytes that libFuzzer makes up are read as.
enum Format: String, CaseIterable {
    /// A file whose format the reader finds out itself: ONNX or Core ML.
    case file
    /// A Core ML package: how many bytes the model has, in four, the model, and the file of weights.
    case program
    /// A Caffe model: how many bytes the architecture has, in four, the architecture, and the weights.
    case caffe
    /// A model file of Imprint's own.
    case imprint

    /// What the environment asks for.
    static let chosen = ProcessInfo.processInfo.environment["IMPRINT_FUZZ"].flatMap(Format.init)

    /// Files in memory, for the readers take files.
    static let folder = URL(filePath: "/dev/shm/imprint-fuzz-\(ProcessInfo.processInfo.processIdentifier)")
    private static let package = folder.appending(path: "model.mlpackage")
    private static let data = package.appending(path: "Data")

    /// Makes the folder and what never changes in it.
    static func prepare() throws {
        try FileManager.default.createDirectory(
            at: data.appending(path: "weights"), withIntermediateDirectories: true)
        try Data(#"{"itemInfoEntries":{"m":{"path":"model.mlmodel"}},"rootModelIdentifier":"m"}"#.utf8)
            .write(to: package.appending(path: "Manifest.json"))
    }

    /// Reads bytes; errors are what is expected.
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
        case .imprint:
            try bytes.write(to: model)
            _ = try ModelFile(contentsOf: model)
        }
    }

    /// The first part, whose length comes first, and the rest.
    private func parts(_ bytes: Data) -> (Data, Data) {
        let length = bytes.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        let rest = bytes.dropFirst(4)
        return (Data(rest.prefix(length)), Data(rest.dropFirst(length)))
    }
}
