import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintBenchmarks

private let python = ProcessInfo.processInfo.environment["IMPRINT_PYTHON"]

// Serialized, because peak memory is measured for the whole process.
@Suite(.serialized) struct BenchmarkTests {
    @Test("Each suite contains the expected cases, each once")
    func cases() {
        let passes = ["forward", "dataGradient", "weightGradient", "backward"]
        let layers = [
            "conv3x3-64-64-56", "conv3x3-128-128-28", "conv3x3-256-256-14", "conv3x3-512-512-7", "conv1x1-64-256-56",
            "conv1x1-256-64-56", "conv1x1-512-128-28", "conv5x5-32-64-48", "depthwise3x3-256-28", "depthwise3x3-64-112",
            "dense-2048-1000",
        ].flatMap { layer in passes.map { "\(layer)/\($0)" } }
        let expected: [BenchmarkSuite: Set<String>] = [
            .layers: Set(layers).union([
                "sgemm-1024", "conv3x3-stride2-3-32-224/forward", "conv3x3-stride2-3-32-224/weightGradient",
                "maxpool2x2-64-112/forward", "maxpool2x2-64-112/backward", "batchnorm-relu-64-112/forward",
                "batchnorm-relu-64-112/backward", "softmax-cross-entropy-1000",
            ]),
            .train: [
                "lenet-28", "logonet-96", "logonet-96-width-0.75", "logonet-224", "mobilenet-v1-224", "resnet-50-224",
                "mobilenet-v1-features-224",
            ],
            .predict: [
                "mobilenet-v1-224", "mobilenet-v1-224/batch-32", "mobilenet-v2-224", "efficientnet-lite0-224",
                "resnet-50-224", "conv3x3-net-299", "logonet-96", "logospot-299x532",
            ],
            .load: ["mobilenet-v1-224", "resnet-50-224"],
            .data: ["photos-224"],
            .apps: ["requests/1-task", "requests/16-tasks", "stream-30-fps"],
        ]
        for suite in BenchmarkSuite.allCases {
            #expect(Set(suite.cases.map(\.name)) == expected[suite])
            #expect(suite.cases.count == expected[suite]?.count)
        }
    }

    @Test("A name selects the case of that name, otherwise all cases with that prefix")
    func selection() {
        func names(_ name: String) -> [String] { BenchmarkSuite.predict.cases(named: name).map(\.name) }
        #expect(names("mobilenet-v1-224") == ["mobilenet-v1-224"])
        #expect(names("mobilenet-v1") == ["mobilenet-v1-224", "mobilenet-v1-224/batch-32"])
        #expect(names("lenet").isEmpty)
    }

    @Test("Every training case has thresholds, and no training step may allocate")
    func thresholds() throws {
        let thresholds = try readThresholds()
        #expect(Set(thresholds.keys) == Set(BenchmarkSuite.train.cases.map(\.name)))
        for (name, limits) in thresholds {
            #expect(Set(limits.keys) == ["allocations", "peakMemory"] && limits["allocations"] == 0, "\(name)")
        }
    }

    @Test(
        "The check reports figures above their threshold, missing figures and cases that were not measured",
        .enabled(if: python != nil, "IMPRINT_PYTHON is not set"))
    func check() throws {
        let names = BenchmarkSuite.train.cases.map(\.name)
        func line(_ name: String, _ figures: String) -> String { #"{"case":"\#(name)","threads":1\#(figures)}"# }
        let good = names.dropFirst(4).map { line($0, #","allocations":0,"peakMemory":1"#) }
        let all = names.prefix(4).map { line($0, #","allocations":0,"peakMemory":1"#) } + good
        #expect(try runCheck(all).status == 0)

        let bad = [
            line(names[1], #","allocations":0.5,"peakMemory":1"#),
            line(names[2], #","allocations":0,"peakMemory":10000000000"#), line(names[3], #","peakMemory":1"#),
            line("vgg", #","allocations":0,"peakMemory":1"#),
        ]
        let (status, errors) = try runCheck(good + bad)
        #expect(status == 1)
        let memory = try #require(try readThresholds()["logonet-96-width-0.75"]?["peakMemory"])
        let sentences = [
            "lenet-28 has thresholds but was not measured; correct its name in thresholds.json.",
            "logonet-96 on 1 thread: found 0.5 allocations per step, expected at most 0.",
            "logonet-96-width-0.75 on 1 thread: found 10000000000 bytes of peak memory, expected at most \(memory).",
            "logonet-224 on 1 thread: allocations per step are not measured on this system, expected at most 0.",
            "vgg on 1 thread has no thresholds; add them to thresholds.json.",
        ]
        #expect(errors.split(separator: "\n").map(String.init) == sentences)
    }

    private func readThresholds() throws -> [String: [String: Int]] {
        let file = packageFolder.appending(path: "Benchmarks/thresholds.json")
        return try JSONDecoder().decode([String: [String: Int]].self, from: Data(contentsOf: file))
    }

    /// Runs Benchmarks/check.py on lines of `imprint bench`, and returns its exit status and standard error.
    private func runCheck(_ lines: [String]) throws -> (status: Int32, errors: String) {
        let process = Process()
        process.executableURL = URL(filePath: try #require(python))
        process.arguments = ["-B", packageFolder.appending(path: "Benchmarks/check.py").path]
        let (input, errors) = (Pipe(), Pipe())
        (process.standardInput, process.standardError) = (input, errors)
        process.standardOutput = FileHandle.nullDevice
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(lines.joined(separator: "\n").utf8))
        try input.fileHandleForWriting.close()
        let text = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: text, as: UTF8.self))
    }

    @Test(
        "The scripts of Benchmarks/peers have the same cases", .enabled(if: python != nil, "IMPRINT_PYTHON is not set"))
    func casesOfPeers() throws {
        let process = Process()
        process.executableURL = URL(filePath: try #require(python))
        process.arguments = ["-B", "-c", "import cases, json; print(json.dumps(cases.SUITES))"]
        process.currentDirectoryURL = packageFolder.appending(path: "Benchmarks/peers")
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let suites = try JSONDecoder().decode([String: [String]].self, from: text)
        process.waitUntilExit()
        #expect(Set(suites.keys) == Set(BenchmarkSuite.allCases.map(\.rawValue)))
        for suite in BenchmarkSuite.allCases {
            #expect(suites[suite.rawValue].map { Set($0) } == Set(suite.cases.map(\.name)))
        }
    }

    @Test("Figures are the median, minimum and maximum of the runs")
    func figures() {
        let odd = Statistics(ascending: [1, 2, 4])
        #expect((odd.median, odd.min, odd.max) == (2, 1, 4))
        let even = Statistics(ascending: [1, 2, 4, 5])
        #expect((even.median, even.min, even.max) == (3, 1, 5))
    }

    @Test("The preparation runs before every run, warm-up runs included")
    func preparations() {
        var (prepared, done) = (0, 0)
        _ = Measurement(seconds: 0, prepare: { prepared += 1 }, { done += 1 })
        #expect(prepared == 5 && done == 5)
    }

    @Test(
        "Every pass of the smaller layers can be measured separately, convolutions as a percentage of sgemm",
        arguments: ["conv3x3-512-512-7", "dense-2048-1000", "softmax-cross-entropy-1000"])
    func passes(layer: String) throws {
        var benchmark = Benchmark(BenchmarkOptions(threads: 2, seconds: 0.001))
        for known in BenchmarkSuite.layers.cases where known.name.hasPrefix(layer) {
            let result = try benchmark.measure(known)
            #expect(result.case == known.name && result.threads == 2 && result.batch == 16)
            #expect(0 < result.min && result.min <= result.median && result.median <= result.max)
            #expect((result.percentOfSgemm != nil) == (result.unit == "GFLOP/s"))
        }
    }

    @Test(
        "The model file of a detector is measured on a photo, with the given threads",
        arguments: [Precision.float32, .int8])
    func detector(precision: Precision) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "d.imprint")
            let network = try Network.logoDetector()
            try ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["leaf", "other"],
                preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
                detector: DetectorHead(levels: [96, 136], stride: 16, span: 44, logos: [.init(label: "leaf")])
            ).write(to: file)
            var options = BenchmarkOptions(threads: 2, seconds: 0.001)
            options.precision = precision
            var benchmark = Benchmark(options)
            let result = try benchmark.measure(try #require(BenchmarkSuite.predict.benchmark(of: file)))
            #expect(result.case == "d.imprint" && result.threads == 2 && result.precision == precision)
            #expect(result.unit == "ms" && result.batch == 1 && 0 < result.min && result.min <= result.median)
        }
    }

    @Test("Requests and streams can be measured", arguments: BenchmarkSuite.apps.cases.map(\.name))
    func apps(name: String) throws {
        var benchmark = Benchmark(BenchmarkOptions(threads: 1, seconds: 0.5))
        let known = try #require(BenchmarkSuite.apps.cases.first { $0.name == name })
        let result = try benchmark.measure(known)
        #expect(result.case == name && result.unit == "images/s" && 0 < result.min && result.min <= result.max)
        #expect((result.percentDropped != nil) == (name == "stream-30-fps"))
        #expect((0..<100).contains(result.percentDropped ?? 0))
    }

    @Test("The sgemm reference runs one matrix product on each thread", arguments: [1, 2])
    func reference(threads: Int) throws {
        var benchmark = Benchmark(BenchmarkOptions(threads: threads, seconds: 0.001))
        let result = try benchmark.measure(sgemm)
        let products = result.median * 1e9 * result.milliseconds / 1e3 / (2 * 1024 * 1024 * 1024)
        #expect(abs(products - Double(threads)) < 0.01)
        #expect(result.unit == "GFLOP/s" && result.batch == 1024 && result.percentOfSgemm != nil)
    }

    @Test(
        "Peak memory is measured per case",
        .enabled(if: FileManager.default.isWritableFile(atPath: "/proc/self/clear_refs")))
    func peakMemory() throws {
        var benchmark = Benchmark(BenchmarkOptions(threads: 1, seconds: 0.001))
        let large = try #require(BenchmarkSuite.train.cases.first { $0.name == "logonet-96" })
        let small = try #require(BenchmarkSuite.layers.cases.first { $0.name == "softmax-cross-entropy-1000" })
        let first = try #require(try benchmark.measure(large).peakMemory)
        let second = try #require(try benchmark.measure(small).peakMemory)
        #expect(second < first)
    }
}
