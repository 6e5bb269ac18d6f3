import Foundation
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Tests of the loss functions of personalization.
@Suite struct PersonalizationSampleTests {
    /// The logits of four labels; the last two can be new labels.
    private static let logits: [Double] = [0.4, -1.1, 0.9, -0.3]

    /// Returns the teacher's confidences in the known labels, followed by zeros for the new labels.
    private func teacher(newCount: Int) -> [Double] {
        let known = [0.7, 0.2, 0.06, 0.04].prefix(4 - newCount)
        return known.map { $0 / known.reduce(0, +) } + Array(repeating: 0, count: newCount)
    }

    /// Returns the loss, computed with its formula.
    private func loss(_ target: PersonalizationSample.Target, _ logits: [Double], newCount: Int) -> Double {
        let sum = logits.reduce(0) { $0 + exp($1) }
        let confidences = logits.map { exp($0) / sum }
        switch target {
        case .label(let label): return -log(confidences[label])
        case .not(let label): return -log(1 - confidences[label])
        case .distilled:
            let new = confidences.suffix(newCount).reduce(0, +)
            let known = zip(teacher(newCount: newCount), confidences).prefix(4 - newCount)
            return known.reduce(-Double(PersonalizationSample.newLabelWeight) * log(1 - new)) {
                $0 - $1.0 * log($1.1 / (1 - new))
            }
        }
    }

    @Test(
        "The gradient equals the numerical gradient of the formula",
        arguments: [PersonalizationSample.Target.label(1), .not(2), .distilled], [0, 1, 2])
    func gradient(target: PersonalizationSample.Target, newCount: Int) {
        var gradient = Self.logits.map(Float.init)
        target.differentiate(&gradient, teacher: teacher(newCount: newCount).map(Float.init)[...], newCount: newCount)
        for label in Self.logits.indices {
            let step = 1e-5
            var (above, below) = (Self.logits, Self.logits)
            above[label] += step
            below[label] -= step
            let slope =
                (loss(target, above, newCount: newCount) - loss(target, below, newCount: newCount)) / (2 * step)
            #expect(abs(Double(gradient[label]) - slope) < 1e-5, "label \(label) of \(target), \(newCount) new")
        }
    }

    @Test("The gradient is finite if the confidences in the known labels are almost 0") func saturated() {
        var gradient: [Float] = [-200, -180, 90]
        PersonalizationSample.Target.distilled.differentiate(&gradient, teacher: [0.5, 0.5, 0], newCount: 1)
        #expect(gradient.allSatisfy(\.isFinite) && gradient[2] > 0)
    }

    @Test("Pseudo-rehearsal samples of a detector have features of all positions and a confidence of 95 %")
    func pseudoRehearsal() throws {
        // Two logos, the second an added one, and a new label, which does not count.
        let head = HeadParameters(
            weight: [1, -1, 9, 0.5, 2, 9], bias: [0.1, -0.2, 9], hasBias: true, slopes: [0.5, 1, 1],
            offsets: [-1, 0, 0], hasNone: true)
        let features: [[Float]] = [
            [0.2, 0.1, 0.3, 0, 0.1, 0.1], [0.9, 0.8, 0, 0.2, 1, 0.1], [0.4, 0.3, 0.2, 0.2, 0, 0],
        ]
        let samples = PseudoRehearsal(head, known: 2, features: features).samples(of: 1, weight: 16)
        #expect(samples.count == 3)
        for (sample, feature) in zip(samples, features) {
            #expect(sample.features.count == 6 && sample.features.dropFirst(2) == feature.dropFirst(2))
            #expect(sample.target == .distilled && sample.weight == 1)
            let logits = (0..<2).map { output -> Float in
                let maximum =
                    stride(from: 0, to: 6, by: 2).map { position in
                        sample.features[position] * head.weight[output]
                            + sample.features[position + 1] * head.weight[3 + output] + head.bias[output]
                    }.max() ?? 0
                return head.slopes[output] * maximum + head.offsets[output]
            }
            var confidences = logits + [0]
            softmax(&confidences)
            #expect(confidences[1] > 0.949 && confidences[1] < 0.999)
        }
    }
}
