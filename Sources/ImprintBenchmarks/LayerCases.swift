internal import ImprintCore
internal import ImprintNetwork

/// A layer, or two layers that are fused, on a batch of random values.
struct LayerCase {
    /// A pass through a layer.
    enum Pass: String {
        case forward
        /// The gradient with respect to the layer's input.
        case dataGradient
        /// The gradient with respect to the layer's parameters.
        case weightGradient
        /// The gradients with respect to input and parameters.
        case backward
    }

    /// The work of a pass for one image, independent of the algorithm.
    enum Work {
        /// The multiply-add operations of the forward pass, and of each gradient.
        case multiplications(Int)
        /// The values that are read or written, for memory-bound layers.
        case traffic(forward: Int, backward: Int)
    }

    let name: String
    var batchSize = 16
    let input: TensorShape
    let layers: [any Layer]
    let work: Work
    var passes: [Pass] = [.forward, .dataGradient, .weightGradient, .backward]

    static let all = [
        convolution(3, from: 64, to: 64, size: 56),
        convolution(3, from: 128, to: 128, size: 28),
        convolution(3, from: 256, to: 256, size: 14),
        convolution(3, from: 512, to: 512, size: 7),
        convolution(1, from: 64, to: 256, size: 56),
        convolution(1, from: 256, to: 64, size: 56),
        convolution(1, from: 512, to: 128, size: 28),
        convolution(5, from: 32, to: 64, size: 48),
        // The first layer of a network: its input is images, which need no gradient.
        LayerCase(
            name: "conv3x3-stride2-3-32-224", input: TensorShape(height: 224, width: 224, channels: 3),
            layers: [Convolution(outputChannels: 32, kernelSize: 3, stride: 2, padding: .all(1), hasBias: false)],
            work: .multiplications(112 * 112 * 32 * 27), passes: [.forward, .weightGradient]),
        depthwise(256, size: 28),
        depthwise(64, size: 112),
        memoryBound("maxpool2x2-64-112", [MaxPool(kernelSize: 2)], forward: 1.25, backward: 1.25),
        memoryBound("batchnorm-relu-64-112", [BatchNormalization(), ReLU()], forward: 2, backward: 3),
        LayerCase(
            name: "dense-2048-1000", input: TensorShape(channels: 2048), layers: [Dense(outputChannels: 1000)],
            work: .multiplications(2048 * 1000)),
    ]

    /// A case for each pass.
    var benchmarks: [BenchmarkCase] { passes.map { benchmark($0, name: "\(name)/\($0.rawValue)") } }

    private func benchmark(_ pass: Pass, name: String) -> BenchmarkCase {
        BenchmarkCase(suite: .layers, name: name) { options in
            let measurement = try measure(pass, options)
            let (amount, unit): (Double, BenchmarkResult.Unit) =
                switch work {
                case .multiplications(let count): (2e-9 * Double(pass == .backward ? 2 * count : count), .operations)
                case .traffic(let forward, let backward):
                    (4e-9 * Double(pass == .forward ? forward : backward), .traffic)
                }
            return BenchmarkResult(
                .layers, name, options, measurement.rates(of: amount * Double(batchSize)), unit, of: measurement,
                batch: batchSize)
        }
    }

    private func measure(_ pass: Pass, _ options: BenchmarkOptions) throws -> Measurement {
        var builder = NetworkBuilder(name: name, input: input)
        for layer in layers { builder.add(layer) }
        let network = try builder.network()
        let plan = try ExecutionPlan(
            network, parameters: try Parameters(network, seed: 1),
            options: ExecutionPlan.Options(
                batchSize: batchSize, mode: .training, workers: Workers(options.threads),
                frozen: pass == .dataGradient ? Set(network.nodes.map(\.name)) : [],
                inputGradient: passes.contains(.backward) && pass != .weightGradient))
        plan.input.fill(named: "images")
        guard pass != .forward else {
            return Measurement(seconds: options.seconds) { plan.forward(count: batchSize) }
        }
        let gradient = UnsafeMutableBufferPointer<Float>.allocate(capacity: plan.outputGradient.count)
        defer { gradient.deallocate() }
        gradient.initialize(repeating: 0)
        gradient.fill(named: "gradient")
        // A backward pass may overwrite its inputs, so each backward pass follows a forward pass, as in training.
        return Measurement(
            seconds: options.seconds,
            prepare: {
                plan.forward(count: batchSize)
                _ = plan.outputGradient.update(fromContentsOf: gradient)
            }, { plan.backward(count: batchSize) })
    }

    private static func convolution(_ kernel: Int, from: Int, to: Int, size: Int) -> LayerCase {
        LayerCase(
            name: "conv\(kernel)x\(kernel)-\(from)-\(to)-\(size)",
            input: TensorShape(height: size, width: size, channels: from),
            layers: [
                Convolution(outputChannels: to, kernelSize: Size2D(kernel), padding: .all(kernel / 2), hasBias: false)
            ],
            work: .multiplications(size * size * to * kernel * kernel * from))
    }

    private static func depthwise(_ channels: Int, size: Int) -> LayerCase {
        LayerCase(
            name: "depthwise3x3-\(channels)-\(size)", input: TensorShape(height: size, width: size, channels: channels),
            layers: [
                Convolution(
                    outputChannels: channels, kernelSize: 3, padding: .all(1), groups: channels, hasBias: false)
            ],
            work: .multiplications(size * size * channels * 9))
    }

    /// Returns a case of memory-bound layers on 112x112 pixels with 64 channels.
    /// - Parameters:
    ///   - forward: The minimum number of values that the forward pass reads and writes per input value.
    ///   - backward: The minimum number of values that the backward pass reads and writes per input value.
    private static func memoryBound(
        _ name: String, _ layers: [any Layer], forward: Double, backward: Double
    ) -> LayerCase {
        let input = TensorShape(height: 112, width: 112, channels: 64)
        let count = Double(input.count)
        return LayerCase(
            name: name, input: input, layers: layers,
            work: .traffic(forward: Int(forward * count), backward: Int(backward * count)),
            passes: [.forward, .backward])
    }
}

/// `cblas_sgemm` as a baseline: each thread multiplies separate 1024x1024 matrices.
let sgemm = BenchmarkCase(suite: .layers, name: "sgemm-1024") { options in
    let size = 1024
    let baseline = try SGEMMBaseline(size: size, threads: options.threads)
    let measurement = Measurement(seconds: options.seconds) { baseline.run() }
    return BenchmarkResult(
        .layers, "sgemm-1024", options, measurement.rates(of: 2e-9 * Double(baseline.multiplications)), .operations,
        of: measurement, batch: size)
}

/// Softmax cross-entropy of a batch of 16 with 1000 labels, and its gradient.
let softmaxCrossEntropy = BenchmarkCase(suite: .layers, name: "softmax-cross-entropy-1000") { options in
    let (batchSize, labels) = (16, 1000)
    let logits = UnsafeMutableBufferPointer<Float>.allocate(capacity: batchSize * labels)
    let gradient = UnsafeMutableBufferPointer<Float>.allocate(capacity: batchSize * labels)
    defer {
        logits.deallocate()
        gradient.deallocate()
    }
    logits.initialize(repeating: 0)
    gradient.initialize(repeating: 0)
    logits.fill(named: "logits")
    let targets = (0..<batchSize).map { $0 * 7 }
    let loss = SoftmaxCrossEntropy()
    let measurement = Measurement(seconds: options.seconds) {
        _ = loss(logits: logits, targets: targets, gradient: gradient)
    }
    return BenchmarkResult(
        .layers, "softmax-cross-entropy-1000", options, measurement.times(factor: 1e6), .microseconds, of: measurement,
        batch: batchSize)
}
