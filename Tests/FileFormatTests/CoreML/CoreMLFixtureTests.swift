import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

private let fixtures = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/CoreML")

/// Models that coremltools wrote, compared to NumPy (Fixtures/make_coreml.py).
@Suite struct CoreMLFixtureTests {
    static let expected: [String: [Float]] = {
        let url = fixtures.appending(path: "expected.json")
        return (try? JSONDecoder().decode([String: [Float]].self, from: Data(contentsOf: url))) ?? [:]
    }()

    private let samples: [UInt8] = (0..<216).map { index in UInt8(index * 37 % 256) }

    @Test("Probabilities equal those of NumPy", arguments: expected.keys.sorted())
    func probabilities(name: String) throws {
        let imported = try ModelImporter().read(fixtures.appending(path: name))
        let expected = try #require(Self.expected[name])
        // The fixtures compute no sums in float16: only weights are float16, and they are exact.
        #expect(maximumDifference(try imported.model.result(samples), expected) < 1e-5)
        let labels = name.hasPrefix("network") ? ["7", "8", "9"] : ["a", "b", "c", "d"]
        #expect(imported.model.labels == Array(labels.prefix(expected.count)))
        #expect(imported.notes.isEmpty)
        #expect(imported.model.preprocessing.scale == [0.015625, 0.015625, 0.015625])
        #expect(imported.model.preprocessing.mean == [96, 128, 160])
    }

    @Test("All fixtures exist")
    func all() { #expect(Self.expected.count == 8) }

    @Test(
        "An imported model survives a round trip as a model file",
        arguments: ["network-bgr.mlmodel", "program.mlpackage"])
    func writes(name: String) throws {
        let imported = try ModelImporter().read(fixtures.appending(path: name))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try imported.model.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.network == imported.model.network)
            #expect(try read.result(samples) == imported.model.result(samples))
        }
    }

    @Test("Weights that are missing or outside of the package are rejected")
    func outside() throws {
        try withTemporaryFolder { folder in
            let package = folder.appending(path: "model.mlpackage")
            try FileManager.default.copyItem(at: fixtures.appending(path: "program.mlpackage"), to: package)
            let weightFile = package.appending(path: "Data/com.apple.CoreML/weights/weight.bin")
            let elsewhere = folder.appending(path: "weight.bin")
            try FileManager.default.moveItem(at: weightFile, to: elsewhere)
            #expect(throws: FileError.self) { try ModelImporter().read(package) }
            try FileManager.default.createSymbolicLink(at: weightFile, withDestinationURL: elsewhere)
            let error = #expect(throws: ImportError.self) { try ModelImporter().read(package) }
            #expect(error?.description.contains("expected a file in the model's folder") == true)
        }
    }

    @Test(
        "A manifest without a model, or with one outside of the package, is rejected",
        arguments: [
            "{}", "not JSON", #"{"itemInfoEntries":{"a":{"path":"../../model.mlmodel"}},"rootModelIdentifier":"a"}"#,
        ])
    func manifest(text: String) throws {
        try withTemporaryFolder { folder in
            let package = folder.appending(path: "model.mlpackage")
            try FileManager.default.createDirectory(at: package, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: package.appending(path: "Manifest.json"))
            #expect(throws: ImportError.self) { try ModelImporter().read(package) }
        }
    }
}
