import Foundation

@testable import ImprintNetwork

/// A layer whose outputs are weighted sums of the elements of an image, plus constants.
struct NaiveSums: NaiveLayer {
    struct Term {
        let output: Int
        let input: Int
        let weight: Double
    }

    let terms: [Term]
    /// The constants of the outputs.
    let start: [Double]

    /// Creates a layer from the terms of each output element, which are pairs of an input index and a weight.
    ///
    /// An element without terms is `constant`.
    init(
        _ output: TensorShape, constant: Double = 0,
        _ terms: (_ row: Int, _ column: Int, _ channel: Int) -> [(Int, Double)]
    ) {
        var all: [Term] = []
        var start = [Double](repeating: 0, count: output.count)
        for index in 0..<output.count {
            let (pixel, channel) = index.quotientAndRemainder(dividingBy: output.channels)
            let found = terms(pixel / output.width, pixel % output.width, channel)
            all += found.map { Term(output: index, input: $0.0, weight: $0.1) }
            if found.isEmpty { start[index] = constant }
        }
        self.terms = all
        self.start = start
    }

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let (from, to) = (x.count / batch, dy.count / batch)
        var y = (0..<batch).flatMap { _ in start }
        var dx = [Double](repeating: 0, count: x.count)
        for image in 0..<batch {
            for term in terms {
                y[image * to + term.output] += term.weight * x[image * from + term.input]
                dx[image * from + term.input] += term.weight * dy[image * to + term.output]
            }
        }
        return NaiveResult(output: y, inputGradient: dx, parameterGradients: [])
    }

    static func pad(_ input: TensorShape, _ layer: PadLayer) -> NaiveSums {
        let output = TensorShape(
            height: layer.top + input.height + layer.bottom, width: layer.left + input.width + layer.right,
            channels: input.channels)
        func source(_ position: Int, _ length: Int) -> Int? {
            switch layer.mode {
            case .constant: return (0..<length).contains(position) ? position : nil
            case .edge: return max(0, min(length - 1, position))
            case .reflect: return abs(length - 1 - abs(length - 1 - position))
            }
        }
        var constant = 0.0
        if case .constant(let value) = layer.mode { constant = Double(value) }
        return NaiveSums(output, constant: constant) { row, column, channel in
            guard let y = source(row - layer.top, input.height), let x = source(column - layer.left, input.width) else {
                return []
            }
            return [((y * input.width + x) * input.channels + channel, 1)]
        }
    }

    static func upsample(_ input: TensorShape, _ factor: Size2D) -> NaiveSums {
        let output = TensorShape(
            height: input.height * factor.height, width: input.width * factor.width, channels: input.channels)
        return NaiveSums(output) { row, column, channel in
            let pixel = row / factor.height * input.width + column / factor.width
            return [(pixel * input.channels + channel, 1)]
        }
    }

    static func select(_ input: TensorShape, _ channels: [Int]) -> NaiveSums {
        NaiveSums(TensorShape(height: input.height, width: input.width, channels: channels.count)) {
            row, column, channel in
            [((row * input.width + column) * input.channels + channels[channel], 1)]
        }
    }

    static func mean(_ input: TensorShape, _ axes: MeanAxes) -> NaiveSums {
        let output = TensorShape(
            height: axes.contains(.height) ? 1 : input.height, width: axes.contains(.width) ? 1 : input.width,
            channels: axes.contains(.channels) ? 1 : input.channels)
        let weight = Double(output.count) / Double(input.count)
        return NaiveSums(output) { row, column, channel in
            (0..<input.count).filter { index in
                let (pixel, c) = index.quotientAndRemainder(dividingBy: input.channels)
                return (axes.contains(.height) || pixel / input.width == row)
                    && (axes.contains(.width) || pixel % input.width == column)
                    && (axes.contains(.channels) || c == channel)
            }.map { ($0, weight) }
        }
    }
}

/// Parameters: scale and shift, if present, of `count` elements each, which repeat over the input.
struct NaiveAffine: NaiveLayer {
    let count: Int
    let hasScale: Bool
    let hasShift: Bool

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(output: x, inputGradient: dy, parameterGradients: [])
        var dScale = [Double](repeating: 0, count: count)
        var dShift = dScale
        for index in x.indices {
            let scale = hasScale ? parameters[0][index % count] : 1
            let shift = hasShift ? parameters[hasScale ? 1 : 0][index % count] : 0
            result.output[index] = scale * x[index] + shift
            result.inputGradient[index] = scale * dy[index]
            dScale[index % count] += x[index] * dy[index]
            dShift[index % count] += dy[index]
        }
        result.parameterGradients = (hasScale ? [dScale] : []) + (hasShift ? [dShift] : [])
        return result
    }
}

/// Parameter: the slope, of `count` elements, which repeat over the input.
struct NaivePReLU: NaiveLayer {
    let count: Int

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(
            output: x, inputGradient: dy, parameterGradients: [[Double](repeating: 0, count: count)])
        for index in x.indices where x[index] <= 0 {
            result.output[index] *= parameters[0][index % count]
            result.inputGradient[index] *= parameters[0][index % count]
            result.parameterGradients[0][index % count] += x[index] * dy[index]
        }
        return result
    }
}

/// An element-wise function and its derivative.
struct NaiveCurve: NaiveLayer {
    let value: @Sendable (Double) -> Double
    let slope: @Sendable (Double) -> Double

    init(value: @escaping @Sendable (Double) -> Double, slope: @escaping @Sendable (Double) -> Double) {
        (self.value, self.slope) = (value, slope)
    }

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        NaiveResult(
            output: x.map(value), inputGradient: zip(x, dy).map { slope($0) * $1 }, parameterGradients: [])
    }
}

/// Parameters: scale and shift.
///
/// The derivatives of mean and standard deviation are computed from their sums, term by term.
struct NaiveLayerNormalization: NaiveLayer {
    let channels: Int
    let epsilon: Double

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(output: x, inputGradient: x, parameterGradients: parameters.map { $0.map { _ in 0 } })
        let count = Double(channels)
        for first in stride(from: 0, to: x.count, by: channels) {
            let pixel = first..<(first + channels)
            let mean = x[pixel].reduce(0, +) / count
            let variance = x[pixel].reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / count
            let standardDeviation = (variance + epsilon).squareRoot()
            for index in pixel {
                let normalized = (x[index] - mean) / standardDeviation
                result.output[index] = normalized * parameters[0][index - first] + parameters[1][index - first]
                result.parameterGradients[0][index - first] += dy[index] * normalized
                result.parameterGradients[1][index - first] += dy[index]
                result.inputGradient[index] = pixel.reduce(0) { sum, other in
                    let slope = (index == other ? 1.0 : 0) - 1 / count
                    let product =
                        (x[other] - mean) * (x[index] - mean) / (count * standardDeviation * standardDeviation)
                    return sum + dy[other] * parameters[0][other - first] * (slope - product) / standardDeviation
                }
            }
        }
        return result
    }
}

struct NaiveResponseNormalization: NaiveLayer {
    let channels: Int
    let layer: LocalResponseNormalization

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        let factor = Double(layer.alpha) / Double(layer.size)
        let beta = Double(layer.beta)
        var result = NaiveResult(
            output: x, inputGradient: [Double](repeating: 0, count: x.count), parameterGradients: [])
        for index in x.indices {
            let first = index - index % channels
            let low = max(first, index - (layer.size - 1) / 2)
            let high = min(first + channels - 1, index + layer.size / 2)
            let divisor = (low...high).reduce(Double(layer.bias)) { $0 + factor * x[$1] * x[$1] }
            result.output[index] = x[index] * pow(divisor, -beta)
            result.inputGradient[index] += dy[index] * pow(divisor, -beta)
            for other in low...high {
                result.inputGradient[other] -=
                    2 * factor * beta * x[other] * dy[index] * x[index] * pow(divisor, -beta - 1)
            }
        }
        return result
    }
}
