import Foundation
import ImprintCore
import ImprintNetwork

/// One layer by itself: its forward pass, and its backward pass with the gradients that it has in a network.
struct LayerPasses {
    let name: String
    let layer: any Layer
    let input: Shape
    var batchSize = 16
    /// Multiplications, each with an addition, of a forward pass for one image; nil where memory takes the time.
    let multiplications: Int?

    static let all = [
        convolution(3, from: 64, to: 64, size: 56),
        convolution(3, from: 128, to: 128, size: 28),
        convolution(3, from: 256, to: 256, size: 14),
        convolution(3, from: 512, to: 512, size: 7),
        convolution(1, from: 64, to: 256, size: 56),
        convolution(1, from: 256, to: 64, size: 56),
        convolution(1, from: 512, to: 128, size: 28),
        convolution(5, from: 32, to: 64, size: 48),
        convolution(3, from: 3, to: 32, size: 224, stride: 2),
        depthwise(256, size: 28),
        depthwise(64, size: 112),
        LayerPasses(
            name: "maxpool2x2-64-112", layer: MaxPool(kernelSize: 2),
            input: Shape(height: 112, width: 112, channels: 64), multiplications: nil),
        LayerPasses(
            name: "batchnorm-64-112", layer: BatchNormalization(),
            input: Shape(height: 112, width: 112, channels: 64), multiplications: nil),
        LayerPasses(
            name: "relu-64-112", layer: ReLU(), input: Shape(height: 112, width: 112, channels: 64),
            multiplications: nil),
        dense(from: 2048, to: 1000, batchSize: 16),
    ]

    /// The yardstick of the others: one product of square matrices, which is nothing but `cblas_sgemm`.
    static let sgemm = dense(from: 1024, to: 1024, batchSize: 1024)

    static let heading = line("layer pass", "threads", "ms: median", "least", "most", "GFLOP/s", "of sgemm")

    /// A line for each of the two passes, and the median GFLOP/s of the forward pass.
    /// - Parameter yardstick: the GFLOP/s that the passes are compared with.
    func measure(threads: Int, yardstick: Double?) throws -> (lines: [String], rate: Double) {
        var builder = NetworkBuilder(name: name, input: input)
        builder.add(layer, named: "layer")
        let network = try builder.network()
        // What takes three channels takes images, which need no gradient.
        let inputGradient = input.channels != 3
        let plan = try Plan(
            network, parameters: try Parameters(network, seed: 1),
            options: Plan.Options(
                batchSize: batchSize, mode: .training, workers: Workers(threads), inputGradient: inputGradient))
        plan.input.fill(named: "images")
        plan.outputGradient.fill(named: "gradient")

        let work = multiplications.map { 2e-9 * Double($0 * batchSize) }
        func line(_ pass: String, _ work: Double?, _ measurement: Measurement) -> String {
            let rate = work.map { measurement.rate(of: $0).median }
            let part = rate.flatMap { rate in yardstick.map { 100 * rate / $0 } }
            let time = measurement.milliseconds
            return Self.line(
                "\(name)/\(pass)", "\(threads)", decimal(time.median, places: 3), decimal(time.least, places: 3),
                decimal(time.most, places: 3), rate.map { decimal($0) } ?? "–", part.map { decimal($0) + " %" } ?? "–")
        }
        let forward = Measurement(seconds: 1) { plan.forward(count: batchSize) }
        let backward = Measurement(seconds: 1) { plan.backward(count: batchSize) }
        return (
            [line("forward", work, forward), line("backward", work.map { inputGradient ? 2 * $0 : $0 }, backward)],
            work.map { forward.rate(of: $0).median } ?? 0
        )
    }

    private static func line(_ columns: String...) -> String { row(columns, widths: [32, 8, 12, 9, 9, 9, 9]) }

    private static func convolution(_ kernel: Int, from: Int, to: Int, size: Int, stride: Int = 1) -> LayerPasses {
        let outputSize = (size + stride - 1) / stride
        return LayerPasses(
            name: "conv\(kernel)x\(kernel)-\(from)-\(to)-\(size)",
            layer: Convolution(outputChannels: to, kernelSize: Size(kernel), stride: Size(stride), padding: .same),
            input: Shape(height: size, width: size, channels: from),
            multiplications: outputSize * outputSize * to * kernel * kernel * from)
    }

    private static func depthwise(_ channels: Int, size: Int) -> LayerPasses {
        LayerPasses(
            name: "depthwise3x3-\(channels)-\(size)",
            layer: Convolution(outputChannels: channels, kernelSize: 3, padding: .same, groups: channels),
            input: Shape(height: size, width: size, channels: channels), multiplications: size * size * channels * 9)
    }

    private static func dense(from: Int, to: Int, batchSize: Int) -> LayerPasses {
        LayerPasses(
            name: "dense-\(from)-\(to)", layer: Dense(outputChannels: to),
            input: Shape(height: 1, width: 1, channels: from), batchSize: batchSize, multiplications: from * to)
    }
}
