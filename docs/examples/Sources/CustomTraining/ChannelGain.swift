import Imprint
import ImprintNetwork

/// A layer: multiplies each channel by a learned factor, y[n, h, w, c] = gain[c] · x[n, h, w, c].
struct ChannelGain: Layer {
    static let kind = "example.channelGain"

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        guard inputs.count == 1 else {
            throw .inputCount(layer: "ChannelGain", expected: "one input", found: inputs.count)
        }
        return inputs[0]
    }

    func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        [ParameterDescription(name: "gain", shape: [inputs[0].channels], role: .bias, initializer: .constant(1))]
    }

    func forward(_ context: LayerContext, batch: Int) {
        let (x, y, gain) = (context.input.values, context.output.values, context.parameters[0])
        let channels = context.output.shape.channels
        context.parallelFor(batch * context.output.shape.count / channels) { pixels in
            for pixel in pixels {
                for c in 0..<channels { y[pixel * channels + c] = gain[c] * x[pixel * channels + c] }
            }
        }
    }

    func backward(_ context: LayerContext, batch: Int) {
        let (x, dy, gain) = (context.input.values, context.outputGradient, context.parameters[0])
        let channels = context.output.shape.channels
        let pixelCount = batch * context.output.shape.count / channels
        if let dx = context.input.gradient {
            context.parallelFor(pixelCount) { pixels in
                for pixel in pixels {
                    for c in 0..<channels { dx[pixel * channels + c] = gain[c] * dy[pixel * channels + c] }
                }
            }
        }
        if let dgain = context.parameterGradients[0] {
            // Each thread sums whole channels, so that the sums do not depend on the number of threads.
            context.parallelFor(channels) { range in
                for c in range {
                    var sum: Float = 0
                    for pixel in 0..<pixelCount { sum += x[pixel * channels + c] * dy[pixel * channels + c] }
                    dgain[c] = sum
                }
            }
        }
    }
}
