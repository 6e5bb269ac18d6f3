import Foundation

@testable import ImprintNetwork

/// A layer whose results are weighted sums of an image's numbers, and constants.
struct NaiveSums: NaiveLayer {
    struct Term {
        let output: Int
        let input: Int
        let weight: Double
    }

    let terms: [Term]
    /// What the results start from.
    let start: [Double]

    /// The terms of a result of this shape, from each of its places and channels; its constant if there are none.
    init(
        _ output: TensorShape, constant: Double = 0,
        _ terms: (_ row: Int, _ column: Int, _ channel: Int) -> [(Int, Double)]
    ) {
        var all: [Term] = []
        var start = [Double](repeating: 0, count: output.count)
        for place in 0..<output.count {
            let (pixel, channel) = place.quotientAndRemainder(dividingBy: output.channels)
            let found = terms(pixel / output.width, pixel % output.width, channel)
            all += found.map { Term(output: place, input: $0.0, weight: $0.1) }
            if found.isEmpty { start[place] = constant }
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
        func source(_ place: Int, _ length: Int) -> Int? {
            switch layer.mode {
            case .constant: return (0..<length).contains(place) ? place : nil
            case .edge: return max(0, min(length - 1, place))
            case .reflect: return abs(length - 1 - abs(length - 1 - place))
            }
        }
        var constant = 0.0
        if case .constant(let number) = layer.mode { constant = Double(number) }
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
            (0..<input.count).filter { place in
                let (pixel, c) = place.quotientAndRemainder(dividingBy: input.channels)
                return (axes.contains(.height) || pixel / input.width == row)
                    && (axes.contains(.width) || pixel % input.width == column)
                    && (axes.contains(.channels) || c == channel)
            }.map { ($0, weight) }
        }
    }
}

/// Parameters: scale and shift, as far as there are any, each with a number for every `count` numbers in turn.
struct NaiveAffine: NaiveLayer {
    let count: Int
    let hasScale: Bool
    let hasShift: Bool

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(output: x, inputGradient: dy, parameterGradients: [])
        var dScale = [Double](repeating: 0, count: count)
        var dShift = dScale
        for place in x.indices {
            let scale = hasScale ? parameters[0][place % count] : 1
            let shift = hasShift ? parameters[hasScale ? 1 : 0][place % count] : 0
            result.output[place] = scale * x[place] + shift
            result.inputGradient[place] = scale * dy[place]
            dScale[place % count] += x[place] * dy[place]
            dShift[place % count] += dy[place]
        }
        result.parameterGradients = (hasScale ? [dScale] : []) + (hasShift ? [dShift] : [])
        return result
    }
}

/// Parameter: the slope, with a number for every `count` numbers in turn.
struct NaivePReLU: NaiveLayer {
    let count: Int

    func run(input x: [Double], outputGradient dy: [Double], parameters: [[Double]], batch: Int) -> NaiveResult {
        var result = NaiveResult(
            output: x, inputGradient: dy, parameterGradients: [[Double](repeating: 0, count: count)])
        for place in x.indices where x[place] <= 0 {
            result.output[place] *= parameters[0][place % count]
            result.inputGradient[place] *= parameters[0][place % count]
            result.parameterGradients[0][place % count] += x[place] * dy[place]
        }
        return result
    }
}

/// A function of each value by itself, and its derivative.
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
/// The derivatives of mean and deviation are those of their sums, term by term.
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
            let deviation = (variance + epsilon).squareRoot()
            for place in pixel {
                let normalized = (x[place] - mean) / deviation
                result.output[place] = normalized * parameters[0][place - first] + parameters[1][place - first]
                result.parameterGradients[0][place - first] += dy[place] * normalized
                result.parameterGradients[1][place - first] += dy[place]
                result.inputGradient[place] = pixel.reduce(0) { sum, other in
                    let slope = (place == other ? 1.0 : 0) - 1 / count
                    let product = (x[other] - mean) * (x[place] - mean) / (count * deviation * deviation)
                    return sum + dy[other] * parameters[0][other - first] * (slope - product) / deviation
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
        for place in x.indices {
            let first = place - place % channels
            let low = max(first, place - (layer.size - 1) / 2)
            let high = min(first + channels - 1, place + layer.size / 2)
            let divisor = (low...high).reduce(Double(layer.bias)) { $0 + factor * x[$1] * x[$1] }
            result.output[place] = x[place] * pow(divisor, -beta)
            result.inputGradient[place] += dy[place] * pow(divisor, -beta)
            for other in low...high {
                result.inputGradient[other] -=
                    2 * factor * beta * x[other] * dy[place] * x[place] * pow(divisor, -beta - 1)
            }
        }
        return result
    }
}
