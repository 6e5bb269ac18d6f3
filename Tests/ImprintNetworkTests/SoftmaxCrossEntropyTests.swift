import Foundation
import Testing

@testable import ImprintNetwork

@Suite struct SoftmaxCrossEntropyTests {
    /// Returns result and gradient for logits [N, K].
    private func evaluate(
        _ loss: SoftmaxCrossEntropy, _ logits: [Float], _ labels: [Int]
    ) -> (result: SoftmaxCrossEntropy.Result, gradient: [Float]) {
        var logits = logits
        var gradient = [Float](repeating: .nan, count: logits.count)
        let result = logits.withUnsafeMutableBufferPointer { logits in
            gradient.withUnsafeMutableBufferPointer { loss(logits: logits, targets: labels, gradient: $0) }
        }
        return (result, gradient)
    }

    /// Returns −Σₖ qₖ · wₖ · log pₖ over the batch, divided by Σ w_t, in double precision.
    private func naive(_ loss: SoftmaxCrossEntropy, _ logits: [Double], _ labels: [Int]) -> Double {
        let classes = logits.count / labels.count
        let smoothing = Double(loss.labelSmoothing)
        func weight(_ label: Int) -> Double { Double(loss.classWeights?[label] ?? 1) }
        var total = 0.0
        for (image, label) in labels.enumerated() {
            let x = logits[(image * classes)..<((image + 1) * classes)]
            let logSum = log(x.reduce(0) { $0 + exp($1) })
            for (k, x) in x.enumerated() {
                total += ((k == label ? 1 - smoothing : 0) + smoothing / Double(classes)) * weight(k) * (logSum - x)
            }
        }
        return total / labels.reduce(0) { $0 + weight($1) }
    }

    @Test("The loss of equal logits is log K, and the gradient is (p − target) / N", arguments: [2, 3, 1000])
    func equalLogits(classes: Int) {
        let (result, gradient) = evaluate(
            SoftmaxCrossEntropy(), [Float](repeating: 5, count: 2 * classes), [0, classes - 1])
        #expect(abs(result.loss - Float(log(Double(classes)))) < 1e-5)
        let share = 1 / Float(classes)
        for (index, value) in gradient.enumerated() {
            let target: Float = index == 0 || index == 2 * classes - 1 ? 1 : 0
            #expect(abs(value - (share - target) / 2) < 1e-6)
        }
    }

    static let options = [
        SoftmaxCrossEntropy(), SoftmaxCrossEntropy(labelSmoothing: 0.2),
        SoftmaxCrossEntropy(classWeights: [0.5, 2, 0, 1]),
        SoftmaxCrossEntropy(labelSmoothing: 0.1, classWeights: [3, 0.25, 1, 0]),
    ]

    @Test("Loss and gradient agree with the formula and its finite differences", arguments: options)
    func formula(_ loss: SoftmaxCrossEntropy) {
        let labels = [0, 3, 1, 0, 2]
        let logits = randomValues(20, "logits").map { 3 * $0 }
        let (result, gradient) = evaluate(loss, logits, labels)
        let exact = logits.map(Double.init)
        #expect(abs(Double(result.loss) - naive(loss, exact, labels)) < 1e-5)
        for index in exact.indices {
            var (below, above) = (exact, exact)
            below[index] -= 1e-5
            above[index] += 1e-5
            let slope = (naive(loss, above, labels) - naive(loss, below, labels)) / 2e-5
            #expect(abs(Double(gradient[index]) - slope) < 1e-5, "\(loss), logit \(index)")
        }
    }

    @Test("The gradient can overwrite the logits", arguments: options)
    func inPlace(_ loss: SoftmaxCrossEntropy) {
        let logits = randomValues(12, "logits")
        let separate = evaluate(loss, logits, [3, 0, 1])
        var values = logits
        let result = values.withUnsafeMutableBufferPointer { loss(logits: $0, targets: [3, 0, 1], gradient: $0) }
        #expect(values == separate.gradient)
        #expect(result.loss == separate.result.loss && result.correct == separate.result.correct)
    }

    @Test("The loss of very large logits is their difference, without overflow")
    func largeLogits() {
        let (result, gradient) = evaluate(SoftmaxCrossEntropy(), [1e30, -1e30, 400, 0], [0, 1])
        #expect(result.loss == 200)
        #expect(gradient == [0, 0, 0.5, -0.5])
        #expect(result.correct == 1)
    }

    @Test("The first of equal logits is the predicted label")
    func ties() {
        #expect(evaluate(SoftmaxCrossEntropy(), [1, 1, 1, 1], [0, 1]).result.correct == 1)
    }

    @Test("A batch whose labels have weight 0 has loss 0 and gradient 0")
    func noWeight() {
        let (result, gradient) = evaluate(SoftmaxCrossEntropy(classWeights: [0, 1]), [1, 2, 3, 4], [0, 0])
        #expect(result.loss == 0)
        #expect(gradient == [0, 0, 0, 0])
    }

    @Test("A network with one label is always correct")
    func oneLabel() {
        let (result, gradient) = evaluate(SoftmaxCrossEntropy(), [-3, 7], [0, 0])
        #expect(result.loss == 0 && result.correct == 2)
        #expect(gradient == [0, 0])
    }

    @Test("A logit that is not finite makes the loss non-finite", arguments: [Float.nan, .infinity])
    func diverged(_ logit: Float) {
        for index in 0..<3 {
            var logits: [Float] = [1, 2, 3]
            logits[index] = logit
            #expect(!evaluate(SoftmaxCrossEntropy(), logits, [0]).result.loss.isFinite, "\(logit) at \(index)")
        }
    }
}
