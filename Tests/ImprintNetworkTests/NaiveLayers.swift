@testable import ImprintNetwork

/// The results of the forward and backward pass of a layer, in double precision.
struct NaiveResult {
    var output: [Double]
    var inputGradient: [Double]
    var parameterGradients: [[Double]]
}

/// A layer that follows its formula in plain loops, in double precision.
protocol NaiveLayer: Sendable {
    func run(input: [Double], outputGradient: [Double], parameters: [[Double]], batch: Int) -> NaiveResult
}

/// A sliding window, which maps each tap of its kernel to a pixel of the image.
struct NaiveWindow {
    let input: TensorShape
    let output: TensorShape
    let kernel: Size2D
    let stride: Size2D
    let dilation: Size2D
    private let top: Int
    private let left: Int
    /// The end of the padding below and to the right of the image.
    private let end: Size2D

    init(
        input: TensorShape, kernel: Size2D, stride: Size2D, dilation: Size2D = 1, padding: Padding,
        roundsUp: Bool = false
    ) {
        let reach = Size2D(height: (kernel.height - 1) * dilation.height, width: (kernel.width - 1) * dilation.width)
        var (height, width): (Int, Int)
        var (top, left) = (0, 0)
        switch padding {
        case .same:
            height = (input.height + stride.height - 1) / stride.height
            width = (input.width + stride.width - 1) / stride.width
            top = max((height - 1) * stride.height + reach.height + 1 - input.height, 0) / 2
            left = max((width - 1) * stride.width + reach.width + 1 - input.width, 0) / 2
        case .valid:
            height = (input.height - reach.height - 1) / stride.height + 1
            width = (input.width - reach.width - 1) / stride.width + 1
        case .explicit(let above, let before, let below, let after):
            (top, left) = (above, before)
            height = (input.height + above + below - reach.height - 1) / stride.height + 1
            width = (input.width + before + after - reach.width - 1) / stride.width + 1
        }
        var end = Size2D(height: .max, width: .max)
        if roundsUp, case .explicit(_, _, let below, let after) = padding {
            end = Size2D(height: input.height + below, width: input.width + after)
            // Every window begins before the end of the image, and the windows before it do not reach the end of the padding.
            func count(_ length: Int, _ before: Int, _ end: Int, _ kernel: Int, _ stride: Int) -> Int {
                var count = 1
                while (count - 1) * stride - before + kernel < end && count * stride - before < length { count += 1 }
                return count
            }
            height = count(input.height, top, end.height, reach.height + 1, stride.height)
            width = count(input.width, left, end.width, reach.width + 1, stride.width)
        }
        self.end = end
        self.input = input
        self.output = TensorShape(height: height, width: width, channels: input.channels)
        self.kernel = kernel
        self.stride = stride
        self.dilation = dilation
        self.top = top
        self.left = left
    }

    /// Calls `body` for every tap of every window.
    ///
    /// Pixels are counted over the whole batch; the input pixel is nil in the padding. If the output size is rounded up, taps
    /// beyond the padding are skipped.
    func forEachTap(_ batch: Int, _ body: (_ outputPixel: Int, _ tap: Int, _ inputPixel: Int?) -> Void) {
        for image in 0..<batch {
            for i in 0..<output.height {
                for j in 0..<output.width {
                    for p in 0..<kernel.height {
                        for q in 0..<kernel.width {
                            let y = i * stride.height + p * dilation.height - top
                            let x = j * stride.width + q * dilation.width - left
                            guard y < end.height && x < end.width else { continue }
                            let isInside = (0..<input.height).contains(y) && (0..<input.width).contains(x)
                            body(
                                (image * output.height + i) * output.width + j, p * kernel.width + q,
                                isInside ? (image * input.height + y) * input.width + x : nil)
                        }
                    }
                }
            }
        }
    }
}

struct NaiveConvolution: NaiveLayer {
    let window: NaiveWindow
    let outputChannels: Int
    let groups: Int

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let inputs = window.input.channels
        let inputsOfGroup = inputs / groups
        let outputsOfGroup = outputChannels / groups
        let weight = parameters[0]
        var y = [Double](repeating: 0, count: dy.count)
        var dx = [Double](repeating: 0, count: x.count)
        var dWeight = [Double](repeating: 0, count: weight.count)
        window.forEachTap(batch) { outputPixel, tap, inputPixel in
            guard let inputPixel else { return }
            for o in 0..<outputChannels {
                let first = o / outputsOfGroup * inputsOfGroup
                for c in 0..<inputsOfGroup {
                    let from = inputPixel * inputs + first + c
                    let to = outputPixel * outputChannels + o
                    let w = (tap * inputsOfGroup + c) * outputChannels + o
                    y[to] += x[from] * weight[w]
                    dx[from] += dy[to] * weight[w]
                    dWeight[w] += dy[to] * x[from]
                }
            }
        }
        guard parameters.count > 1 else {
            return NaiveResult(output: y, inputGradient: dx, parameterGradients: [dWeight])
        }
        var dBias = [Double](repeating: 0, count: outputChannels)
        for index in y.indices {
            y[index] += parameters[1][index % outputChannels]
            dBias[index % outputChannels] += dy[index]
        }
        return NaiveResult(output: y, inputGradient: dx, parameterGradients: [dWeight, dBias])
    }
}

/// Each input pixel adds its taps to the output, unless they are in the padding.
struct NaiveTransposedConvolution: NaiveLayer {
    let input: TensorShape
    let output: TensorShape
    let layer: TransposedConvolution

    /// The number of rows above and columns to the left of the output that are cropped.
    private var start: Size2D {
        switch layer.padding {
        case .valid: 0
        case .explicit(let top, let left, _, _): Size2D(height: top, width: left)
        case .same:
            Size2D(
                height: max((layer.kernelSize.height - 1) * layer.dilation.height + 1 - layer.stride.height, 0) / 2,
                width: max((layer.kernelSize.width - 1) * layer.dilation.width + 1 - layer.stride.width, 0) / 2)
        }
    }

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let weight = parameters[0]
        var y = dy.indices.map { layer.hasBias ? parameters[1][$0 % output.channels] : 0 }
        var dx = [Double](repeating: 0, count: x.count)
        var dWeight = [Double](repeating: 0, count: weight.count)
        let (inputsOfGroup, outputsOfGroup) = (input.channels / layer.groups, output.channels / layer.groups)
        for index in x.indices {
            let (pixel, c) = index.quotientAndRemainder(dividingBy: input.channels)
            let (image, inside) = pixel.quotientAndRemainder(dividingBy: input.pixels)
            let (i, j) = inside.quotientAndRemainder(dividingBy: input.width)
            for tap in 0..<(layer.kernelSize.height * layer.kernelSize.width) {
                let (p, q) = tap.quotientAndRemainder(dividingBy: layer.kernelSize.width)
                let row = i * layer.stride.height + p * layer.dilation.height - start.height
                let column = j * layer.stride.width + q * layer.dilation.width - start.width
                guard (0..<output.height).contains(row), (0..<output.width).contains(column) else { continue }
                for o in 0..<outputsOfGroup {
                    let channel = c / inputsOfGroup * outputsOfGroup + o
                    let to = ((image * output.height + row) * output.width + column) * output.channels + channel
                    let w = (tap * outputsOfGroup + o) * input.channels + c
                    y[to] += x[index] * weight[w]
                    dx[index] += dy[to] * weight[w]
                    dWeight[w] += dy[to] * x[index]
                }
            }
        }
        var dBias = [Double](repeating: 0, count: layer.hasBias ? output.channels : 0)
        for index in dy.indices where layer.hasBias { dBias[index % output.channels] += dy[index] }
        return NaiveResult(
            output: y, inputGradient: dx, parameterGradients: layer.hasBias ? [dWeight, dBias] : [dWeight])
    }
}

struct NaiveMaxPool: NaiveLayer {
    let window: NaiveWindow

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let channels = window.input.channels
        var winners = [Int?](repeating: nil, count: dy.count)
        window.forEachTap(batch) { outputPixel, _, inputPixel in
            guard let inputPixel else { return }
            for c in 0..<channels {
                let from = inputPixel * channels + c
                let best = winners[outputPixel * channels + c]
                if best.map({ x[from] > x[$0] }) ?? true { winners[outputPixel * channels + c] = from }
            }
        }
        var dx = [Double](repeating: 0, count: x.count)
        for (winner, dy) in zip(winners, dy) { dx[winner ?? 0] += dy }
        return NaiveResult(output: winners.map { x[$0 ?? 0] }, inputGradient: dx, parameterGradients: [])
    }
}

struct NaiveAveragePool: NaiveLayer {
    let window: NaiveWindow
    let countsPadding: Bool

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let channels = window.input.channels
        var counts = [Double](repeating: 0, count: dy.count / channels)
        window.forEachTap(batch) { outputPixel, _, inputPixel in
            if countsPadding || inputPixel != nil { counts[outputPixel] += 1 }
        }
        var y = [Double](repeating: 0, count: dy.count)
        var dx = [Double](repeating: 0, count: x.count)
        window.forEachTap(batch) { outputPixel, _, inputPixel in
            guard let inputPixel else { return }
            for c in 0..<channels {
                y[outputPixel * channels + c] += x[inputPixel * channels + c] / counts[outputPixel]
                dx[inputPixel * channels + c] += dy[outputPixel * channels + c] / counts[outputPixel]
            }
        }
        return NaiveResult(output: y, inputGradient: dx, parameterGradients: [])
    }
}

struct NaiveDense: NaiveLayer {
    let inputChannels: Int
    let outputChannels: Int

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let weight = parameters[0]
        let bias = parameters.count > 1 ? parameters[1] : [Double](repeating: 0, count: outputChannels)
        var y = [Double](repeating: 0, count: dy.count)
        var dx = [Double](repeating: 0, count: x.count)
        var dWeight = [Double](repeating: 0, count: weight.count)
        var dBias = [Double](repeating: 0, count: outputChannels)
        for n in 0..<batch {
            for o in 0..<outputChannels {
                let slope = dy[n * outputChannels + o]
                var sum = bias[o]
                for c in 0..<inputChannels {
                    sum += x[n * inputChannels + c] * weight[c * outputChannels + o]
                    dx[n * inputChannels + c] += slope * weight[c * outputChannels + o]
                    dWeight[c * outputChannels + o] += slope * x[n * inputChannels + c]
                }
                y[n * outputChannels + o] = sum
                dBias[o] += slope
            }
        }
        return NaiveResult(
            output: y, inputGradient: dx, parameterGradients: parameters.count > 1 ? [dWeight, dBias] : [dWeight])
    }
}

/// Parameters: scale, shift, running mean, running variance.
struct NaiveBatchNormalization: NaiveLayer {
    let channels: Int
    let epsilon: Double
    let usesRunningStatistics: Bool

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(
            output: x, inputGradient: x, parameterGradients: [[Double]](repeating: [], count: 2))
        for c in 0..<channels {
            let indices = Array(stride(from: c, to: x.count, by: channels))
            let count = Double(indices.count)
            func mean(_ value: (Int) -> Double) -> Double { indices.reduce(0) { $0 + value($1) } / count }
            let centre = usesRunningStatistics ? parameters[2][c] : mean { x[$0] }
            let variance =
                usesRunningStatistics ? parameters[3][c] : mean { (x[$0] - centre) * (x[$0] - centre) }
            let standardDeviation = (variance + epsilon).squareRoot()
            func normalized(_ index: Int) -> Double { (x[index] - centre) / standardDeviation }
            let meanSlope = mean { dy[$0] }
            let meanProduct = mean { dy[$0] * normalized($0) }
            for index in indices {
                result.output[index] = parameters[0][c] * normalized(index) + parameters[1][c]
                let throughStatistics = usesRunningStatistics ? 0 : meanSlope + normalized(index) * meanProduct
                result.inputGradient[index] = parameters[0][c] / standardDeviation * (dy[index] - throughStatistics)
            }
            result.parameterGradients[0].append(meanProduct * count)
            result.parameterGradients[1].append(meanSlope * count)
        }
        return result
    }
}
