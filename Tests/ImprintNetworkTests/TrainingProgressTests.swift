import ImprintNetwork
import Testing

@Suite struct TrainingProgressTests {
    /// Returns the progress after epochs with these validation losses, and whether each epoch was the best so far.
    private func progress(_ losses: [Float?]) -> (TrainingProgress, isBest: [Bool]) {
        var progress = TrainingProgress(learningRate: 0.1, plannedEpochs: 9)
        let isBest = losses.enumerated().map { index, loss in
            progress.finishEpoch(
                EpochMetrics(
                    epoch: index + 1, loss: 1, accuracy: 0, validationLoss: loss, validationAccuracy: loss,
                    learningRate: 0.1)
            )
        }
        return (progress, isBest)
    }

    @Test(
        "The best epoch is the first with the lowest validation loss, or the last epoch without validation",
        arguments: [
            ([3, 2, 4, 2, 5], 1, 3), ([1], 0, 0), ([nil, nil, nil], 2, 0), ([5, 4, 3], 2, 0), ([1, 2, 3], 0, 2),
        ] as [([Float?], Int, Int)])
    func best(losses: [Float?], best: Int, since: Int) {
        let (progress, isBest) = progress(losses)
        #expect(progress.best == best && progress.epochsSinceBest == since)
        #expect(isBest.lastIndex(of: true) == best)
    }

    @Test("After the images change, the next epoch is the best regardless of earlier losses")
    func changedImages() {
        var (progress, _) = progress([3, 1, 2])
        progress.changeImages()
        #expect(progress.best == 1 && progress.epochsSinceBest == 0 && !progress.isRepeatable)
        func finish(_ loss: Float) -> Bool {
            progress.finishEpoch(
                EpochMetrics(
                    epoch: progress.history.count + 1, loss: 1, accuracy: 0, validationLoss: loss, learningRate: 0.1))
        }
        // Worse than before the change, but the first epoch after it.
        #expect(finish(9) && progress.best == 3)
        #expect(!finish(10) && progress.best == 3 && progress.epochsSinceBest == 1)
        #expect(finish(8) && progress.best == 5)
    }

    @Test("Sums weight batches by their number of images") func sum() {
        var sum = TrainingProgress.Sum()
        #expect(sum.meanLoss == 0 && sum.accuracy == 0)
        sum.add(loss: 1, correct: 1, count: 1)
        sum.add(loss: 3, correct: 0, count: 3)
        #expect(sum.meanLoss == 2.5 && sum.accuracy == 0.25)
    }
}
