internal import CImprintKernels
internal import ImprintCore

/// The direct algorithm for depthwise convolutions, in which each output channel reads one input channel.
struct DepthwiseConvolution {
    private let layer: Convolution
    private let context: LayerContext
    private let window: imprint_window
    private var weightCount: Int { layer.kernelSize.height * layer.kernelSize.width * layer.outputChannels }

    init(_ layer: Convolution, _ context: LayerContext) {
        self.layer = layer
        self.context = context
        window = layer.window.kernelWindow(over: context.input.shape)
    }

    /// The number of floats of scratch memory for the gradient of the weights.
    static func scratchCount(_ layer: Convolution, workers: Int) -> Int {
        ImageSum.scratchCount(
            layer.kernelSize.height * layer.kernelSize.width * layer.outputChannels, workers: workers)
    }

    /// Computes the output.
    /// - Parameter finish: Called for each block of output pixels after `clamp` has been applied to it.
    func forward(
        _ weights: ConvolutionWeights, batch: Int, _ clamp: Epilogue.Clamp,
        _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void
    ) {
        guard case .plain(let weight) = weights else {
            preconditionFailure("a depthwise convolution requires plain weights")
        }
        let shape = context.output.shape
        var biasClamp = imprint_bias_clamp(bias: clamp.bias, floor: clamp.floor, ceiling: clamp.ceiling)
        func convolve(_ rows: Range<Int>, of image: Int) {
            withUnsafePointer(to: window) {
                imprint_depthwise_forward(
                    $0, context.input.at(image), weight, context.output.at(image), Int32(rows.lowerBound),
                    Int32(rows.count), &biasClamp)
            }
            let first = image * shape.height
            finish(((first + rows.lowerBound) * shape.width)..<((first + rows.upperBound) * shape.width), image)
        }
        // In prediction, the threads share a large image; in training, moments are recorded per image.
        let parts = context.training ? 1 : partCount
        guard parts > 1 else { return context.forEachImage(batch) { convolve(0..<shape.height, of: $0) } }
        // The kernel computes two rows at once.
        let pairs = (shape.height + 1) / 2
        context.worker.forEachChunk(batch * parts) { index in
            let (image, part) = index.quotientAndRemainder(dividingBy: parts)
            let range = chunkRange(part, of: parts, total: pairs)
            convolve((2 * range.lowerBound)..<min(2 * range.upperBound, shape.height), of: image)
        }
    }

    /// The number of parts of an image in prediction, rounded so that two or four threads share them evenly.
    private var partCount: Int {
        let shape = context.output.shape
        let size = max(Self.minimumRows, (1 << 15) / (shape.width * shape.channels))
        let parts = (shape.height + size - 1) / size
        guard parts > 1 else { return shape.height > 2 && shape.count >= Self.minimumSharedValues ? 2 : 1 }
        return roundedUp(parts, to: parts < 4 ? 2 : 4)
    }

    /// The minimum number of rows per part of an image: rows at the border of two parts are read twice.
    private static let minimumRows = 8
    /// The minimum number of outputs of an image that two threads share, if its rows are few.
    private static let minimumSharedValues = 1 << 15

    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>) {
        defer { context.allReduceInBackground(dWeight, count: weightCount) }
        let (dy, outputCount) = (context.outputGradient, context.output.shape.count)
        ImageSum.run(
            context.part, count: weightCount, into: dWeight,
            scratch: context.scratch.assumingMemoryBound(to: Float.self),
            worker: context.worker
        ) { images, sum in
            sum.update(repeating: 0, count: weightCount)
            for image in images {
                withUnsafePointer(to: window) {
                    imprint_depthwise_backward_weight($0, context.input.at(image), dy + image * outputCount, sum)
                }
            }
        }
    }

    func backwardInput(_ dx: UnsafeMutablePointer<Float>, batch: Int) {
        let (dy, outputCount) = (context.outputGradient, context.output.shape.count)
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_depthwise_backward_input(
                    $0, dy + image * outputCount, context.parameters[0], dx + image * context.input.shape.count)
            }
        }
    }
}
