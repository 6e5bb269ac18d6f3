import Foundation
import ImprintFormats
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

/// What the verbs print for people, with a model whose numbers are written here.
@Suite struct OutputTests {
    /// Fixtures/output-VERB.txt is what the verb printed, with ENGINE for the kernels' names; look at a change before taking it over.
    @Test(
        "Printed results are as they were",
        arguments: [
            ("inspect", "inspect m.imprint --plan --threads 1"), ("evaluate", "evaluate m.imprint photos"),
            ("classify", "classify m.imprint photos/dark/0.png photos/bright/0.png --threshold 0.1"),
        ])
    func printed(verb: String, job: String) throws {
        try withTemporaryFolder { folder in
            try model().write(to: folder.appending(path: "m.imprint"))
            for (path, grey) in [
                ("dark/0", 20), ("dark/1", 110), ("dark/2", 150), ("bright/0", 230), ("bright/1", 140),
            ] {
                let file = folder.appending(path: "photos/\(path).png")
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try ImageFile.write(Image(width: 9, height: 12, filledWith: UInt8(grey)), to: file)
            }
            let run = try shell("$imprint \(job)", folder: folder)
            let fixture = packageFolder.appending(path: "Tests/CLITests/Fixtures/output-\(verb).txt")
            #expect(run.status == 0)
            // The kernels depend on the processor.
            let expected = try String(contentsOf: fixture, encoding: .utf8).replacing(
                "ENGINE", with: "\(Engine.current)")
            #expect(run.output == expected)
        }
    }

    @Test("The plan of a training step, in JSON")
    func plan() throws {
        try withTemporaryFolder { folder in
            try model().write(to: folder.appending(path: "m.imprint"))
            let run = try imprint(
                "inspect", "m.imprint", "--plan", "--training", "--batch-size", "5", "--threads", "2", "--json",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let line = try #require(run.lines.first)
            let plan = try #require(line["plan"] as? [String: Any])
            #expect(plan["mode"] as? String == "training")
            #expect(plan["batchSize"] as? Int == 5)
            #expect(plan["threads"] as? Int == 2)
            #expect(plan["multiplications"] as? Int == 6)
            let layers = try #require(plan["layers"] as? [[String: Any]])
            // The loss contains the softmax.
            #expect(layers.map { $0["name"] as? String } == ["mean", "head"])
            #expect(layers.map { $0["activationByteCount"] as? Int } == [60, 40])
            #expect(layers[1]["algorithm"] as? String == "matrixProduct")
            for key in ["arenaByteCount", "gradientByteCount", "preparedByteCount"] { #expect(plan[key] is Int) }
            let engine = try #require(line["engine"] as? [String: Any])
            #expect(engine["matrixKernels"] as? String == Engine.current.matrixKernels)
            #expect(engine["vectorInstructions"] as? String == Engine.current.vectorInstructions)
            let without = try #require(try imprint("inspect", "m.imprint", "--json", folder: folder).lines.first)
            #expect(without["plan"] == nil && without["engine"] == nil)
        }
    }

    @Test("Options of the plan without the plan are wrong use", arguments: ["--training", "--batch-size 2"])
    func planOptions(_ options: String) throws {
        let run = try shell("$imprint inspect m.imprint \(options)", folder: packageFolder)
        #expect(run.status == 64)
        #expect(run.errors.contains("are about the plan; add --plan."), "\(run.errors)")
    }

    /// A classifier by brightness: with x the mean from −1 to 1, the logits are 2x and −2x.
    private func model() throws -> WeightsFile {
        var builder = NetworkBuilder(name: "brightness", input: Shape(height: 8, width: 8, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax(), named: "confidence")
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 0)
        parameters["head.weight"] = [2, -2, 2, -2, 2, -2].map { $0 / 3 }
        return WeightsFile(
            network: network, parameters: parameters, labels: ["bright", "dark"],
            preprocessing: Preprocessing(width: 8, height: 8))
    }
}
