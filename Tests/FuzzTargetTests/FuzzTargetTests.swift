import Foundation
import FuzzTargets
import TestSupport
import Testing

// The targets share a folder, so they cannot run in parallel.
@Suite("Fuzz targets", .serialized) struct FuzzTargetTests {
    /// Targets whose seeds are invalid: valid models of these formats are larger than a seed should be.
    private static let withoutValidSeeds: Set<FuzzTarget> = [.pyTorch, .tensorFlowLite]

    @Test(
        "A target reads its seed corpus and accepts at least one seed",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python; ./run test sets it"),
        arguments: FuzzTarget.allCases)
    func seeds(target: FuzzTarget) throws {
        let python = try #require(Python.path)
        try withTemporaryFolder { folder in
            let script = packageFolder.appending(path: "Fuzzing/make_corpora.py").path
            let result = try run(URL(filePath: python), [script, folder.path, "--unpacked"])
            try #require(result.status == 0, "\(result.errors)")
            let dictionary = folder.appending(path: "\(target.programName).dict")
            #expect(FileManager.default.fileExists(atPath: dictionary.path))
            let corpus = folder.appending(path: "\(target.programName)_seed_corpus")
            let seeds = try FileManager.default.contentsOfDirectory(at: corpus, includingPropertiesForKeys: nil)
            #expect(!seeds.isEmpty)
            var accepted = 0
            for seed in seeds {
                let bytes = try Data(contentsOf: seed)
                if (try? bytes.withUnsafeBytes(target.read)) != nil { accepted += 1 }
            }
            #expect(accepted > 0 || Self.withoutValidSeeds.contains(target))
        }
    }

    @Test("A target rejects the empty input", arguments: FuzzTarget.allCases)
    func empty(target: FuzzTarget) {
        // Segments without content do not make a JPEG invalid.
        let isPart = target == .exif || target == .colorProfile
        let isAccepted = (try? target.read(UnsafeRawBufferPointer(start: nil, count: 0))) != nil
        #expect(isAccepted == isPart)
    }

    @Test("The name of a program selects its target")
    func names() {
        for target in FuzzTarget.allCases {
            #expect(FuzzTarget(program: target.programName) == target)
            #expect(FuzzTarget(program: "/out/\(target.programName)") == target)
        }
        #expect(FuzzTarget(program: "fuzz_core_ml_package") == .coreMLPackage)
        #expect(FuzzTarget(program: "/out/fuzz") == nil)
        #expect(FuzzTarget(program: "/fuzz_onnx/other") == nil)
        #expect(FuzzTarget(program: "") == nil)
    }
}
