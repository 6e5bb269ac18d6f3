package import Foundation

/// A part of the work that can be measured.
package enum BenchmarkSuite: String, CaseIterable, Codable, Sendable {
    /// Single layers, each pass by itself.
    case layers
    /// Whole training steps.
    case train
    /// Predictions.
    case predict
    /// From a model file to the first prediction.
    case load
    /// Reading, preparing and varying photos.
    case data
    /// What apps ask for: requests from many tasks, the frames of a camera.
    case apps

    /// All cases of the suite.
    package var cases: [BenchmarkCase] {
        switch self {
        case .layers: [sgemm] + LayerCase.all.flatMap(\.benchmarks) + [softmaxCrossEntropy]
        case .train: TrainingCase.all.map(\.benchmark) + [featuresOfMobileNet]
        case .predict: PredictionCase.all.map(\.benchmark) + [logoSpot]
        case .load:
            [.loading("mobilenet-v1-224", network: "mobilenet-v1"), .loading("resnet-50-224", network: "resnet-50")]
        case .data: [photos]
        case .apps: [.requests(tasks: 1), .requests(tasks: 16), .stream]
        }
    }

    /// The case of a model file, in suites that measure one: `predict` and `load`.
    package func benchmark(of model: URL) -> BenchmarkCase? {
        switch self {
        case .predict: .prediction(of: model)
        case .load: .loading(model)
        case .layers, .train, .data, .apps: nil
        }
    }

    /// The case of that name or, if there is none, those whose names begin so.
    package func cases(named name: String) -> [BenchmarkCase] {
        let exact = cases.filter { $0.name == name }
        return exact.isEmpty ? cases.filter { $0.name.hasPrefix(name) } : exact
    }
}

/// One thing to measure.
package struct BenchmarkCase: Sendable {
    /// The suite that it belongs to.
    package let suite: BenchmarkSuite
    /// Its name, unique in its suite.
    package let name: String
    let measure: @Sendable (BenchmarkOptions) throws -> BenchmarkResult
}

/// How to measure.
package struct BenchmarkOptions: Sendable {
    /// The number of threads that share the work.
    package var threads: Int
    /// How long to measure each case, in seconds.
    package var seconds: Double
    /// The folder of photos to read, one sub-folder per label; pictures are drawn if there is none.
    package var photos: URL?

    /// Makes options.
    package init(threads: Int, seconds: Double = 2, photos: URL? = nil) {
        precondition(threads >= 1, "at least one thread is needed, not \(threads)")
        self.threads = threads
        self.seconds = seconds
        self.photos = photos
    }
}

/// What measuring one case came to.
package struct BenchmarkResult: Codable, Sendable {
    /// The suite of the case.
    package let bench: BenchmarkSuite
    /// The name of the case.
    package let `case`: String
    /// The number of threads.
    package let threads: Int
    /// The median of the runs, in `unit`.
    package let median: Double
    /// The least of the runs, in `unit`.
    package let min: Double
    /// The greatest of the runs, in `unit`.
    package let max: Double
    /// "images/s", "GFLOP/s", "GB/s", "ms" or "µs".
    package let unit: String
    /// The number of images in a run.
    package let batch: Int
    /// The median time of a run, in milliseconds.
    package let milliseconds: Double
    /// The median as a percentage of the most that `cblas_sgemm` reaches on as many threads, side by side.
    package internal(set) var percentOfSgemm: Double?
    /// How often a training step asks for memory, where that is counted.
    package let allocations: Double?
    /// The frames of a camera that were dropped, in percent of all, if there is one.
    package internal(set) var percentDropped: Double?
    /// The most memory that the process held while it measured the case, in bytes.
    package internal(set) var peakMemory: Int?

    init(
        _ suite: BenchmarkSuite, _ name: String, _ options: BenchmarkOptions, _ figures: Figures, _ unit: Unit,
        of measurement: Measurement, batch: Int
    ) {
        bench = suite
        `case` = name
        threads = options.threads
        median = rounded(figures.median)
        min = rounded(figures.min)
        max = rounded(figures.max)
        self.unit = unit.rawValue
        self.batch = batch
        milliseconds = rounded(measurement.times(factor: 1e3).median)
        allocations = suite == .train ? measurement.allocations.map(rounded) : nil
    }

    enum Unit: String {
        case imagesPerSecond = "images/s"
        case operations = "GFLOP/s"
        case traffic = "GB/s"
        case milliseconds = "ms"
        case microseconds = "µs"
    }
}

/// Measures cases one after another.
package struct Benchmark {
    private let options: BenchmarkOptions
    /// The most GFLOP/s of `cblas_sgemm` in all threads, once a layer has been compared with it.
    private var sgemmRate: Double?

    /// Makes a benchmark.
    package init(_ options: BenchmarkOptions) { self.options = options }

    /// Measures one case.
    /// - Throws: `NetworkError` if memory is short; `ImageError` and `DrawingError` where photos cannot be read or drawn.
    package mutating func measure(_ benchmark: BenchmarkCase) throws -> BenchmarkResult {
        PeakMemory.reset()
        var result = try benchmark.measure(options)
        result.peakMemory = PeakMemory.bytes
        if result.unit == BenchmarkResult.Unit.operations.rawValue {
            let peak = try sgemmRate ?? sgemm.measure(BenchmarkOptions(threads: options.threads, seconds: 0.5)).max
            sgemmRate = peak
            result.percentOfSgemm = rounded(100 * result.median / peak)
        }
        return result
    }
}

/// The number with five significant digits.
func rounded(_ number: Double) -> Double {
    guard number != 0 && number.isFinite else { return number }
    let unit = pow(10, (log10(abs(number))).rounded(.down) - 4)
    // Divided by a whole number where there are decimal places, so that the result prints with those alone.
    return unit < 1 ? (number / unit).rounded() / (1 / unit).rounded() : (number / unit).rounded() * unit
}
