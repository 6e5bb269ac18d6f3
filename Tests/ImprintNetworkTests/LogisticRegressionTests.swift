import Foundation
import ImprintCore
import ImprintNetwork
import Testing

@Suite("Logistic regression") struct LogisticRegressionTests {
    private let rows = 60
    private let channels = 5

    /// The features of Fixtures/logistic_regression.py.
    private var features: [Float] {
        (0..<rows * channels).map { index in
            let (row, channel) = (index / channels, index % channels)
            return Float((row * 7 + channel * 13 + row * channel) % 17) / 8
        }
    }

    private var targets: [[Int]] { (0..<rows).map { row in [(row % 17 > 11 ? 1 : 0) + (row * 7 % 17 > 8 ? 1 : 0)] } }

    private func heads(_ decays: [Float], threads: Int = 1) throws -> [LogisticRegression.Head] {
        try LogisticRegression(features: features, targets: targets, labels: 3, workers: Workers(threads))
            .heads(weightDecays: decays, maximumIterations: 500)
    }

    /// The logits are those that Fixtures/logistic_regression.py prints.
    @Test(
        "The head agrees with scikit-learn for the same penalty",
        arguments: [
            (Float(0.1), [[1.7242, -0.1708, -1.5534], [-0.6101, 0.5997, 0.0104]]),
            (0.003, [[4.3419, -1.2371, -3.1047], [-3.7854, 2.1724, 1.613]]),
        ] as [(Float, [[Float]])])
    func reference(decay: Float, expected: [[Float]]) throws {
        let logits = try heads([decay])[0].logits(features)
        #expect(logits.count == rows && logits.allSatisfy { $0.count == 3 })
        for (row, expected) in zip([0, 41], expected) {
            let mean = logits[row].reduce(0, +) / 3
            for (found, expected) in zip(logits[row], expected) { #expect(abs(found - mean - expected) < 0.03) }
        }
    }

    @Test("A search that starts from the result of a larger penalty finds the same head") func path() throws {
        let alone = try heads([0.01])[0].logits(features)
        let path = try heads([1, 0.1, 0.01])[2].logits(features)
        #expect(alone.map(\.count) == Array(repeating: 3, count: rows) && path.map(\.count) == alone.map(\.count))
        for (left, right) in zip(alone.joined(), path.joined()) { #expect(abs(left - right) < 0.05) }
    }

    @Test("The head is bitwise equal for any number of threads", arguments: [2, 3, 4])
    func threads(count: Int) throws { #expect(try heads([0.1, 0.01], threads: count) == heads([0.1, 0.01])) }

    @Test("Channels that never vary, and few rows, are no problem", arguments: [1, 2, 17])
    func degenerate(rows: Int) throws {
        let features: [Float] = (0..<rows).flatMap { row -> [Float] in [3, 0, Float(row % 2)] }
        let head = try LogisticRegression(
            features: features, targets: (0..<rows).map { [$0 % 2] }, labels: 2, workers: Workers(2)
        ).heads(weightDecays: [0.01])[0]
        let logits = head.logits(features)
        #expect(logits.count == rows)
        for (row, logits) in logits.enumerated() {
            #expect(logits.allSatisfy { $0.isFinite })
            #expect((logits[1] > logits[0]) == (row % 2 == 1))
        }
    }

    @Test("With more labels than rows, the head is finite and predicts the label of each row", arguments: [1, 3])
    func absentLabels(rows: Int) throws {
        let features = (0..<rows * 2).map { Float($0 % 3) }
        let head = try LogisticRegression(
            features: features, targets: (0..<rows).map { [$0] }, labels: 8, workers: Workers(2)
        ).heads(weightDecays: [1, 0.01])[1]
        #expect((head.weights + head.bias).allSatisfy { $0.isFinite })
        for (row, logits) in head.logits(features).enumerated() {
            #expect(logits.indices.allSatisfy { $0 == row || logits[$0] < logits[row] })
        }
    }

    @Test(
        "The logits are the bias plus the weighted sums of the features, for any number of rows and labels",
        arguments: [0, 1, 17], [1, 3, 20])
    func logits(count: Int, labels: Int) throws {
        let head = try LogisticRegression(
            features: self.features, targets: (0..<rows).map { [$0 % labels] }, labels: labels, workers: Workers(1)
        ).heads(weightDecays: [0.1], maximumIterations: 5)[0]
        let features = Array(self.features.prefix(count * channels))
        let logits = head.logits(features)
        #expect(logits.count == count && logits.allSatisfy { $0.count == labels })
        for (row, logits) in logits.enumerated() {
            for label in 0..<labels {
                var expected = Double(head.bias[label])
                for channel in 0..<channels {
                    expected +=
                        Double(features[row * channels + channel]) * Double(head.weights[channel * labels + label])
                }
                #expect(abs(Double(logits[label]) - expected) < 1e-5)
            }
        }
    }

    @Test("With a softmax, the weighted mean confidence in a label is its weighted share of the rows")
    func classWeights() throws {
        let weights: [Float] = [1, 4, 0.5]
        let head = try LogisticRegression(
            features: features, targets: targets, labels: 3, classWeights: weights, workers: Workers(1)
        ).heads(weightDecays: [0.1], maximumIterations: 500)[0]
        var total: Double = 0
        var confidences: [Double] = [0, 0, 0]
        var shares: [Double] = [0, 0, 0]
        for (logits, target) in zip(head.logits(features), targets) {
            let weight = Double(weights[target[0]])
            let powers = logits.map { exp(Double($0)) }
            let sum = powers.reduce(0, +)
            for label in 0..<3 { confidences[label] += weight * powers[label] / sum }
            shares[target[0]] += weight
            total += weight
        }
        // The derivative of the loss with respect to the bias is 0.
        for label in 0..<3 { #expect(abs(confidences[label] - shares[label]) / total < 0.01) }
    }

    @Test("With a sigmoid, class weights multiply the positive terms") func positiveWeights() throws {
        let sets = targets.map { $0 == [0] ? [] : $0 == [1] ? [0, 1] : [1] }
        let weights: [Float] = [3, 0.5]
        let head = try LogisticRegression(
            features: features, targets: sets, labels: 2, link: .sigmoid, classWeights: weights, workers: Workers(1)
        ).heads(weightDecays: [0.1], maximumIterations: 500)[0]
        var derivatives: [Double] = [0, 0]
        for (logits, set) in zip(head.logits(features), sets) {
            for label in 0..<2 {
                let confidence = 1 / (1 + exp(-Double(logits[label])))
                derivatives[label] += set.contains(label) ? Double(weights[label]) * (confidence - 1) : confidence
            }
        }
        for label in 0..<2 { #expect(abs(derivatives[label]) / Double(rows) < 0.01) }
    }

    @Test("Class weights of 1 do not change the head", arguments: [LogisticRegression.Link.softmax, .sigmoid])
    func equalWeights(link: LogisticRegression.Link) throws {
        let plain = try LogisticRegression(
            features: features, targets: targets, labels: 3, link: link, workers: Workers(1)
        ).heads(weightDecays: [0.1])[0]
        let weighted = try LogisticRegression(
            features: features, targets: targets, labels: 3, link: link, classWeights: [1, 1, 1], workers: Workers(1)
        ).heads(weightDecays: [0.1])[0]
        #expect(plain == weighted)
    }

    @Test("With a sigmoid, the head of each label is the same as without the other labels") func sigmoid() throws {
        let sets = targets.map { $0 == [0] ? [] : $0 == [1] ? [0, 1] : [1] }
        func logits(_ targets: [[Int]], labels: Int) throws -> [[Float]] {
            try LogisticRegression(
                features: features, targets: targets, labels: labels, link: .sigmoid, workers: Workers(2)
            )
            .heads(weightDecays: [0.1], maximumIterations: 500)[0].logits(features)
        }
        let both = try logits(sets, labels: 2)
        for label in 0..<2 {
            let alone = try logits(sets.map { $0.contains(label) ? [0] : [] }, labels: 1)
            #expect(both.count == rows && alone.count == rows)
            for (row, expected) in zip(both, alone) { #expect(abs(row[label] - expected[0]) < 0.05) }
        }
    }
}
