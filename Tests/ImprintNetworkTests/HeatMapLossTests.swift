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
                HeatMapLoss(shape)(logits: values, targets: targets(shape).map { $0.map { [$0] } ?? [] }, gradient: $0)
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

    // MARK: Boxes

    /// Targets with and without boxes in a map of 5 rows and 6 columns.
    private static let boxTargets: [HeatMapLoss.Target?] = [
        HeatMapLoss.Target(
            logo: 0, row: 1.3, column: 2.2, box: BoxCode.Box(row: 1.5, column: 2, height: 2.5, width: 4)),
        nil, HeatMapLoss.Target(logo: 1, row: 2, column: 2),
        HeatMapLoss.Target(
            logo: 1, row: 3.6, column: 4.5, box: BoxCode.Box(row: 3, column: 4.5, height: 0.4, width: 3.1)),
    ]

    private func runBoxes(
        _ values: [Float], _ targets: [[HeatMapLoss.Target]] = boxTargets.map { $0.map { [$0] } ?? [] }
    ) -> (loss: Float, gradient: [Float]) {
        var values = values
        var gradient = [Float](repeating: .nan, count: values.count)
        let result = values.withUnsafeMutableBufferPointer { values in
            gradient.withUnsafeMutableBufferPointer {
                HeatMapLoss(TensorShape(height: 5, width: 6, channels: 2 + BoxCode.count), boxSize: 2.75)(
                    logits: values, targets: targets, gradient: $0)
            }
        }
        return (result.loss, gradient)
    }

    @Test("The gradient of boxes agrees with finite differences, and is 0 without a known box") func boxGradient() {
        let channels = 2 + BoxCode.count
        let values = logits(4 * 30 * channels)
        let found = runBoxes(values).gradient
        var changed = 0
        for index in values.indices where index % channels >= 2 {
            func loss(_ shift: Float) -> Float {
                var shifted = values
                shifted[index] += shift
                return runBoxes(shifted).loss
            }
            #expect(abs(found[index] - (loss(0.01) - loss(-0.01)) / 0.02) < 3e-3, "\(index)")
            if found[index] != 0 { changed += 1 }
            if [1, 2].contains(index / (30 * channels)) { #expect(found[index] == 0) }
        }
        #expect(changed >= 8)
    }

    @Test("True boxes have no box loss, and decode to the boxes") func trueBoxes() throws {
        let channels = 2 + BoxCode.count
        var values = logits(4 * 30 * channels)
        for (patch, target) in Self.boxTargets.enumerated() {
            guard let box = target?.box else { continue }
            for position in 0..<30 {
                let start = (patch * 30 + position) * channels + 2
                let code = box.values(row: position / 6, column: position % 6, size: 2.75)
                values.replaceSubrange(start..<(start + BoxCode.count), with: code)
                let decoded = BoxCode.box(code, row: position / 6, column: position % 6, size: 2.75)
                for (found, expected) in [
                    (decoded.row, box.row), (decoded.column, box.column), (decoded.height, box.height),
                    (decoded.width, box.width),
                ] { #expect(abs(found - expected) < 1e-4) }
            }
        }
        let gradient = runBoxes(values).gradient
        #expect(gradient.indices.allSatisfy { $0 % channels < 2 || abs(gradient[$0]) < 1e-5 })
    }

    /// Three logos in a patch: two that count, one of them twice, and one that is ignored.
    private static let severalTargets: [[HeatMapLoss.Target]] = [
        [
            HeatMapLoss.Target(logo: 0, row: 1, column: 1, box: BoxCode.Box(row: 1, column: 1.2, height: 2, width: 2)),
            HeatMapLoss.Target(logo: 0, row: 3.2, column: 4, box: BoxCode.Box(row: 3, column: 4, height: 1, width: 2)),
            HeatMapLoss.Target(logo: 1, row: 4, column: 0.4, isIgnored: true),
        ],
        [
            HeatMapLoss.Target(logo: 1, row: 2, column: 2),
            HeatMapLoss.Target(logo: 1, row: 2, column: 5, isIgnored: true),
        ],
        [], [],
    ]

    @Test("The gradient of several logos in a patch agrees with finite differences") func severalLogos() {
        let values = logits(4 * 30 * (2 + BoxCode.count))
        let found = runBoxes(values, Self.severalTargets).gradient
        for index in values.indices {
            func loss(_ shift: Float) -> Float {
                var shifted = values
                shifted[index] += shift
                return runBoxes(shifted, Self.severalTargets).loss
            }
            #expect(abs(found[index] - (loss(0.01) - loss(-0.01)) / 0.02) < 3e-3, "\(index)")
        }
    }

    @Test("A logo that is only ignored has no gradient, and an ignored object protects its positions") func ignored() {
        let channels = 2 + BoxCode.count
        let values = logits(4 * 30 * channels)
        let gradient = runBoxes(values, Self.severalTargets).gradient
        #expect((0..<30).allSatisfy { gradient[$0 * channels + 1] == 0 })
        // In the second patch, a position at the ignored object gets only the gradient of the presence of the logo.
        let index = (30 + 2 * 6 + 5) * channels + 1
        let others = runBoxes(values, [[], [HeatMapLoss.Target(logo: 1, row: 2, column: 2)], [], []]).gradient
        #expect(gradient[index] < others[index])
    }

    @Test("The positions of a crowd do not count, except those near a logo, and the others are background") func crowd()
    {
        let channels = 2 + BoxCode.count
        let values = logits(4 * 30 * channels)
        // The crowd covers the columns 0 to 2, and the whole map in the second patch.
        let crowd = HeatMapLoss.Target(
            logo: 0, row: 2, column: 1, box: BoxCode.Box(row: 2, column: 1, height: 6, width: 2), isCrowd: true)
        var all = crowd
        all.box?.width = 20
        let object = HeatMapLoss.Target(logo: 0, row: 2, column: 1)
        let targets = [[crowd], [all], [crowd, object], []]
        let found = runBoxes(values, targets).gradient
        func gradient(_ patch: Int, _ position: Int) -> Float { found[(patch * 30 + position) * channels] }
        for position in 0..<30 {
            let isInside = position % 6 <= 2
            #expect((gradient(0, position) == 0) == isInside && gradient(0, position) >= 0)
            #expect(gradient(1, position) == 0)
            #expect((gradient(2, position) == 0) == (isInside && position != 13))
        }
        #expect(gradient(2, 13) < 0)
        for index in values.indices {
            func loss(_ shift: Float) -> Float {
                var shifted = values
                shifted[index] += shift
                return runBoxes(shifted, targets).loss
            }
            #expect(abs(found[index] - (loss(0.01) - loss(-0.01)) / 0.02) < 3e-3, "\(index)")
        }
    }

    @Test("Extreme values decode to finite boxes", arguments: [-1e30, 1e30] as [Float])
    func extremeBoxes(value: Float) {
        let box = BoxCode.box([0, 0, value, value], row: 0, column: 0, size: 2.75)
        #expect(box.width > 0 && box.width.isFinite && box.height == box.width)
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
        let boxes = try Network.logoDetector(logos: 3, regressesBoxes: true)
        #expect(boxes.output == TensorShape(height: 6, width: 6, channels: 3 + BoxCode.count))
    }
}
