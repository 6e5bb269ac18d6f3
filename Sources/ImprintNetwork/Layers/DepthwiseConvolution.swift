internal import CImprintKernels
internal import ImprintCore

/// A convolution in which each output channel sees one input channel of its own, directly.
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

    /// How many numbers of scratch memory the gradient of the weights takes.
    static func scratchCount(_ layer: Convolution) -> Int {
        (weightParts - 1) * layer.kernelSize.height * layer.kernelSize.width * layer.outputChannels
    }

    func forward(_ weights: ConvolutionWeights, batch: Int, _ finish: (_ pixels: Range<Int>, _ block: Int) -> Void) {
        guard case .plain(let weight) = weights else {
            preconditionFailure("a depthwise convolution has no transformed weights")
        }
        let pixels = context.output.shape.pixels
        context.forEachImage(batch) { image in
            withUnsafePointer(to: window) {
                imprint_depthwise_forward($0, context.input.at(image), weight, context.output.at(image))
            }
            finish((image * pixels)..<((image + 1) * pixels), image)
        }
    }

    func backwardWeight(_ dWeight: UnsafeMutablePointer<Float>, batch: Int) {
        let (dy, outputCount) = (context.outputGradient, context.output.shape.count)
        sumOfParts(context, batch: batch, count: weightCount, into: dWeight) { images, sum in
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
