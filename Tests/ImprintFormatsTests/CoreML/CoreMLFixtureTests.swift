import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

private let fixtures = packageFolder.appending(path: "Tests/ImprintFormatsTests/Fixtures/CoreML")

/// Models that coremltools wrote, against what NumPy makes of the same numbers (Fixtures/make_coreml.py).
@Suite struct CoreMLFixtureTests {
    static let expected: [String: [Float]] = {
        let url = fixtures.appending(path: "expected.json")
        return (try? JSONDecoder().decode([String: [Float]].self, from: Data(contentsOf: url))) ?? [:]
    }()

    private let samples: [UInt8] = (0..<216).map { place in UInt8(place * 37 % 256) }

    @Test("Probabilities are those of NumPy", arguments: expected.keys.sorted())
    func probabilities(name: String) throws {
        let model = try ModelImporter().read(fixtures.appending(path: name))
        let expected = try #require(Self.expected[name])
        // Of sums in float16 the fixtures hold none: weights alone are rounded, to numbers that 16 bits hold.
        #expect(greatestDifference(try model.weights.result(samples), expected) < 1e-5)
        let labels = name.hasPrefix("network") ? ["7", "8", "9"] : ["a", "b", "c", "d"]
        #expect(model.weights.labels == Array(labels.prefix(expected.count)))
        #expect(model.notes.isEmpty)
        #expect(model.weights.preprocessing.scale == [0.015625, 0.015625, 0.015625])
        #expect(model.weights.preprocessing.mean == [96, 128, 160])
    }

    @Test("All kinds of fixtures are there")
    func all() { #expect(Self.expected.count == 8) }

    @Test(
        "What was imported is a weights file that comes back as it was",
        arguments: ["network-bgr.mlmodel", "program.mlpackage"])
    func writes(name: String) throws {
        let model = try ModelImporter().read(fixtures.appending(path: name))
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try model.weights.write(to: url)
            let read = try ModelFile(contentsOf: url)
            #expect(read.network == model.weights.network)
            #expect(try read.result(samples) == model.weights.result(samples))
        }
    }

    @Test("Weights outside of the package, or none, are refused")
    func outside() throws {
        try withTemporaryFolder { folder in
            let package = folder.appending(path: "model.mlpackage")
            try FileManager.default.copyItem(at: fixtures.appending(path: "program.mlpackage"), to: package)
            let weights = package.appending(path: "Data/com.apple.CoreML/weights/weight.bin")
            let elsewhere = folder.appending(path: "weight.bin")
            try FileManager.default.moveItem(at: weights, to: elsewhere)
            #expect(throws: FileError.self) { try ModelImporter().read(package) }
            try FileManager.default.createSymbolicLink(at: weights, withDestinationURL: elsewhere)
            let error = #expect(throws: ImportError.self) { try ModelImporter().read(package) }
            #expect(error?.description.contains("expected one in its own folder") == true)
        }
    }

    @Test(
        "A list that names no model, or one elsewhere, is refused",
        arguments: [
            "{}", "nothing", #"{"itemInfoEntries":{"a":{"path":"../../model.mlmodel"}},"rootModelIdentifier":"a"}"#,
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
