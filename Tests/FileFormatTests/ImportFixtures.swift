import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// A folder of models that a script made, with their expected confidences for one image.
struct ImportFixtures {
    let folder: URL
    /// The expected confidences by model name.
    let expected: [String: [Float]]

    /// Reads the expected confidences.
    /// - Parameter name: The folder in Fixtures.
    init(_ name: String) {
        folder = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures/\(name)")
        expected =
            (try? JSONDecoder().decode(
                [String: [Float]].self, from: Data(contentsOf: folder.appending(path: "expected.json")))) ?? [:]
    }

    /// The image of 9 rows and 8 columns that the scripts use.
    static let samples: [UInt8] = (0..<216).map { index in UInt8(index * 37 % 256) }

    /// An importer with the input normalization of the scripts.
    static var importer: ModelImporter {
        var importer = ModelImporter()
        importer.normalization = ModelImporter.InputNormalization(mean: [96, 128, 160], scale: [1 / 64])
        return importer
    }

    /// Checks the confidences of a model.
    func check(_ imported: ImportedModel, as name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let expected = try #require(expected[name], sourceLocation: sourceLocation)
        let found = try imported.model.result(Self.samples)
        #expect(maximumDifference(found, expected) < 1e-5, "\(found)", sourceLocation: sourceLocation)
    }
}
