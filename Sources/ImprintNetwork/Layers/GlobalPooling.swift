internal import CImprintKernels

/// Global average pooling.
///
/// y[n, c] = Σ x[n, i, j, c] / (height · width), summed over i and j.
///
/// Input: [batch, height, width, channels]. Output: [batch, 1, 1, channels].
public struct GlobalAveragePool: Layer {
    public static let kind = "globalAveragePool"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        TensorShape(channels: try onlyInput("GlobalAveragePool", inputs).channels)
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(scratch: request.batch * request.output.count * MemoryLayout<Double>.stride)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let pixels = context.input.shape.pixels
        let channels = context.input.shape.channels
        context.forEachImage(batch) { image in
            let sums = context.scratch.assumingMemoryBound(to: Double.self) + image * channels
            imprint_channel_sums(context.input.at(image), channels, sums, pixels, channels)
            let y = context.output.at(image)
            for channel in 0..<channels { y[channel] = Float(sums[channel] / Double(pixels)) }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let pixels = context.input.shape.pixels
        let channels = context.input.shape.channels
        context.forEachImage(batch) { image in
            let dxImage = dx + image * pixels * channels
            imprint_scale(context.outputGradient + image * channels, 1 / Float(pixels), dxImage, channels)
            if pixels > 1 { imprint_broadcast_row(dxImage, dxImage + channels, pixels - 1, channels) }
        }
    }
}

/// Global max pooling.
///
/// y[n, c] = max x[n, i, j, c] over i and j.
///
/// Input: [batch, height, width, channels]. Output: [batch, 1, 1, channels].
///
/// Backward: the gradient goes to the first position of the maximum.
public struct GlobalMaxPool: Layer {
    public static let kind = "globalMaxPool"
    /// Creates the layer.
    public init() {}

    public func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape {
        TensorShape(channels: try onlyInput("GlobalMaxPool", inputs).channels)
    }

    public var backwardReads: BackwardReads { [] }

    public func memory(_ request: MemoryRequest) -> LayerMemory {
        LayerMemory(saved: request.batch * request.output.count * MemoryLayout<Int32>.stride)
    }

    public func forward(_ context: LayerContext, batch: Int) {
        let pixels = context.input.shape.pixels
        let channels = context.input.shape.channels
        context.forEachImage(batch) { image in
            let x = context.input.at(image)
            let y = context.output.at(image)
            let winners = context.saved.assumingMemoryBound(to: Int32.self) + image * channels
            y.update(from: x, count: channels)
            winners.update(repeating: 0, count: channels)
            for pixel in 1..<max(pixels, 1) {
                for channel in 0..<channels {
                    let value = x[pixel * channels + channel]
                    // The maximum of values with NaN is NaN.
                    guard value > y[channel] || value.isNaN else { continue }
                    y[channel] = value
                    winners[channel] = Int32(pixel)
                }
            }
        }
    }

    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let count = context.input.shape.count
        let channels = context.input.shape.channels
        context.forEachImage(batch) { image in
            let winners = context.saved.assumingMemoryBound(to: Int32.self) + image * channels
            (dx + image * count).update(repeating: 0, count: count)
            for channel in 0..<channels {
                dx[image * count + Int(winners[channel]) * channels + channel] =
                    context.outputGradient[image * channels + channel]
            }
        }
    }
}
