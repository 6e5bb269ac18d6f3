import Foundation
import TestSupport
import Testing

@Suite struct BenchTests {
    @Test("bench --json prints one JSON object per case")
    func line() throws {
        let run = try imprint("bench", "train", "--case", "lenet-28", "--seconds", "0.1", "--json", "--threads", "1")
        #expect(run.status == 0, "\(run.errors)")
        let line = try #require(run.lines.first)
        #expect(run.lines.count == 1 && run.output.split(separator: "\n").count == 1)
        #expect(line["bench"] as? String == "train")
        #expect(line["case"] as? String == "lenet-28")
        #expect(line["threads"] as? Int == 1)
        #expect(line["unit"] as? String == "images/s")
        #expect(line["batch"] as? Int == 32 && line["precision"] == nil)
        let minimum = try #require(line["min"] as? Double)
        let median = try #require(line["median"] as? Double)
        let maximum = try #require(line["max"] as? Double)
        #expect(0 < minimum && minimum <= median && median <= maximum)
    }

    @Test(
        "The lines of predictions contain the precision",
        arguments: [([], "float32"), (["--precision", "bfloat16"], "bfloat16"), (["--precision", "int8"], "int8")])
    func precision(options: [String], expected: String) throws {
        let run = try run(
            tool, ["bench", "predict", "--case", "logo", "--seconds", "0.01", "--json", "--threads", "1"] + options)
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.lines.map { $0["case"] as? String } == ["logonet-96", "logospot-299x532"])
        let keys = [
            "batch", "bench", "case", "max", "median", "milliseconds", "min", "peakMemory", "precision", "threads",
            "unit",
        ]
        for line in run.lines {
            #expect(line["precision"] as? String == expected)
            #expect(line.keys.sorted() == keys)
        }
    }

    @Test("The lines of training steps contain a precision that was chosen", arguments: ["float32", "bfloat16"])
    func trainingPrecision(precision: String) throws {
        let run = try run(
            tool,
            ["bench", "train", "--case", "lenet-28", "--seconds", "0.01", "--json", "--precision", precision])
        #expect(run.status == 0, "\(run.errors)")
        #expect(run.lines.map { $0["precision"] as? String } == [precision])
    }

    @Test("Without --json, bench prints a table with a line per case")
    func table() throws {
        let run = try imprint("bench", "layers", "--case", "softmax", "--case", "dense", "--seconds", "0.01")
        #expect(run.status == 0, "\(run.errors)")
        let lines = run.output.split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines.first?.hasPrefix("layers ") == true)
        #expect(lines.last?.hasPrefix("softmax-cross-entropy-1000 ") == true)
        let dense = lines.filter { $0.hasPrefix("dense-2048-1000/") }
        #expect(dense.count == 4 && dense.allSatisfy { $0.contains("GFLOP/s") && $0.contains(" %") })
    }

    @Test("bench data --data reads photos from a folder")
    func photos() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            let run = try imprint(
                "bench", "data", "--data", "photos", "--seconds", "0.01", "--json", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.lines.first?["case"] as? String == "photos-224")
            #expect(run.lines.first?["batch"] as? Int == 4)
        }
    }

    @Test(
        "Invalid arguments exit with 64 and state the valid values",
        arguments: [
            (["train", "--case", "vgg"], "No case begins with \"vgg\". Choose from lenet-28, logonet-96, logonet-96-"),
            (["predict", "--case", "lenet-28"], "Choose from mobilenet-v1-224, mobilenet-v1-224/batch-32"),
            (["train", "--case", ""], "No case begins with \"\""),
            (["train", "--seconds", "0"], "--seconds is 0, expected 0.001 to 3600"),
            (["train", "--data", "photos"], "Leave it out"), (["sleep"], "sleep"),
            (["load", "--precision", "bfloat16"], "--precision is for \"bench train\", "),
            (["train", "--precision", "int8"], "Training is not possible in int8."),
        ])
    func invalidArguments(arguments: [String], message: String) throws {
        let run = try run(tool, ["bench"] + arguments)
        #expect(run.status == 64)
        #expect(run.errors.contains(message), "\(run.errors)")
        #expect(run.output.isEmpty)
    }
}
