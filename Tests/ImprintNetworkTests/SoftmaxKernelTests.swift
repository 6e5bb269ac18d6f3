import CImprintKernels
import Foundation
import Testing

@testable import ImprintNetwork

/// Compares softmax, cross-entropy and the logistic function with their definitions in double precision.
@Suite struct SoftmaxKernelTests {
    /// The distribution of the values in a row.
    enum Row: CaseIterable {
        case narrow, wide, huge, opposite, equal, mostlyNegligible, mostlyMasked

        func values(_ count: Int) -> [Float] {
            randomValues(count, "row").enumerated().map { index, value in
                switch self {
                case .narrow: value
                case .wide: 60 * value
                case .huge: 1e30 * value
                case .opposite: index % 3 == 1 ? 1e30 : -1e30
                case .equal: -7
                case .mostlyNegligible: index == count / 2 ? 0 : -97 + 10 * value
                case .mostlyMasked: index % 5 == (count - 1) % 5 ? value : -.infinity
                }
            }
        }
    }

    /// Counts below and above the vector length, with every remainder.
    static let counts = Array(1...70) + [1000]

    /// Returns e^(x − max x); the difference is computed in single precision, as in the kernel.
    private func exponentials(_ x: [Float]) -> [Double] {
        let largest = x.max() ?? 0
        return x.map { exp(Double($0 - largest)) }
    }

    @Test("Softmax and its gradient agree with the definition, also in place", arguments: Row.allCases)
    func softmax(_ row: Row) {
        for count in Self.counts {
            let x = row.values(count)
            let exact = exponentials(x)
            let sum = exact.reduce(0, +)
            var y = [Float](repeating: .nan, count: count)
            imprint_softmax_forward(x, &y, count)
            let isClose = zip(y, exact).allSatisfy { abs(Double($0) - $1 / sum) <= 1e-6 * $1 / sum + 3e-45 }
            #expect(isClose, "\(y) from \(x)")
            var inPlace = x
            inPlace.withUnsafeMutableBufferPointer { imprint_softmax_forward($0.baseAddress, $0.baseAddress, count) }
            #expect(inPlace == y)

            let dy = randomValues(count, "dy")
            let dot = zip(y, dy).reduce(0) { $0 + Double($1.0) * Double($1.1) }
            var dx = dy
            dx.withUnsafeMutableBufferPointer { imprint_softmax_backward(y, $0.baseAddress, $0.baseAddress, count) }
            let exactGradient = zip(y, dy).map { Double($0) * (Double($1) - dot) }
            #expect(zip(dx, exactGradient).allSatisfy { abs(Double($0) - $1) < 1e-6 }, "\(dx) from \(y) and \(dy)")
        }
    }

    @Test("NaN makes the whole row NaN, and infinity makes at least itself NaN", arguments: [Float.nan, .infinity])
    func notFinite(_ value: Float) {
        for count in [1, 15, 16, 35] {
            for index in [0, count / 2, count - 1] {
                var x = randomValues(count, "row")
                x[index] = value
                imprint_softmax_forward(x, &x, count)
                // The probability of a finite value in a row with infinity can be 0.
                #expect(x.allSatisfy { $0.isNaN || !value.isNaN && $0 == 0 } && x[index].isNaN, "\(index) of \(count)")
            }
        }
    }

    /// Returns the loss, its gradient and whether the prediction is correct, in double precision.
    private func naive(
        _ x: [Float], label: Int, smoothing: Double, weights: [Float]?
    ) -> (loss: Double, gradient: [Double], isCorrect: Bool) {
        let exponentials = exponentials(x)
        let (sum, largest) = (exponentials.reduce(0, +), x.max() ?? 0)
        let targets = x.indices.map { k in
            ((k == label ? 1 - smoothing : 0) + smoothing / Double(x.count)) * Double(weights?[k] ?? 1)
        }
        let loss = x.indices.reduce(0) { loss, k in
            targets[k] > 0 ? loss + targets[k] * (log(sum) + Double(largest - x[k])) : loss
        }
        let mass = targets.reduce(0, +)
        let gradient = x.indices.map { exponentials[$0] / sum * mass - targets[$0] }
        return (loss, gradient, x.firstIndex(of: largest) == label)
    }

    @Test(
        "Cross-entropy agrees with the definition", arguments: Row.allCases,
        [(0, false), (0.1, false), (0, true), (0.3, true)])
    func crossEntropy(_ row: Row, options: (smoothing: Float, isWeighted: Bool)) {
        for count in Self.counts {
            let x = row.values(count)
            let weights = options.isWeighted ? (0..<count).map { Float($0 % 4) / 2 } : nil
            for label in Set([0, 1 % count, count / 2, count - 1]) {
                let exact = naive(x, label: label, smoothing: Double(options.smoothing), weights: weights)
                var dx = [Float](repeating: .nan, count: count)
                var isCorrect: Int32 = -1
                let evaluate = { (weights: UnsafePointer<Float>?, dx: UnsafeMutablePointer<Float>?) in
                    var kernelOptions = imprint_cross_entropy_options(
                        classes: count, label_smoothing: options.smoothing, weights: weights, factor: 0.5)
                    return imprint_softmax_cross_entropy(&kernelOptions, x, label, dx, &isCorrect)
                }
                let loss = weights.map { evaluate($0, &dx) } ?? evaluate(nil, &dx)
                let name = "label \(label) of \(count), \(row), \(options)"
                #expect(
                    loss == exact.loss || abs(loss - exact.loss) < 2e-6 * (1 + abs(exact.loss)),
                    "\(loss), expected \(exact.loss): \(name)")
                #expect(zip(dx, exact.gradient).allSatisfy { abs(Double($0) - $1 / 2) < 2e-6 }, "\(dx): \(name)")
                #expect((isCorrect == 1) == exact.isCorrect, "\(name)")
                let lossOnly = weights.map { evaluate($0, nil) } ?? evaluate(nil, nil)
                #expect(lossOnly == loss, "without a gradient: \(name)")
            }
        }
    }

    @Test("The logistic function is accurate to 4 ulp", arguments: counts)
    func sigmoid(_ count: Int) {
        let x = randomValues(count, "x").enumerated().map { $0 % 2 == 0 ? 3 * $1 : 110 * $1 }
        var y = x
        y.withUnsafeMutableBufferPointer { imprint_sigmoid_forward($0.baseAddress, $0.baseAddress, count) }
        for (x, y) in zip(x, y) {
            let exact = 1 / (1 + exp(-Double(x)))
            // Results below the reciprocal of the largest float can become 0.
            #expect(abs(Double(y) - exact) <= 4 * Double(Float(exact).ulp) + 3e-39, "of \(x)")
        }
    }
}
