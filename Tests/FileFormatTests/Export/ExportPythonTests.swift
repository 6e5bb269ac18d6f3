import Foundation
import ImprintInterop
import ImprintModel
import TestSupport
import Testing

/// Exported models, read by other programs and compared to Imprint's outputs.
@Suite(
    .enabled(
        if: Python.readsExports, "IMPRINT_PYTHON is not a Python with onnx, onnxruntime and coremltools; see ./run"))
struct ExportPythonTests {
    /// The results of the Python script.
    private struct Report: Decodable {
        /// The largest difference from Imprint's confidences, by file.
        let differences: [String: Double]
        /// The problems by file.
        let problems: [String: [String]]
        /// The specification versions of the Core ML files.
        let versions: [String: Int]
    }

    /// The results for all files; starting Python and its packages takes longest, so it happens only once.
    private static let report = Swift.Result {
        try withTemporaryFolder { folder in
            for item in ExportCase.all { try write(item, to: folder) }
            for item in ExportCase.onnxOnly { try write(item, to: folder, hasCoreML: false) }
            let names = try JSONEncoder().encode((ExportCase.all + ExportCase.onnxOnly).map(\.name))
            try names.write(to: folder.appending(path: "cases.json"))
            let output = try Python.output(of: "FileFormatTests/Fixtures/check_exports.py", [folder.path])
            return try JSONDecoder().decode(Report.self, from: output)
        }
    }

    private static func write(_ item: ExportCase, to folder: URL, hasCoreML: Bool = true) throws {
        func file(_ ending: String) -> URL { folder.appending(path: "\(item.name)\(ending)") }
        func data(_ values: [Float]) -> Data { values.withUnsafeBytes { Data($0) } }
        let shape = item.network.input
        try JSONEncoder().encode([ExportCase.batch, shape.height, shape.width, shape.channels])
            .write(to: file(".shape"))
        try Data(item.samples).write(to: file(".samples"))
        for (rounded, ending) in [(false, ""), (true, "-half")] {
            var model = try item.model(rounded: rounded)
            if rounded { model.details = ExportCase.details }
            let precision: Safetensors.Precision = rounded ? .float16 : .float32
            let (inputs, outputs) = try item.predictions(model)
            try data(inputs).write(to: file(".normalized"))
            try data(outputs).write(to: file("\(ending).expected"))
            try model.writeONNX(to: file("\(ending).onnx"), options: ONNXOptions(storagePrecision: precision))
            guard hasCoreML else { continue }
            try model.writeCoreML(to: file("\(ending).mlmodel"), options: CoreMLOptions(storagePrecision: precision))
        }
        try item.model().writeONNX(
            to: file("-samples.onnx"), options: ONNXOptions(containsPreprocessing: true))
    }

    @Test(
        "ONNX files pass the checker, and ONNX Runtime computes the same within 0.00001",
        arguments: ExportCase.all + ExportCase.onnxOnly)
    func onnx(_ item: ExportCase) throws {
        let report = try Self.report.get()
        for ending in ["", "-half", "-samples"] {
            let file = "\(item.name)\(ending).onnx"
            #expect(report.problems[file] == [], "\(file)")
            #expect(try #require(report.differences[file]) < 1e-5, "\(file)")
        }
    }

    @Test("Core ML files give the same output in NumPy within 0.0001", arguments: ExportCase.all)
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
    /// Whether the packages to read exported models are installed.
    static let readsExports = has("onnx", "onnxruntime", "coremltools")
}
