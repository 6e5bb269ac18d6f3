internal import ArgumentParser
internal import Foundation
public import ImprintBenchmarks
internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork

struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bench",
        abstract: "Measure the speed of training, model loading, prediction, photo decoding and app workloads.",
        discussion: """
            Examples:
              imprint bench train --case logonet-96 --threads 1
              imprint bench layers --case conv3x3-128
              imprint bench predict --model m.imprint --threads 1
            """)

    @Argument(help: "The benchmark suite. (default: all suites)")
    var suite: BenchmarkSuite?

    @Option(
        name: .customLong("case"),
        help: ArgumentHelp(
            "The name of a case, or a prefix of several names; may be repeated. (default: all cases)",
            valueName: "name"))
    var names: [String] = []

    @Option(help: "The time to measure each case, in seconds.")
    var seconds = 2.0

    @Option(
        help: ArgumentHelp(
            "A folder of photos to read, one sub-folder per label. (default: drawn images)",
            valueName: "folder"))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "A model file to measure with predict or load instead of their cases.", valueName: "file"))
    var model: String?

    @Option(
        help: ArgumentHelp(
            "The precision in which train, predict and apps compute: float32; bfloat16 (for train: mixed precision); or int8 (not for train), "
                + "for which bench first quantizes the networks. (default: int8 for a quantized --model, otherwise float32)"
        ))
    var precision: PrecisionOptions.ChosenPrecision?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        if precision != nil, suite != .predict, suite != .apps, suite != .train {
            throw ValidationError(
                "--precision is for \"bench train\", \"bench predict\" and \"bench apps\". Leave it out.")
        }
        if suite == .train, precision == .int8 {
            throw ValidationError("Training is not possible in int8. Use --precision bfloat16, or leave it out.")
        }
        if let model {
            try requirePaths([model])
            guard let suite, suite.benchmark(of: URL(filePath: model)) != nil, names.isEmpty else {
                throw ValidationError(
                    "--model is for \"bench predict\" and \"bench load\", without --case. Name one of these suites, and leave out --case."
                )
            }
        }
        try require(seconds, "--seconds", in: 0.001...3600)
        for name in names where name.isEmpty || suites.allSatisfy({ $0.cases(named: name).isEmpty }) {
            let known = distinct(suites.flatMap(\.cases).map(\.name))
            throw ValidationError("No case begins with \"\(name)\". Choose from \(known.joined(separator: ", ")).")
        }
        if let data {
            try requirePaths([data])
            guard suites.contains(.data) && !cases(of: .data).isEmpty else {
                throw ValidationError("--data is only for \"bench data\". Leave it out.")
            }
        }
    }

    func run() async throws {
        try TrainingProcesses.join()
        if TrainingProcesses.group != nil, suite != .train {
            throw ValidationError("mpirun started several processes, which only \"imprint bench train\" measures.")
        }
        // Leaves all threads of Swift concurrency to the benchmarks.
        try await onDedicatedThread { [self] in try measure() }
    }

    private func measure() throws {
        #if DEBUG
            Terminal.warn("This is a debug build; its measurements do not represent a release build.")
        #endif
        var options = BenchmarkOptions(
            threads: common.threadCount, seconds: seconds, photos: data.map { URL(filePath: $0) })
        options.processes = TrainingProcesses.group
        options.precision = PrecisionOptions.checked(precision)
        // Reports a wrong folder now instead of after the other suites.
        if let photos = options.photos { _ = try ImageFolder(at: photos, minimumLabels: 1) }
        if !common.json { Terminal.note("\(Engine.current)") }
        var benchmark = Benchmark(options)
        for suite in suites {
            let cases = cases(of: suite)
            if !common.json && !cases.isEmpty { try Terminal.show(BenchTable.heading(suite)) }
            for benchmarkCase in cases {
                let result =
                    if let model { try naming(model) { try benchmark.measure(benchmarkCase) } } else {
                        try benchmark.measure(benchmarkCase)
                    }
                if common.json {
                    try Terminal.emit(result)
                } else {
                    try Terminal.show(BenchTable.row(result))
                }
            }
        }
    }

    private var suites: [BenchmarkSuite] { suite.map { [$0] } ?? BenchmarkSuite.allCases }

    /// Returns the selected cases of a suite.
    private func cases(of suite: BenchmarkSuite) -> [BenchmarkCase] {
        if let benchmark = model.flatMap({ suite.benchmark(of: URL(filePath: $0)) }) { return [benchmark] }
        let wanted = Set(names.flatMap { suite.cases(named: $0) }.map(\.name))
        return suite.cases.filter { names.isEmpty || wanted.contains($0.name) }
    }

    /// Returns the names without duplicates.
    private func distinct(_ names: [String]) -> [String] {
        var seen: Set<String> = []
        return names.filter { seen.insert($0).inserted }
    }
}

extension BenchmarkSuite: ExpressibleByArgument {}

/// Formats results as lines of a table.
private enum BenchTable {
    static func heading(_ suite: BenchmarkSuite) -> String {
        line(
            suite.rawValue, "threads", "median", "min", "max", "unit", "ms", "of sgemm", "allocations", "dropped",
            "peak memory")
    }

    static func row(_ result: BenchmarkResult) -> String {
        line(
            visible(result.case), "\(result.threads)", number(result.median), number(result.min), number(result.max),
            result.unit, number(result.milliseconds),
            result.percentOfSgemm.map { String(format: "%.1f %%", $0) } ?? "–",
            result.allocations.map { number($0) } ?? "–",
            result.percentDropped.map { String(format: "%.1f %%", $0) } ?? "–",
            result.peakMemory.map { String(format: "%.0f MB", Double($0) / 1e6) } ?? "–")
    }

    /// Returns a line whose first column and unit are left-aligned and whose other columns are right-aligned.
    private static func line(_ columns: String...) -> String {
        zip(columns, [39, 8, 10, 10, 10, -9, 10, 9, 12, 9, 12]).enumerated().map { index, column in
            let space = String(repeating: " ", count: max(0, abs(column.1) - column.0.count))
            if index == 0 { return column.0 + space }
            return column.1 < 0 ? " \(column.0)\(space)" : space + column.0
        }.joined()
    }

    private static func number(_ value: Double) -> String {
        String(format: value >= 1000 ? "%.0f" : value >= 10 ? "%.1f" : "%.3f", value)
    }
}
