import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Mutated PyTorch checkpoints: thousands of each format are read or rejected, within limits of time and memory.
@Suite struct MutatedCheckpointTests {
    /// The number of files of each format; `IMPRINT_MUTANTS` sets another one for longer runs.
    private static let count = ProcessInfo.processInfo.environment["IMPRINT_MUTANTS"].flatMap { Int($0) } ?? 5000

    /// Reads every tensor of mutated files, and checks that some files are accepted and some are rejected.
    private func mutate(_ name: String, _ change: (_ mutator: inout ModelMutator, _ iteration: Int) -> [UInt8]) {
        var rejected = 0
        for iteration in 0..<Self.count {
            var mutator = ModelMutator(name, iteration)
            let bytes = change(&mutator, iteration)
            let file = MappedFile(bytes, named: "model.pth")
            let trial = ImportTrial {
                do {
                    try PyTorchCheckpoint(file).readAll()
                } catch let problem as ImportError.Problem {
                    throw ImportError(path: file.path, problem: problem)
                } catch let problem as WireError {
                    // The mutated bytes are not a checkpoint.
                    throw ImportError(path: file.path, problem: .malformed(reason: "\(problem)"))
                }
            }
            trial.check(weights: bytes.count, "\(name) \(iteration)")
            if trial.error != nil { rejected += 1 }
        }
        print("\(name): \(rejected) of \(Self.count) mutated files are rejected")
        #expect(rejected > Self.count / 4 && rejected < Self.count)
    }

    /// The name of an entry and its content.
    private typealias Content = (name: String, bytes: [UInt8])

    /// Returns the pickle and the storages of an archive, which are the entries that tests mutate.
    private func contents(_ name: String) throws -> [Content] {
        let file = MappedFile(try CheckpointSample.bytes(name), named: name)
        let archive = try StoredArchive(file)
        let folder = try #require(archive.folder())
        var contents: [Content] = []
        for part in ["data.pkl"] + (0..<100).map({ "data/\($0)" }) {
            guard let entry = archive.entry("\(folder)/\(part)") else { continue }
            contents.append(("\(folder)/\(part)", Array(file.bytes(try archive.content(of: entry)))))
        }
        return contents
    }

    @Test("Archives are read or rejected")
    func archives() throws {
        let names = ["zip.pth", "zip-protocol5.pth", "wrapped.pth", "averaged.pth"]
        let files = try names.map(CheckpointSample.bytes)
        let parts = try names.map(contents)
        mutate("PyTorch archive") { mutator, iteration in
            let index = iteration % files.count
            let other = mutator.index(below: files.count)
            // Bytes of the archive, or bytes of the pickle with the right checksum.
            guard iteration % 8 < 6 else { return mutator.bytes(files[index], files[other]) }
            return CheckpointSample.archive(
                parts[index].enumerated().map { position, content in
                    CheckpointSample.Entry(
                        name: content.name,
                        content: position == 0 ? mutator.bytes(content.bytes, parts[other][0].bytes) : content.bytes)
                })
        }
    }

    @Test("Files of the legacy format are read or rejected")
    func legacy() throws {
        let files = try ["legacy.pth", "legacy-protocol4.pth"].map(CheckpointSample.bytes)
        mutate("PyTorch legacy") { mutator, iteration in
            mutator.bytes(files[iteration % files.count], files[mutator.index(below: files.count)])
        }
    }

    @Test("Checkpoints of an architecture become models or are rejected")
    func models() throws {
        let pickle = try CheckpointSample.squeezeNet()
        let (archive, legacy) = (CheckpointSample.archive(pickle), CheckpointSample.legacy(pickle))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.pth")
            var importer = ModelImporter()
            func trial(_ bytes: [UInt8], _ architecture: String?) throws -> ImportTrial {
                try Data(bytes).write(to: url)
                importer.architecture = architecture
                return ImportTrial(url, importer)
            }
            for bytes in [archive, legacy] { #expect(try trial(bytes, "squeezenet-1.1").error == nil) }
            let count = Self.count / 5
            var rejected = 0
            for iteration in 0..<count {
                var mutator = ModelMutator("PyTorch model", iteration)
                let bytes =
                    switch iteration % 4 {
                    case 0: mutator.bytes(archive, legacy)
                    case 1: mutator.bytes(legacy, archive)
                    // The pickle, with the right checksum.
                    default: CheckpointSample.archive(mutator.bytes(pickle, pickle))
                    }
                // Another architecture, or none, compares the tensors with all architectures.
                let architecture = [nil, "squeezenet-1.0"][mutator.index(below: 2)]
                let trial = try trial(bytes, mutator.index(below: 4) == 0 ? architecture : "squeezenet-1.1")
                trial.check(weights: bytes.count, "PyTorch model \(iteration)")
                if trial.error != nil { rejected += 1 }
            }
            print("PyTorch model: \(rejected) of \(count) mutated files are rejected")
            #expect(rejected > count / 4 && rejected < count)
        }
    }
}
