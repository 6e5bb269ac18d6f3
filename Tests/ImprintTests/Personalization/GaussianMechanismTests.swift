import Foundation
import ImprintCore
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

@Suite("The Gaussian mechanism") struct GaussianMechanismTests {
    /// The output of Fixtures/gaussian_mechanism.py: the noise multiplier, δ and ε.
    private static let reference: [(multiplier: Double, delta: Double, epsilon: Double)] = [
        (0.001, 0.001, 503089.23384843879),
        (0.001, 1e-5, 504263.89292065408),
        (0.001, 1e-10, 506360.34406997748),
        (0.1, 0.001, 80.032526094150492),
        (0.1, 1e-5, 91.817289624663745),
        (0.1, 1e-10, 112.84032670423223),
        (0.5, 0.001, 7.5812799245701138),
        (0.5, 1e-5, 9.9972561464343004),
        (0.5, 1e-10, 14.274089645078006),
        (1, 0.001, 3.1386705485829392),
        (1, 1e-5, 4.3771780956812246),
        (1, 1e-10, 6.547924066864951),
        (1.1, 0.001, 2.7906234744089009),
        (1.1, 1e-5, 3.9212502528610877),
        (1.1, 1e-10, 5.8994104264420393),
        (4, 0.001, 0.59200671836212913),
        (4, 1e-5, 0.92634150399822944),
        (4, 1e-10, 1.4920268569853762),
        (10, 0.001, 0.19753397323971043),
        (10, 1e-5, 0.34066936468432641),
        (10, 1e-10, 0.57464030752631765),
        (1000, 0.001, 0.0),
        (1000, 1e-5, 0.00193872496986011),
        (1000, 1e-10, 0.0048824552789735224),
        (100000, 0.001, 0.0),
        (100000, 1e-5, 0.0),
        (100000, 1e-10, 3.923565897214771e-5),
    ]

    @Test("ε equals the reference values, which were computed with 60 digits", arguments: reference)
    func epsilon(multiplier: Double, delta: Double, expected: Double) {
        let found = GaussianMechanism.epsilon(multiplier: multiplier, delta: delta)
        #expect(abs(found - expected) <= 1e-9 * expected, "\(found)")
    }

    @Test("ε never increases with the noise multiplier or with δ, even for extreme values")
    func monotonicity() {
        let multipliers = stride(from: -3.0, through: 6, by: 0.25).map { pow(10, $0) }
        for delta in [1e-300, 1e-12, 1e-5, 0.3] {
            let found = multipliers.map { GaussianMechanism.epsilon(multiplier: $0, delta: delta) }
            #expect(zip(found, found.dropFirst()).allSatisfy { $0 >= $1 } && found.allSatisfy(\.isFinite), "\(found)")
            let larger = multipliers.map { GaussianMechanism.epsilon(multiplier: $0, delta: 2 * delta) }
            #expect(zip(found, larger).allSatisfy { $0 >= $1 })
        }
    }

    @Test("Gaussian samples have the moments and the tails of a normal distribution") func normal() {
        var stream = RandomStream(seed: 3, "normal")
        let samples = (0..<200_000).map { _ in stream.gaussian() }
        func mean(_ of: (Double) -> Double) -> Double { samples.reduce(0) { $0 + of($1) } / Double(samples.count) }
        // Within five standard errors: √200,000 = 447.2.
        #expect(abs(mean { $0 }) < 5 / 447.2)
        #expect(abs(mean { $0 * $0 } - 1) < 5 * 1.4143 / 447.2)
        #expect(abs(mean { $0 * $0 * $0 * $0 } - 3) < 5 * 9.798 / 447.2)
        // The share beyond 3 is 0.0027. For the sum of twelve uniform samples it would be 0.0021.
        #expect(abs(mean { abs($0) > 3 ? 1 : 0 } - 0.0027) < 0.0004)
    }
}
