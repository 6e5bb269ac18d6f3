import Foundation
import ImprintCore
import Testing

@testable import ImprintNetwork

@Suite struct HeatMapLossTests {
    private static let shapes = [
        TensorShape(height: 6, width: 6, channels: 1), TensorShape(height: 3, width: 5, channels: 2),
        TensorShape(height: 1, width: 1, channels: 1), TensorShape(height: 4, width: 3, channels: 3),
    ]

    private func logits(_ count: Int) -> [Float] {
        var stream = RandomStream(seed: 4, "logits", count)
        return (0..<count).map { _ in 2 * stream.normal() }
    }

    private func targets(_ shape: TensorShape) -> [HeatMapLoss.Target?] {
        [
            nil, HeatMapLoss.Target(logo: 0, row: 1.3, column: 0.2),
            HeatMapLoss.Target(logo: shape.channels - 1, row: 0.5 * Float(shape.height), column: 2),
            HeatMapLoss.Target(logo: 0, row: -3, column: -3),
        ]
    }

    private func run(_ shape: TensorShape, _ values: [Float]) -> (loss: Float, correct: Int, gradient: [Float]) {
        var values = values
        var gradient = [Float](repeating: .nan, count: values.count)
        let result = values.withUnsafeMutableBufferPointer { values in
            gradient.withUnsafeMutableBufferPointer {
                HeatMapLoss(shape)(logits: values, targets: targets(shape), gradient: $0)
            }
        }
        return (result.loss, result.correct, gradient)
    }

    @Test("The loss agrees with its formula", arguments: shapes) func formula(shape: TensorShape) {
        let count = 4 * shape.count
        let values = logits(count)
        func softplus(_ x: Double) -> Double { log(1 + exp(x)) }
        var sum = 0.0
        for (patch, target) in targets(shape).enumerated() {
            for logo in 0..<shape.channels {
                let map = (0..<shape.pixels).map { Double(values[patch * shape.count + $0 * shape.channels + logo]) }
                let score = log(map.reduce(0) { $0 + exp($1) }) - log(2)
                guard let target, target.logo == logo else {
                    sum += softplus(score)
                    continue
                }
                sum += softplus(-score)
                let distances = (0..<shape.pixels).map {
                    hypot(
                        Double($0 / shape.width) - Double(target.row), Double($0 % shape.width) - Double(target.column))
                }
                let near = map.indices.filter { distances[$0] <= 0.72 }
                let far = map.indices.filter { distances[$0] > 1.6 }
                if !near.isEmpty { sum += 0.5 * near.reduce(0) { $0 + softplus(-map[$1]) } / Double(near.count) }
                if !far.isEmpty {
                    sum += 0.5 * softplus(log(far.reduce(0) { $0 + exp(map[$1]) }))
                    sum += far.reduce(0) { $0 + softplus(map[$1]) } / Double(far.count)
                }
            }
        }
        #expect(abs(Double(run(shape, values).loss) - sum / 4) < 1e-4)
    }

    @Test("The gradient agrees with finite differences", arguments: shapes) func gradient(shape: TensorShape) {
        let values = logits(4 * shape.count)
        let found = run(shape, values).gradient
        for index in values.indices {
            func loss(_ shift: Float) -> Float {
                var shifted = values
                shifted[index] += shift
                return run(shape, shifted).loss
            }
            let expected = (loss(0.01) - loss(-0.01)) / 0.02
            #expect(abs(found[index] - expected) < 2e-3, "\(index)")
        }
    }

    @Test("Large logits give a finite loss") func large() {
        let shape = Self.shapes[0]
        let result = run(shape, (0..<(4 * shape.count)).map { $0 % 2 == 0 ? 300 : -300 })
        #expect(result.loss.isFinite && result.gradient.allSatisfy(\.isFinite))
    }

    @Test("The logo detector outputs a heat map, and its parameters fit images of any size") func network() throws {
        let network = try Network.logoDetector()
        #expect(network.output == TensorShape(height: 6, width: 6, channels: 1))
        #expect(ParameterLayout(network).trainableCount == 328_785)
        let large = try Network.logoDetector(height: 160, width: 224)
        #expect(large.output == TensorShape(height: 10, width: 14, channels: 1))
        #expect(ParameterLayout(large) == ParameterLayout(network))
    }
}
