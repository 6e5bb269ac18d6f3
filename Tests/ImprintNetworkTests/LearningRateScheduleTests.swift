import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct LearningRateScheduleTests {
    @Test("A constant schedule keeps the base learning rate")
    func constant() {
        let schedule = LearningRateSchedule()
        #expect((0..<10).allSatisfy { schedule.factor(at: $0, of: 10) == 1 })
    }

    @Test(
        "Warm-up rises in equal steps to the base learning rate",
        arguments: [LearningRateSchedule.Shape.constant, .cosine(final: 0), .exponential(from: 0, to: -2)])
    func warmUp(_ shape: LearningRateSchedule.Shape) {
        let schedule = LearningRateSchedule(shape, warmUpSteps: 4)
        #expect((0..<5).map { schedule.factor(at: $0, of: 20) } == [0.25, 0.5, 0.75, 1, 1])
    }

    @Test("Cosine decay starts at 1, is at the mean halfway and ends at its final factor", arguments: [0, 10])
    func cosine(warmUpSteps: Int) {
        let schedule = LearningRateSchedule(.cosine(final: 0.2), warmUpSteps: warmUpSteps)
        let total = warmUpSteps + 100
        #expect(schedule.factor(at: warmUpSteps, of: total) == 1)
        #expect(abs(schedule.factor(at: warmUpSteps + 50, of: total) - 0.6) < 1e-6)
        #expect(abs(schedule.factor(at: total, of: total) - 0.2) < 1e-6)
        // After the last step the factor stays at its final value.
        #expect(abs(schedule.factor(at: 2 * total, of: total) - 0.2) < 1e-6)
        let factors = (warmUpSteps..<total).map { schedule.factor(at: $0, of: total) }
        #expect(zip(factors, factors.dropFirst()).allSatisfy { $0 > $1 })
    }

    @Test("Step decay multiplies the rate at its boundaries, counted from the end of the warm-up")
    func steps() {
        let schedule = LearningRateSchedule(.step(every: 3, factor: 0.5), warmUpSteps: 2)
        #expect((2..<12).map { schedule.factor(at: $0, of: 12) } == [1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125])
    }

    @Test("An exponential schedule changes by equal factors after the warm-up", arguments: [0, 3])
    func exponential(warmUpSteps: Int) {
        let schedule = LearningRateSchedule(.exponential(from: 0, to: -4), warmUpSteps: warmUpSteps)
        let factors = (warmUpSteps..<warmUpSteps + 5).map { schedule.factor(at: $0, of: warmUpSteps + 5) }
        for (factor, expected) in zip(factors, [1, 1e-1, 1e-2, 1e-3, 1e-4] as [Float]) {
            #expect(abs(factor / expected - 1) < 1e-5, "\(factors)")
        }
    }

    @Test("A run that is shorter than its warm-up or has no steps has a valid factor")
    func shortRuns() {
        #expect(LearningRateSchedule(.cosine(final: 0), warmUpSteps: 10).factor(at: 1, of: 2) == 0.2)
        #expect(LearningRateSchedule(.cosine(final: 0.5)).factor(at: 0, of: 0) == 1)
    }

    @Test(
        "Encoding and decoding give the same schedule",
        arguments: [
            LearningRateSchedule(), LearningRateSchedule(.step(every: 7, factor: 0.1), warmUpSteps: 3),
            LearningRateSchedule(.cosine(final: 0.01)),
        ])
    func json(_ schedule: LearningRateSchedule) throws {
        #expect(try JSONDecoder().decode(LearningRateSchedule.self, from: JSONEncoder().encode(schedule)) == schedule)
    }
}
