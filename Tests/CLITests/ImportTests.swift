import Foundation
import ImprintModel
import TestSupport
import Testing

@Suite struct ImportTests {
    private static let fixtures = packageFolder.appending(path: "Tests/FileFormatTests/Fixtures")

    /// Copies fixtures into a folder.
    private func copy(_ names: String..., to folder: URL) throws {
        for name in names {
            let source = Self.fixtures.appending(path: name)
            try FileManager.default.copyItem(at: source, to: folder.appending(path: source.lastPathComponent))
        }
    }

    @Test(
        "import writes the model, and reports it as text or JSON",
        arguments: [
            ("gemm.onnx", "--labels a,b,c --mean 96,128,160 --scale 0.015625"),
            ("packed.caffemodel --prototxt packed.prototxt", "--labels labels.txt --crop-and-scale scale-fill"),
        ])
    func imports(file: String, options: String) throws {
        try withTemporaryFolder { folder in
            try copy("ONNX/gemm.onnx", "Caffe/packed.caffemodel", "Caffe/packed.prototxt", to: folder)
            try Data("a\nb\nc\n".utf8).write(to: folder.appending(path: "labels.txt"))
            let run = try shell("$imprint import \(file) \(options) --output m.imprint", folder: folder)
            #expect(run.status == 0 && run.output.isEmpty, "\(run.errors)")
            #expect(run.errors.contains("m.imprint has ") && run.errors.contains(" layers and 3 labels."))
            let line = try #require(
                try shell("$imprint import \(file) \(options) --output again.imprint --json", folder: folder).lines
                    .first)
            #expect(
                line.keys.sorted() == [
                    "event", "input", "labels", "layers", "notes", "output", "parameters", "unsupported",
                ])
            #expect(line["event"] as? String == "finished" && line["output"] as? String == "again.imprint")
            #expect(line["labels"] as? [String] == ["a", "b", "c"] && line["input"] as? [Int] == [9, 8, 3])

            let model = try ModelFile(contentsOf: folder.appending(path: "m.imprint"))
            #expect(model.network.nodes.count == line["layers"] as? Int)
            #expect(model.preprocessing.cropAndScale == (options.contains("fill") ? .scaleFill : .centerCrop))
            #expect(model.preprocessing.mean == (options.contains("--mean") ? [96, 128, 160] : [123, 117, 104]))
            #expect(
                try Data(contentsOf: folder.appending(path: "m.imprint"))
                    == Data(contentsOf: folder.appending(path: "again.imprint")))
        }
    }

    @Test(
        "If options specify only a part of the normalization, notes state the assumed rest",
        arguments: [
            ("--mean 3", ["Samples are not scaled; --scale sets a factor."]),
            ("--scale 0.5", ["No mean is subtracted from samples; --mean sets one."]),
            (
                "--bgr",
                [
                    "No mean is subtracted from samples; --mean sets one.",
                    "Samples are not scaled; --scale sets a factor.",
                ]
            ),
            ("--mean 3 --scale 0.5", []),
        ])
    func assumptions(options: String, notes: [String]) throws {
        try withTemporaryFolder { folder in
            try copy("ONNX/gemm.onnx", to: folder)
            let run = try shell("$imprint import gemm.onnx --output m --labels a,b,c \(options) --json", folder: folder)
            let line = try #require(run.lines.first, "\(run.errors)")
            let allNotes = try #require(line["notes"] as? [String])
            #expect(allNotes.filter { $0.contains("amples") } == notes)
            #expect(run.errors == allNotes.map { $0 + "\n" }.joined())
        }
    }

    @Test(
        "Invalid models and options are errors, and no file is written",
        arguments: [
            ("gemm.onnx --output m --mean 1,2", 64, "--mean is 1,2"),
            ("gemm.onnx --output m --input-size 0", 64, "--input-size"),
            ("gemm.onnx --output ./gemm.onnx", 64, "the file is the model to import"),
            ("gemm.onnx --output m --labels a,b", 1, "--labels sets the labels."),
            ("gemm.onnx --output m --labels none.txt", 1, "none.txt: cannot be read (No such file or directory)"),
            ("gemm.onnx --output m --labels a,,c", 64, "has an empty label"),
            ("gemm.onnx --output m --labels gemm.onnx", 1, "it is not a list of labels in UTF-8"),
            ("gemm.onnx --output m --labels large.txt", 1, "it has more than 16777216 bytes, expected a smaller list"),
            ("gemm.onnx --output m --labels /dev/zero", 1, "/dev/zero: cannot be read (it is a device"),
            ("gemm.onnx --output packed.prototxt", 64, "the file exists and is not a model file"),
            ("packed.caffemodel --output m", 1, "--prototxt names the file."),
            ("missing.onnx --output m", 1, "missing.onnx"),
            ("packed.prototxt --output m", 1, "not a model file that Imprint can import"),
            ("gemm.onnx --prototxt packed.prototxt --output m", 64, "Leave out --prototxt."),
            ("packed.caffemodel --prototxt packed.prototxt --bgr --output m", 64, "Leave out --bgr."),
            ("zip.pth --output m", 1, "--architecture sets it."),
            ("zip.pth --architecture none --output m", 64, "--architecture is none, expected one of resnet-18, "),
            ("gemm.onnx --architecture resnet-18 --output m", 64, "Leave out --architecture."),
            ("zip.pth --architecture resnet-18 --prototxt packed.prototxt --output m", 64, "Leave out --prototxt."),
            (". --output m", 1, "a folder without a Manifest.json"),
        ])
    func refusals(arguments: String, status: Int32, message: String) throws {
        try withTemporaryFolder { folder in
            try copy(
                "ONNX/gemm.onnx", "Caffe/packed.caffemodel", "Caffe/packed.prototxt", "Checkpoints/zip.pth", to: folder)
            // A sparse file.
            let large = folder.appending(path: "large.txt")
            try Data().write(to: large)
            try FileHandle(forWritingTo: large).truncate(atOffset: (16 << 20) + 1)
            let run = try shell("$imprint import \(arguments)", folder: folder)
            #expect(run.status == status && run.errors.contains(message), "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "m").path))
        }
    }

    @Test("import --json lists unsupported operators")
    func failureLine() throws {
        try withTemporaryFolder { folder in
            try copy("ONNX/unsupported.onnx", to: folder)
            let run = try imprint("import", "unsupported.onnx", "--output", "m", "--json", folder: folder)
            #expect(run.status == 1 && run.lines.count == 1 && run.lines.first?["event"] as? String == "failed")
            let found = run.lines.first?["unsupported"] as? [[String: String]]
            #expect(
                found == [
                    ["operation": "InstanceNormalization", "node": "instance"],
                    ["operation": "ArgMax", "node": "arg"],
                ])
            #expect(run.errors.contains(#"ArgMax "arg""#))
        }
    }
}
