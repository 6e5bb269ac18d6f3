import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Mutated valid files: thousands of each format are read or rejected, within limits of time and memory.
@Suite struct MutatedModelTests {
    /// The number of files of each format; `IMPRINT_MUTANTS` sets another one for longer runs.
    private static let count = ProcessInfo.processInfo.environment["IMPRINT_MUTANTS"].flatMap { Int($0) } ?? 2000

    /// Writes the original files to the folder in an environment variable, as seeds for the fuzz targets of these names.
    @Test(.enabled(if: seedFolder != nil)) func seeds() throws {
        guard let seedFolder = Self.seedFolder.map({ URL(filePath: $0) }) else { return }
        func write(_ kind: String, _ seeds: [[UInt8]]) throws {
            let folder = seedFolder.appending(path: kind)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for (index, seed) in seeds.enumerated() { try Data(seed).write(to: folder.appending(path: "\(index)")) }
        }
        func joined(_ first: [UInt8], _ second: [UInt8]) -> [UInt8] {
            withUnsafeBytes(of: UInt32(first.count).littleEndian, Array.init) + first + second
        }
        try write("onnx", SeedModels.onnx())
        try write("core_ml", SeedModels.coreML())
        try write("core_ml_package", programs().map { joined($0[0], $0[1]) })
        try write("caffe", SeedModels.caffe().map { joined($0.prototxt, $0.weights) })
        // The first byte selects the architecture.
        let squeezeNet = try CheckpointSample.squeezeNet()
        let architecture = UInt8(try #require(ModelImporter.architectures.firstIndex(of: "squeezenet-1.1")))
        let checkpoints =
            try ["zip.pth", "legacy.pth", "wrapped.pth", "tensors.safetensors"].map(CheckpointSample.bytes)
            + [CheckpointSample.archive(squeezeNet), CheckpointSample.legacy(squeezeNet)]
        try write("pytorch", checkpoints.map { [architecture] + $0 })
        try write("model_file", [SeedModels.modelFile()])
    }

    private static let seedFolder = ProcessInfo.processInfo.environment["IMPRINT_FUZZING_SEEDS"]

    /// Calls `body` with a new mutator for each iteration, and checks that most files are rejected, but not all.
    private func mutate(
        _ name: String, _ body: (_ mutator: inout ModelMutator, _ iteration: Int) throws -> ImportTrial
    ) throws {
        var refused = 0
        for iteration in 0..<Self.count {
            var mutator = ModelMutator(name, iteration)
            if try body(&mutator, iteration).error != nil { refused += 1 }
        }
        #expect(refused > Self.count / 2 && refused < Self.count)
    }

    /// Mutates single-file models of one format.
    /// - Parameter bitsPerWeight: The minimum number of bits per weight in the files.
    private func mutateFiles(_ name: String, _ seeds: [[UInt8]], bitsPerWeight: Int) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            for seed in seeds {
                try Data(seed).write(to: url)
                let trial = ImportTrial(url)
                #expect(trial.error == nil)
                trial.check(weights: seed.count * 32 / bitsPerWeight, name)
            }
            try mutate(name) { mutator, iteration in
                let bytes = mutator.message(seeds[iteration % seeds.count], seeds[mutator.index(below: seeds.count)])
                try Data(bytes).write(to: url)
                let trial = ImportTrial(url)
                trial.check(weights: bytes.count * 32 / bitsPerWeight, "\(name) \(iteration)")
                return trial
            }
        }
    }

    @Test("A damaged ONNX file is read or rejected within the limits of time and memory")
    func onnx() throws {
        try mutateFiles("ONNX", SeedModels.onnx(), bitsPerWeight: 8)
    }

    @Test("A damaged Core ML network is read or rejected within the limits of time and memory")
    func coreMLNetworks() throws { try mutateFiles("Core ML", SeedModels.coreML(), bitsPerWeight: 1) }

    private let parts = [
        "Data/com.apple.CoreML/model.mlmodel", "Data/com.apple.CoreML/weights/weight.bin", "Manifest.json",
    ]
    private let packages = ["program", "program-lookup4", "program-linear8", "operations"].map {
        packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/CoreML/\($0).mlpackage")
    }

    /// Returns the files of each package.
    private func programs() throws -> [[[UInt8]]] {
        try packages.map { package in
            try parts.map { [UInt8](try Data(contentsOf: package.appending(path: $0))) }
        }
    }

    @Test("A damaged Core ML program is read or rejected within the limits of time and memory")
    func coreMLPrograms() throws {
        let seeds = try programs()
        try withTemporaryFolder { folder in
            let copies = try packages.map { package in
                let copy = folder.appending(path: package.lastPathComponent)
                try FileManager.default.copyItem(at: package, to: copy)
                return copy
            }
            for copy in copies { #expect(ImportTrial(copy).error == nil) }
            try mutate("program") { mutator, iteration in
                let index = iteration % seeds.count
                // Most often the model, which has the most content.
                let part = [0, 0, 0, 1, 2][mutator.index(below: 5)]
                let (whole, other) = (seeds[index][part], seeds[mutator.index(below: seeds.count)][part])
                let bytes = part == 0 ? mutator.message(whole, other) : mutator.bytes(whole, other)
                let url = copies[index].appending(path: parts[part])
                try Data(bytes).write(to: url)
                let trial = ImportTrial(copies[index])
                trial.check(weights: (bytes.count + seeds[index][1].count) * 32, "program \(iteration)")
                try Data(whole).write(to: url)
                return trial
            }
        }
    }

    @Test("A damaged Caffe model is read or rejected within the limits of time and memory")
    func caffe() throws {
        let seeds = SeedModels.caffe()
        try withTemporaryFolder { folder in
            let (weights, prototxt) = (folder.appending(path: "weights"), folder.appending(path: "prototxt"))
            var importer = ModelImporter()
            importer.prototxt = prototxt
            for seed in seeds {
                try Data(seed.weights).write(to: weights)
                try Data(seed.prototxt).write(to: prototxt)
                let trial = ImportTrial(weights, importer)
                #expect(trial.error == nil)
            }
            try mutate("Caffe") { mutator, iteration in
                let (seed, other) = (seeds[iteration % seeds.count], seeds[mutator.index(below: seeds.count)])
                var (text, bytes) = seed
                if iteration % 4 < 2 {
                    text = mutator.text(text, other.prototxt)
                } else {
                    bytes = mutator.message(bytes, other.weights)
                }
                try Data(bytes).write(to: weights)
                try Data(text).write(to: prototxt)
                let trial = ImportTrial(weights, importer)
                trial.check(weights: bytes.count, "Caffe \(iteration)")
                return trial
            }
        }
    }

    @Test("A damaged model file is read or rejected within the limits of time and memory")
    func modelFiles() throws {
        let seed = try SeedModels.modelFile()
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            // The name is a part of the random seed.
            try mutate("model file") { mutator, iteration in
                let bytes = mutator.bytes(seed, seed)
                try Data(bytes).write(to: url)
                let trial = ImportTrial { _ = try ModelFile(contentsOf: url) }
                trial.check(weights: bytes.count, "model file \(iteration)")
                return trial
            }
        }
    }
}
