import Foundation
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// The losses that tuning minimises.
@Suite struct TuningSampleTests {
    /// Logits of four labels, the last two of which may be new, and what the known ones were judged before.
    private static let logits: [Double] = [0.4, -1.1, 0.9, -0.3]

    private func before(newCount: Int) -> [Double] {
        let known = [0.7, 0.2, 0.06, 0.04].prefix(4 - newCount)
        return known.map { $0 / known.reduce(0, +) } + Array(repeating: 0, count: newCount)
    }

    /// The loss by its formula.
    private func loss(_ target: PersonalizationSample.Target, _ logits: [Double], newCount: Int) -> Double {
        let sum = logits.reduce(0) { $0 + exp($1) }
        let confidences = logits.map { exp($0) / sum }
        switch target {
        case .label(let label): return -log(confidences[label])
        case .not(let label): return -log(1 - confidences[label])
        case .asBefore:
            let new = confidences.suffix(newCount).reduce(0, +)
            let known = zip(before(newCount: newCount), confidences).prefix(4 - newCount)
            return known.reduce(-Double(PersonalizationSample.newLabelWeight) * log(1 - new)) {
                $0 - $1.0 * log($1.1 / (1 - new))
            }
        }
    }

    @Test(
        "The gradient is that of the formula, by differences",
        arguments: [PersonalizationSample.Target.label(1), .not(2), .asBefore], [0, 1, 2])
    func gradient(target: PersonalizationSample.Target, newCount: Int) {
        var gradient = Self.logits.map(Float.init)
        target.differentiate(&gradient, before: before(newCount: newCount).map(Float.init)[...], newCount: newCount)
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

    @Test("Where the known labels are all but impossible, the gradient stays finite") func saturated() {
        var gradient: [Float] = [-200, -180, 90]
        PersonalizationSample.Target.asBefore.differentiate(&gradient, before: [0.5, 0.5, 0], newCount: 1)
        #expect(gradient.allSatisfy(\.isFinite) && gradient[2] > 0)
    }
}
