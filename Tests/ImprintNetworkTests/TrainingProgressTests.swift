import Foundation
import ImprintNetwork
import Testing

@Suite struct TrainingProgressTests {
    /// Returns the progress after rounds with these validation losses, and whether each round was the best so far.
    private func progress(_ losses: [Float?]) -> (TrainingProgress, isBest: [Bool]) {
        var progress = TrainingProgress(learningRate: 0.1, plannedRounds: 9)
        let isBest = losses.enumerated().map { index, loss in
            progress.finishRound(
                EpochMetrics(
                    epoch: index + 1, loss: 1, accuracy: 0, validationLoss: loss, validationAccuracy: loss,
                    learningRate: 0.1)
            )
        }
        return (progress, isBest)
    }

    @Test(
        "The best round is the first with the lowest validation loss, or the last round without validation",
        arguments: [
            ([3, 2, 4, 2, 5], 1, 3), ([1], 0, 0), ([nil, nil, nil], 2, 0), ([5, 4, 3], 2, 0), ([1, 2, 3], 0, 2),
        ] as [([Float?], Int, Int)])
    func best(losses: [Float?], best: Int, since: Int) {
        let (progress, isBest) = progress(losses)
        #expect(progress.best == best && progress.roundsSinceBest == since)
        #expect(isBest.lastIndex(of: true) == best)
    }

    @Test(
        "With boxes, the round with the highest mean average precision is the best, and of equal ones that with the lowest loss",
        arguments: [
            ([3, 2, 1], [0.5, 0.7, 0.6], 1), ([3, 2, 1], [0.5, 0.5, 0.4], 1), ([1, 2, 3], [0.5, 0.5, 0.5], 0),
            ([3, 2, 4], [nil, nil, nil], 1),
        ] as [([Float], [Float?], Int)])
    func averagePrecision(losses: [Float], precisions: [Float?], best: Int) {
        var progress = TrainingProgress(learningRate: 0.1, plannedRounds: 9)
        let isBest = zip(losses, precisions).enumerated().map { index, values in
            progress.finishRound(
                EpochMetrics(
                    epoch: index + 1, loss: 1, accuracy: 0, validationLoss: values.0, validationAccuracy: 0,
                    validationAveragePrecision: values.1, learningRate: 0.1))
        }
        #expect(progress.best == best && isBest.lastIndex(of: true) == best)
    }

    @Test("A repeated validation replaces the mean average precision of the best round") func repeatedValidation() {
        var progress = TrainingProgress(learningRate: 0.1, plannedRounds: 9)
        func finish(_ precision: Float) -> Bool {
            progress.finishRound(
                EpochMetrics(
                    epoch: progress.round + 1, loss: 1, accuracy: 0, validationLoss: 1,
                    validationAveragePrecision: precision, learningRate: 0.1))
        }
        #expect(finish(0.6))
        progress.recordBest(ValidationLoss(loss: 1, accuracy: 0, averagePrecision: 0.4))
        #expect(finish(0.5) && !finish(0.45) && progress.best == 1 && progress.problem == nil)
    }

    @Test("After the images change, the next round is the best regardless of earlier losses")
    func changedImages() {
        var (progress, _) = progress([3, 1, 2])
        progress.changeImages()
        #expect(progress.best == 1 && progress.roundsSinceBest == 0 && !progress.isRepeatable)
        func finish(_ loss: Float) -> Bool {
            progress.finishRound(
                EpochMetrics(
                    epoch: progress.round + 1, loss: 1, accuracy: 0, validationLoss: loss, learningRate: 0.1))
        }
        // Worse than before the change, but the first round after it.
        #expect(finish(9) && progress.best == 3)
        #expect(!finish(10) && progress.best == 3 && progress.roundsSinceBest == 1)
        #expect(finish(8) && progress.best == 5)
    }

    @Test("The lowest loss decides among the rounds that are at least as accurate as the start") func start() {
        var progress = TrainingProgress(learningRate: 0.1, plannedRounds: 9)
        progress.recordStart(ValidationLoss(loss: 1, accuracy: 0.8))
        func finish(_ loss: Float, _ accuracy: Float) -> Bool {
            progress.finishRound(
                EpochMetrics(
                    epoch: progress.round + 1, loss: 1, accuracy: 0, validationLoss: loss,
                    validationAccuracy: accuracy, learningRate: 0.1))
        }
        #expect(!finish(1, 0.7) && progress.best == nil && progress.roundsSinceBest == 1)
        #expect(progress.problem == nil && progress.hasBest)
        #expect(finish(3, 0.8) && progress.best == 1)
        #expect(!finish(2, 0.79) && finish(2.5, 0.85) && progress.best == 3 && progress.roundsSinceBest == 0)
    }

    @Test("The stored keys are the same as in version 1") func keys() throws {
        let data = try JSONEncoder().encode(TrainingProgress(learningRate: 0.1, plannedRounds: 9))
        let values = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        #expect(values["plannedEpochs"] as? Int == 9)
        #expect(values["secondsInEpochs"] as? Double == 0 && values["secondsInEpoch"] as? Double == 0)
    }

    @Test("Sums weight batches by their number of images") func sum() {
        var sum = TrainingProgress.Sum()
        #expect(sum.meanLoss == 0 && sum.accuracy == 0)
        sum.add(loss: 1, correct: 1, count: 1)
        sum.add(loss: 3, correct: 0, count: 3)
        #expect(sum.meanLoss == 2.5 && sum.accuracy == 0.25)
    }
}
