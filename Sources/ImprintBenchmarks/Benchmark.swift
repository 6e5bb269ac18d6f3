package import Foundation
package import ImprintCore
package import ImprintNetwork

/// A group of benchmark cases.
package enum BenchmarkSuite: String, CaseIterable, Codable, Sendable {
    /// Passes of single layers.
    case layers
    /// Training steps.
    case train
    /// Predictions.
    case predict
    /// Loading a model file, including the first prediction.
    case load
    /// Decoding, preprocessing and augmenting photos.
    case data
    /// Workloads of apps: requests from many tasks, and the frames of a camera.
    case apps

    /// All cases of the suite.
    package var cases: [BenchmarkCase] {
        switch self {
        case .layers: [sgemm] + LayerCase.all.flatMap(\.benchmarks) + [softmaxCrossEntropy]
        case .train: TrainingCase.all.map(\.benchmark) + [mobileNetFeatures]
        case .predict: PredictionCase.all.map(\.benchmark) + [logoDetection]
        case .load:
            [.loading("mobilenet-v1-224", network: "mobilenet-v1"), .loading("resnet-50-224", network: "resnet-50")]
        case .data: [photos]
        case .apps: [.requests(tasks: 1), .requests(tasks: 16), .stream]
        }
    }

    /// Returns a case for a model file in the suites `predict` and `load`; nil in other suites.
    package func benchmark(of model: URL) -> BenchmarkCase? {
        switch self {
        case .predict: .prediction(of: model)
        case .load: .loading(model)
        case .layers, .train, .data, .apps: nil
        }
    }

    /// Returns the case with a name or, if there is none, the cases whose names begin with it.
    package func cases(named name: String) -> [BenchmarkCase] {
        let exact = cases.filter { $0.name == name }
        return exact.isEmpty ? cases.filter { $0.name.hasPrefix(name) } : exact
    }
}

/// A benchmark case.
package struct BenchmarkCase: Sendable {
    /// The suite of the case.
    package let suite: BenchmarkSuite
    /// The name, unique in its suite.
    package let name: String
    let measure: @Sendable (BenchmarkOptions) throws -> BenchmarkResult
}

/// The options of measurements.
package struct BenchmarkOptions: Sendable {
    /// The number of threads.
    package var threads: Int
    /// The time to measure each case, in seconds.
    package var seconds: Double
    /// The folder of photos to read, one sub-folder per label; nil for drawn images.
    package var photos: URL?
    /// The precision of the suites `train`, `predict` and `apps`.
    package var precision = Precision.automatic
    /// The processes that train together in the suite `train`; nil for a single process.
    package var processes: ProcessGroup?

    /// Creates options.
    package init(threads: Int, seconds: Double = 2, photos: URL? = nil) {
        precondition(threads >= 1, "threads is \(threads), expected at least 1")
        self.threads = threads
        self.seconds = seconds
        self.photos = photos
    }
}

/// The result of a benchmark case.
package struct BenchmarkResult: Codable, Sendable {
    /// The suite of the case.
    package let bench: BenchmarkSuite
    /// The name of the case.
    package let `case`: String
    /// The number of threads.
    package let threads: Int
    /// The median of the runs, in `unit`.
    package let median: Double
    /// The minimum of the runs, in `unit`.
    package let min: Double
    /// The maximum of the runs, in `unit`.
    package let max: Double
    /// "images/s", "GFLOP/s", "GB/s", "ms" or "µs".
    package let unit: String
    /// The number of images in a run.
    package let batch: Int
    /// The median time of a run, in milliseconds.
    package let milliseconds: Double
    /// The median as a percentage of the maximum rate of `cblas_sgemm` with the same number of threads.
    package internal(set) var percentOfSgemm: Double?
    /// The precision of the predictions, never `automatic`, or of training steps for which it is chosen; nil for other suites.
    package internal(set) var precision: Precision?
    /// The number of allocations in a training step; nil if they are not counted.
    package let allocations: Double?
    /// The percentage of camera frames that were dropped; nil for cases without a camera.
    package internal(set) var percentDropped: Double?
    /// The peak memory of the process during the case, in bytes.
    package internal(set) var peakMemory: Int?

    init(
        _ suite: BenchmarkSuite, _ name: String, _ options: BenchmarkOptions, _ statistics: Statistics, _ unit: Unit,
        of measurement: Measurement, batch: Int
    ) {
        bench = suite
        `case` = name
        threads = options.threads
        median = rounded(statistics.median)
        min = rounded(statistics.min)
        max = rounded(statistics.max)
        self.unit = unit.rawValue
        self.batch = batch
        milliseconds = rounded(measurement.times(factor: 1e3).median)
        allocations = suite == .train ? measurement.allocations.map(rounded) : nil
        if suite == .predict || suite == .apps || suite == .train && options.precision != .automatic {
            precision = options.precision == .automatic ? .float32 : options.precision
        }
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
    /// The maximum GFLOP/s of `cblas_sgemm` on all threads, after the first measurement.
    private var sgemmRate: Double?

    /// Creates a benchmark.
    package init(_ options: BenchmarkOptions) { self.options = options }

    /// Measures one case.
    /// - Throws: `NetworkError` if there is not enough memory; `ImageError` or `DrawingError` if photos cannot be read or drawn.
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

/// Rounds a value to five significant digits.
func rounded(_ value: Double) -> Double {
    guard value != 0 && value.isFinite else { return value }
    let unit = pow(10, (log10(abs(value))).rounded(.down) - 4)
    // Dividing by an integer, instead of multiplying by a fraction, gives a value that prints without extra digits.
    return unit < 1 ? (value / unit).rounded() / (1 / unit).rounded() : (value / unit).rounded() * unit
}
