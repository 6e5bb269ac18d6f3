internal import CImprintKernels
internal import ImprintCore

/// An operation of a plan for prediction whose inputs or output are uint8.
protocol QuantizedKernel: LayerKernel {}

extension QuantizedKernel {
    var backwardReads: BackwardReads { [] }
    func multiplications(for inputs: [TensorShape]) -> Int { 0 }
    func precision(_ request: MemoryRequest) -> Precision { .int8 }
    func memory(_ request: MemoryRequest) -> LayerMemory { LayerMemory() }
    func backward(_ context: LayerContext, batch: Int) {
        preconditionFailure("a plan with integers has no backward pass")
    }
}

/// Arrays with the scales and zero points of an activation, as kernels read them.
struct ActivationValues {
    let scales: [Float]
    let inverseScales: [Float]
    let zeroPoints: [Float]

    init(_ activation: Quantization.Activation) {
        scales = activation.scales
        inverseScales = activation.scales.map { 1 / $0 }
        zeroPoints = activation.zeroPoints.map(Float.init)
    }
}

/// Converts float32 to uint8.
struct Quantize: QuantizedKernel {
    private let values: ActivationValues
    var inPlace: InPlace { .never }

    init(_ activation: Quantization.Activation) { values = ActivationValues(activation) }

    func forward(_ context: LayerContext, batch: Int) {
        let channels = context.input.shape.channels
        context.parallelFor(batch * context.input.shape.pixels) { pixels in
            let start = pixels.lowerBound * channels
            imprint_quantize(
                context.input.values + start, values.inverseScales, values.zeroPoints, pixels.count, channels,
                context.output.bytes + start)
        }
    }
}

/// Converts uint8 to float32.
struct Dequantize: QuantizedKernel {
    private let values: ActivationValues
    var inPlace: InPlace { .never }

    init(_ activation: Quantization.Activation) { values = ActivationValues(activation) }

    func forward(_ context: LayerContext, batch: Int) {
        let channels = context.input.shape.channels
        context.parallelFor(batch * context.input.shape.pixels) { pixels in
            let start = pixels.lowerBound * channels
            imprint_dequantize(
                context.input.bytes + start, values.scales, values.zeroPoints, pixels.count, channels,
                context.output.values + start)
        }
    }
}

/// `MaxPool` on uint8.
struct QuantizedMaxPool: QuantizedKernel {
    private let layer: MaxPool
    var inPlace: InPlace { .never }

    init(_ layer: MaxPool) { self.layer = layer }

    func forward(_ context: LayerContext, batch: Int) {
        let (input, output) = (context.input.shape, context.output.shape)
        var window = layer.window.kernelWindow(over: input)
        let parts = min(max(output.count >> 14, 1), output.height)
        context.worker.forEachChunk(batch * parts) { index in
            let (image, part) = index.quotientAndRemainder(dividingBy: parts)
            let rows = chunkRange(part, of: parts, total: output.height)
            imprint_max_pool_uint8(
                &window, context.input.bytes + image * input.count, context.output.bytes + image * output.count,
                Int32(rows.lowerBound), Int32(rows.count))
        }
    }
}

/// `GlobalAveragePool` of uint8, with an output as float32.
struct QuantizedAverage: QuantizedKernel {
    private let values: ActivationValues
    var inPlace: InPlace { .never }

    init(_ activation: Quantization.Activation) { values = ActivationValues(activation) }

    func forward(_ context: LayerContext, batch: Int) {
        let input = context.input.shape
        context.worker.forEachChunk(batch) { image in
            imprint_average_uint8(
                context.input.bytes + image * input.count, values.scales, values.zeroPoints, input.pixels,
                input.channels, context.output.at(image))
        }
    }
}

/// `Flatten` and `Dropout` on uint8, which change nothing.
struct QuantizedCopy: QuantizedKernel {
    var inPlace: InPlace { .view }

    func forward(_ context: LayerContext, batch: Int) {
        let (from, to) = (context.input.bytes, context.output.bytes)
        guard from != to else { return }
        context.parallelFor(batch * context.output.shape.count) { values in
            (to + values.lowerBound).update(from: from + values.lowerBound, count: values.count)
        }
    }
}

/// `Concat` on uint8.
struct QuantizedConcat: QuantizedKernel {
    var inPlace: InPlace { .never }

    func forward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        context.parallelFor(batch * context.output.shape.pixels) { pixels in
            var first = 0
            for input in context.inputs {
                let width = input.shape.channels
                for pixel in pixels {
                    (context.output.bytes + pixel * channels + first).update(
                        from: input.bytes + pixel * width, count: width)
                }
                first += width
            }
        }
    }
}
