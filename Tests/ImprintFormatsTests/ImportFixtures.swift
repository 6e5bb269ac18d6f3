import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// A folder of models that a script made, with what they give for one image.
struct ImportFixtures {
    let folder: URL
    /// The confidences by the models' names.
    let expected: [String: [Float]]

    /// - Parameter name: The folder in Fixtures.
    init(_ name: String) {
        folder = packageFolder.appending(path: "Tests/ImprintFormatsTests/Fixtures/\(name)")
        expected =
            (try? JSONDecoder().decode(
                [String: [Float]].self, from: Data(contentsOf: folder.appending(path: "expected.json")))) ?? [:]
    }

    /// The image of 9 rows and 8 columns that the scripts take.
    static let samples: [UInt8] = (0..<216).map { place in UInt8(place * 37 % 256) }

    /// An importer with the numbers by which the scripts prepare it.
    static var importer: ModelImporter {
        var importer = ModelImporter()
        importer.normalization = ModelImporter.InputNormalization(mean: [96, 128, 160], scale: [1 / 64])
        return importer
    }

    /// Checks a model's confidences.
    func check(_ model: ImportedModel, as name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let expected = try #require(expected[name], sourceLocation: sourceLocation)
        let found = try model.weights.result(Self.samples)
        #expect(greatestDifference(found, expected) < 1e-5, "\(found)", sourceLocation: sourceLocation)
    }
}
