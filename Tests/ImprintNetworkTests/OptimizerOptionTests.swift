import Testing

@testable import ImprintNetwork

/// Options of optimizers out of their ranges, which are programming errors.
@Suite struct OptimizerOptionTests {
    @Test("Infinite options and NaN end the program") func notFinite() async {
        await #expect(processExitsWith: .failure) { _ = SGD.Options(gradientClipping: .infinity) }
        await #expect(processExitsWith: .failure) { _ = SGD.Options(weightDecay: .infinity) }
        await #expect(processExitsWith: .failure) { _ = AdamW.Options(gradientClipping: .infinity) }
        await #expect(processExitsWith: .failure) { _ = AdamW.Options(gradientClipping: .nan) }
        await #expect(processExitsWith: .failure) { _ = AdamW.Options(epsilon: .infinity) }
    }

    @Test("Options that were changed to infinity end the program when an optimizer is created") func changed() async {
        await #expect(processExitsWith: .failure) {
            var options = SGD.Options()
            options.gradientClipping = .infinity
            _ = try SGD(options, for: DensePlan().parameters.layout)
        }
        await #expect(processExitsWith: .failure) {
            var options = AdamW.Options()
            options.gradientClipping = .infinity
            _ = try AdamW(options, for: DensePlan().parameters.layout)
        }
        await #expect(processExitsWith: .success) {
            _ = try SGD(SGD.Options(gradientClipping: 1), for: DensePlan().parameters.layout)
            _ = try AdamW(AdamW.Options(gradientClipping: 1), for: DensePlan().parameters.layout)
        }
    }
}
