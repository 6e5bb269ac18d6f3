internal import ImprintCore

/// Chooses the quantization of a network from its activations for calibration images (post-training quantization).
///
/// 1. Two float32 passes over the images record the range and the distribution of every channel of the activations that int8 layers can read.
/// 2. The range of each channel minimizes the squared error of its values.
/// 3. Scales per channel are a compromise: equal scales treat all weights of an output alike, and scales in proportion to the ranges treat all
///    activations alike. The exponent between the two minimizes the estimated error of the layers that read the activation (see
///    `Equalization`).
/// 4. Weights are rounded so that the outputs of their layers change little (see `WeightRounding`).
public struct Quantizer {
    /// An image for calibration.
    public struct Image {
        /// The height, width and number of channels.
        public let shape: TensorShape
        /// Writes the network's input for the image, NHWC.
        public let write: (UnsafeMutableBufferPointer<Float>) throws -> Void

        /// Creates an image.
        public init(shape: TensorShape, write: @escaping (UnsafeMutableBufferPointer<Float>) throws -> Void) {
            self.shape = shape
            self.write = write
        }
    }

    let network: Network
    /// The parameters before quantization.
    let original: Parameters
    let workers: Workers

    /// Creates a quantizer.
    /// - Parameters:
    ///   - network: The network.
    ///   - parameters: The parameters of the network, which do not change.
    ///   - threads: The number of threads; the results do not depend on it.
    public init(_ network: Network, parameters: Parameters, threads: Int = 1) {
        self.network = network
        original = parameters
        workers = Workers(threads)
    }

    /// Returns parameters with the quantization of all convolutions and dense layers that int8 kernels can compute, and with their weights
    /// rounded.
    /// - Parameter images: At least one image; 100 to 500 photos like those of later predictions are typical.
    /// - Throws: `NetworkError`, or an error of an image.
    public func quantize(for images: [Image]) throws -> Parameters {
        precondition(!images.isEmpty, "calibration needs at least one image")
        let operations = operations()
        let equalization = Equalization(network, operations, original)
        let recorder = Recorder(equalization.activationNames)
        for quantity in [Recorder.Quantity.ranges, .histograms] {
            recorder.quantity = quantity
            try forEachOutput(of: images, original, observer: recorder.record) { _, _ in }
        }
        let quantization = equalization.quantization(recorder.statistics)
        let parameters = try original.copy()
        let rounding = WeightRounding(network, operations, parameters, quantization)
        try forEachOutput(of: images, original, observer: rounding.record) { _, _ in }
        rounding.round(workers)
        parameters.quantization = quantization
        return parameters
    }

    /// The fused operations of a float32 plan.
    func operations() -> [PlanOperation] {
        let options = ExecutionPlan.Options(batchSize: 1, workers: workers)
        return OperatorFusion.operations(of: network, layout: original.layout, quantization: nil, options: options)
    }

    /// Runs the network on each image, and calls `body` with the index of the image and the output.
    /// - Parameters:
    ///   - parameters: The parameters.
    ///   - observer: Receives the name of each activation, its values and its shape; nil for none.
    func forEachOutput(
        of images: [Image], _ parameters: Parameters, precision: Precision = .float32,
        observer: ExecutionPlan.Observer? = nil,
        _ body: (Int, UnsafeMutableBufferPointer<Float>) throws -> Void
    ) throws {
        var plans: [TensorShape: ExecutionPlan] = [:]
        for (index, image) in images.enumerated() {
            if plans[image.shape] == nil {
                // Bounds memory if many images have different shapes.
                if plans.count == 4 { plans = [:] }
                let sized = try Network(name: network.name, input: image.shape, nodes: network.nodes)
                var options = ExecutionPlan.Options(batchSize: 1, workers: workers).limitingThreads(for: sized)
                options.precision = precision
                plans[image.shape] = try ExecutionPlan(sized, parameters: parameters, options: options)
            }
            guard let plan = plans[image.shape] else { continue }
            try image.write(plan.input)
            plan.observer = observer
            observer?(Network.inputName, UnsafeBufferPointer(plan.input), image.shape)
            plan.forward(count: 1)
            try body(index, plan.output)
        }
    }
}

/// Records activations of a network.
private final class Recorder {
    enum Quantity {
        case ranges, histograms
    }

    /// The names of the activations to record; histograms of all activations could need much memory.
    private let names: Set<String>
    var quantity = Quantity.ranges
    private(set) var statistics: [String: ActivationStatistics] = [:]

    init(_ names: Set<String>) { self.names = names }

    func record(_ name: String, _ values: UnsafeBufferPointer<Float>, _ shape: TensorShape) {
        guard names.contains(name), let values = values.baseAddress else { return }
        switch quantity {
        case .ranges:
            statistics[name, default: ActivationStatistics(channels: shape.channels)].recordRange(
                values, pixels: shape.pixels)
        case .histograms:
            statistics[name]?.recordHistogram(values, shape)
        }
    }
}
