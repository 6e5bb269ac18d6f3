import ImprintNetwork
import Testing

@Suite struct TrainingProgressTests {
    private func progress(_ losses: [Float?]) -> (TrainingProgress, kept: [Bool]) {
        var progress = TrainingProgress(learningRate: 0.1, plannedEpochs: 9)
        let kept = losses.enumerated().map { place, loss in
            progress.finishEpoch(
                EpochMetrics(
                    epoch: place + 1, loss: 1, accuracy: 0, validationLoss: loss, validationAccuracy: loss,
                    learningRate: 0.1)
            )
        }
        return (progress, kept)
    }

    @Test(
        "The best epoch is the first with the least validation loss, or the last without any",
        arguments: [
            ([3, 2, 4, 2, 5], 1, 3), ([1], 0, 0), ([nil, nil, nil], 2, 0), ([5, 4, 3], 2, 0), ([1, 2, 3], 0, 2),
        ] as [([Float?], Int, Int)])
    func best(losses: [Float?], best: Int, since: Int) {
        let (progress, kept) = progress(losses)
        #expect(progress.best == best && progress.epochsSinceBest == since)
        #expect(kept.lastIndex(of: true) == best)
    }

    @Test("After images have changed, what was measured before does not compare, but is kept until an epoch is done")
    func changedImages() {
        var (progress, _) = progress([3, 1, 2])
        progress.changeImages()
        #expect(progress.best == 1 && progress.epochsSinceBest == 0 && !progress.isRepeatable)
        func finish(_ loss: Float) -> Bool {
            progress.finishEpoch(
                EpochMetrics(
                    epoch: progress.history.count + 1, loss: 1, accuracy: 0, validationLoss: loss, learningRate: 0.1))
        }
        // Worse than before, but the first that compares.
        #expect(finish(9) && progress.best == 3)
        #expect(!finish(10) && progress.best == 3 && progress.epochsSinceBest == 1)
        #expect(finish(8) && progress.best == 5)
    }

    @Test("Sums weigh batches by their images") func sum() {
        var sum = TrainingProgress.Sum()
        #expect(sum.meanLoss == 0 && sum.accuracy == 0)
        sum.add(loss: 1, correct: 1, count: 1)
        sum.add(loss: 3, correct: 0, count: 3)
        #expect(sum.meanLoss == 2.5 && sum.accuracy == 0.25)
    }
}
