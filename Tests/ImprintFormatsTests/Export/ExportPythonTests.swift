import Foundation
import ImprintInterop
import ImprintModel
import TestSupport
import Testing

/// Other programs read what is exported, and say the same of images as Imprint does.
@Suite(
    .enabled(
        if: Python.readsExports, "IMPRINT_PYTHON names no Python with onnx, onnxruntime and coremltools; see ./run"))
struct ExportPythonTests {
    /// What Python found.
    private struct Report: Decodable {
        /// For each file the greatest difference from Imprint's confidences.
        let differences: [String: Double]
        /// For each file what is wrong with it.
        let problems: [String: [String]]
        /// The Core ML files' versions of the specification.
        let versions: [String: Int]
    }

    /// Starting Python and its packages takes longest, so they are asked about all files at once.
    private static let report = Swift.Result {
        try withTemporaryFolder { folder in
            for item in ExportCase.all { try write(item, to: folder) }
            for item in ExportCase.onnxOnly { try write(item, to: folder, hasCoreML: false) }
            let names = try JSONEncoder().encode((ExportCase.all + ExportCase.onnxOnly).map(\.name))
            try names.write(to: folder.appending(path: "cases.json"))
            let output = try Python.output(of: "ImprintFormatsTests/Fixtures/check_exports.py", [folder.path])
            return try JSONDecoder().decode(Report.self, from: output)
        }
    }

    private static func write(_ item: ExportCase, to folder: URL, hasCoreML: Bool = true) throws {
        func file(_ ending: String) -> URL { folder.appending(path: "\(item.name)\(ending)") }
        func numbers(_ values: [Float]) -> Data { values.withUnsafeBytes { Data($0) } }
        let shape = item.network.input
        try JSONEncoder().encode([ExportCase.batch, shape.height, shape.width, shape.channels])
            .write(to: file(".shape"))
        try Data(item.samples).write(to: file(".samples"))
        for (rounded, ending) in [(false, ""), (true, "-half")] {
            let weights = try item.weights(rounded: rounded)
            let precision: Safetensors.Precision = rounded ? .float16 : .float32
            let (inputs, outputs) = try item.predictions(weights)
            try numbers(inputs).write(to: file(".normalized"))
            try numbers(outputs).write(to: file("\(ending).expected"))
            try weights.writeONNX(to: file("\(ending).onnx"), options: ONNXOptions(precision: precision))
            guard hasCoreML else { continue }
            try weights.writeCoreML(to: file("\(ending).mlmodel"), options: CoreMLOptions(precision: precision))
        }
        try item.weights().writeONNX(
            to: file("-samples.onnx"), options: ONNXOptions(containsPreprocessing: true))
    }

    @Test(
        "ONNX passes its checker, and ONNX Runtime says the same within 0.00001",
        arguments: ExportCase.all + ExportCase.onnxOnly)
    func onnx(_ item: ExportCase) throws {
        let report = try Self.report.get()
        for ending in ["", "-half", "-samples"] {
            let file = "\(item.name)\(ending).onnx"
            #expect(report.problems[file] == [], "\(file)")
            #expect(try #require(report.differences[file]) < 1e-5, "\(file)")
        }
    }

    @Test("Core ML's messages compute the same in NumPy within 0.0001", arguments: ExportCase.all)
    func coreML(_ item: ExportCase) throws {
        let report = try Self.report.get()
        for (ending, version) in [("", 1), ("-half", 2)] {
            let file = "\(item.name)\(ending).mlmodel"
            #expect(report.problems[file] == [], "\(file)")
            #expect(try #require(report.differences[file]) < 1e-4, "\(file)")
            #expect(report.versions[file] == max(version, item.coreMLVersion), "\(file)")
        }
    }
}

extension Python {
    /// Whether it has what reads exported models.
    static let readsExports = has("onnx", "onnxruntime", "coremltools")
}
