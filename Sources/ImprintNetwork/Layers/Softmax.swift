#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Probabilities over the channels of each pixel, yᵢ = e^(xᵢ − max x) / Σⱼ e^(xⱼ − max x).
///
/// As a classifier's last layer it is trained together with the loss, see `SoftmaxCrossEntropy`.
public struct Softmax: Layer {
    public static let kind = "softmax"
    /// Makes the layer.
    public init() {}

    public func outputShape(for inputs: [Shape]) throws(NetworkError) -> Shape { try onlyInput("Softmax", inputs) }
    public var backwardReads: BackwardReads { .output }

    public func forward(_ context: LayerContext, batch: Int) {
        let channels = context.output.shape.channels
        context.worker.forEach(batch * context.output.shape.pixels) { row in
            softmax(context.input.values + row * channels, context.output.values + row * channels, count: channels)
        }
    }

    // dxᵢ = yᵢ · (dyᵢ − Σⱼ dyⱼ·yⱼ)
    public func backward(_ context: LayerContext, batch: Int) {
        guard let dx = context.input.gradient else { return }
        let channels = context.output.shape.channels
        context.worker.forEach(batch * context.output.shape.pixels) { row in
            let y = context.output.values + row * channels
            let dy = context.outputGradient + row * channels
            var dot: Float = 0
            for i in 0..<channels { dot += dy[i] * y[i] }
            for i in 0..<channels { dx[row * channels + i] = y[i] * (dy[i] - dot) }
        }
    }
}

/// y = softmax(x) over `count` numbers; y may be x.
func softmax(_ x: UnsafePointer<Float>, _ y: UnsafeMutablePointer<Float>, count: Int) {
    var largest = -Float.infinity
    for i in 0..<count { largest = max(largest, x[i]) }
    var sum: Float = 0
    for i in 0..<count {
        y[i] = expf(x[i] - largest)
        sum += y[i]
    }
    let factor = 1 / sum
    for i in 0..<count { y[i] *= factor }
}
