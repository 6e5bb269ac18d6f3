import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Reference values come from PyTorch and scikit-learn; Fixtures/multi_label_references.py prints them.
@Suite("Multi-label") struct MultiLabelTests {
    // MARK: Loss

    private static let logits: [Float] = [0.5, -1.25, 2, -30, 40, 0, 1.5, 0.25, -0.75, -2, 3, 1]
    private static let targets = [[0, 2], [1], [], [0, 1]]

    /// Returns the loss of a batch and its gradient.
    private func compute(_ loss: BinaryCrossEntropy, _ logits: [Float]) -> (result: BinaryCrossEntropy.Result, [Float])
    {
        var (logits, gradient) = (logits, [Float](repeating: .nan, count: logits.count))
        let result = logits.withUnsafeMutableBufferPointer { logits in
            gradient.withUnsafeMutableBufferPointer { loss(logits: logits, targets: Self.targets, gradient: $0) }
        }
        return (result, gradient)
    }

    @Test(
        "Binary cross-entropy equals that of PyTorch",
        arguments: [
            (
                0, nil, 0.6624234,
                [
                    -0.0314617, 0.0185583, -0.0099336, 0.0, 0.0, 0.0416667, 0.0681312, 0.046848, 0.0267351, -0.0733998,
                    -0.0039522, 0.0609215,
                ]
            ),
            (
                0.1, nil, 0.9655486,
                [
                    -0.0272951, 0.0143917, -0.0057669, -0.0041667, 0.0041667, 0.0375, 0.0639645, 0.0426814, 0.0225684,
                    -0.0692331, 0.0002145, 0.0567549,
                ]
            ),
            (
                0, [2, 0.5, 1], 0.8771494,
                [
                    -0.0629234, 0.0185583, -0.0099336, 0.0, 0.0, 0.0416667, 0.0681312, 0.046848, 0.0267351, -0.1467995,
                    -0.0019761, 0.0609215,
                ]
            ),
            (
                0.2, [2, 0.5, 1], 1.7049475,
                [
                    -0.0514439, 0.0134638, -0.0016003, -0.0166667, 0.0083333, 0.0333333, 0.0582777, 0.040339, 0.0184018,
                    -0.1311262, 0.0061596, 0.0525882,
                ]
            ),
        ] as [(Float, [Float]?, Float, [Float])])
    func loss(smoothing: Float, weights: [Float]?, expected: Float, gradient: [Float]) {
        let loss = BinaryCrossEntropy(labelSmoothing: smoothing, positiveWeights: weights)
        let (result, found) = compute(loss, Self.logits)
        #expect(abs(result.loss - expected) < 2e-7 * max(expected, 1) * 2)
        for (value, reference) in zip(found, gradient) { #expect(abs(value - reference) < 2e-7) }
        // Correct: 3 of the first image, 2 of the second (a logit of 0 counts as positive), 1 of the third, 1 of the fourth.
        #expect(result.correctDecisions == 7)
    }

    @Test("The gradient of binary cross-entropy is the slope of the loss") func gradient() {
        let loss = BinaryCrossEntropy(labelSmoothing: 0.1, positiveWeights: [2, 0.5, 1])
        let (_, gradient) = compute(loss, Self.logits)
        for index in Self.logits.indices where abs(Self.logits[index]) < 10 {
            func value(_ change: Float) -> Double {
                var logits = Self.logits
                logits[index] += change
                return Double(compute(loss, logits).result.loss)
            }
            #expect(abs((value(0.125) - value(-0.125)) / 0.25 - Double(gradient[index])) < 1e-4)
        }
    }

    // MARK: Metrics

    private static let results: [MultiLabelEvaluation.Result] = {
        let truth = [[0], [0, 1], [1], [], [0, 1], [1]]
        let scores: [[Float]] = [
            [0.9, 0.2, 0.1], [0.4, 0.8, 0.3], [0.6, 0.8, 0.2], [0.4, 0.1, 0.9], [0.7, 0.3, 0.4], [0.1, 0.9, 0.5],
        ]
        return zip(truth, scores).map {
            MultiLabelEvaluation.Result(url: URL(filePath: "/x.png"), labels: $0, confidences: $1)
        }
    }()

    @Test("Metrics equal those of scikit-learn; a label without photos has no average precision") func metrics() throws
    {
        let evaluation = MultiLabelEvaluation(
            labels: ["a", "b", "c"], thresholds: [0.5, 0.5, 0.5], results: Self.results, skipped: [])
        func isClose(_ value: Double?, _ expected: Double) -> Bool { value.map { abs($0 - expected) < 1e-12 } ?? false }
        #expect(isClose(evaluation.perLabel[0].averagePrecision, 0.8666666666666667))
        #expect(evaluation.perLabel[1].averagePrecision == 1)
        #expect(evaluation.perLabel[2].averagePrecision == nil && evaluation.perLabel[2].recall == nil)
        #expect(isClose(evaluation.meanAveragePrecision, (0.8666666666666667 + 1) / 2))
        #expect(isClose(evaluation.microF1, 0.6666666666666666))
        #expect(isClose(evaluation.macroF1, 0.5079365079365079))
        #expect(isClose(evaluation.perLabel[0].precision, 2.0 / 3) && evaluation.perLabel[1].recall == 0.75)
        #expect(evaluation.perLabel[2].precision == 0)
        let interval = try #require(evaluation.meanAveragePrecisionInterval())
        #expect(interval.contains(0.9333) && interval.lowerBound < interval.upperBound && interval.upperBound <= 1)
        #expect(evaluation.meanAveragePrecisionInterval() == interval)
        let decisions = 3 * Self.results.count
        #expect(evaluation.meanAveragePrecisionInterval(maximumDecisions: decisions) == interval)
        #expect(evaluation.meanAveragePrecisionInterval(maximumDecisions: decisions - 1) == nil)
    }

    @Test("The default thresholds have the best F1, and 0.5 for a label without photos") func thresholds() {
        let evaluation = MultiLabelEvaluation(labels: ["a", "b", "c"], results: Self.results, skipped: [])
        #expect(evaluation.thresholds[2] == 0.5)
        #expect(evaluation.perLabel[1].f1 == 1)
        #expect(Set(evaluation.precisionRecall.keys) == ["a", "b"])
        let empty = MultiLabelEvaluation(labels: ["a"], results: [], skipped: [])
        #expect(empty.meanAveragePrecision == nil && empty.meanAveragePrecisionInterval() == nil)
        #expect(empty.microF1 == 0 && empty.macroF1 == 0 && empty.accuracy == 0)
    }

    // MARK: Training

    /// Returns photos of 16x16 noise with a red square, a blue disc, both or neither.
    private func shapes(count: Int, seed: UInt64) throws -> InMemorySource {
        var source = InMemorySource(labels: ["disc", "square"])
        for index in 0..<count {
            var stream = RandomStream(seed: seed, "shapes", index)
            let side = 16
            var image = RasterImage(width: side, height: side)
            for sample in image.samples.indices { image.samples[sample] = UInt8(90 + stream.index(below: 80)) }
            func paint(_ color: [UInt8], _ isInside: (Int, Int) -> Bool) {
                for y in 0..<side {
                    for x in 0..<side where isInside(x, y) {
                        for channel in 0..<3 { image.samples[(y * side + x) * 3 + channel] = color[channel] }
                    }
                }
            }
            var labels: [String] = []
            if index % 2 == 1 {
                let (left, top) = (stream.index(below: 10), stream.index(below: 10))
                paint([230, 20, 20]) { (left..<(left + 6)).contains($0) && (top..<(top + 6)).contains($1) }
                labels.append("square")
            }
            if index / 2 % 2 == 1 {
                let (x, y) = (3 + stream.index(below: 10), 3 + stream.index(below: 10))
                paint([20, 30, 230]) { ($0 - x) * ($0 - x) + ($1 - y) * ($1 - y) <= 9 }
                labels.append("disc")
            }
            try source.append(image, labels: labels)
        }
        return source
    }

    private func result(
        _ photos: some TrainingSource, epochs: Int, threads: Int = 1, checkpoints: CheckpointOptions? = nil,
        shouldStop: @escaping () -> Bool = { false }, onEvent: @escaping (TrainingEvent) -> Void = { _ in }
    ) throws -> TrainingResult {
        let configuration = quickTraining(epochs: epochs) {
            $0.start = .network("logonet", width: 0.25)
            $0.validation = .fraction(0.25)
            $0.learningRate = 0.05
            $0.classWeights = .automatic
            $0.threads = threads
        }
        return try ClassifierTrainer(photos: photos, configuration: configuration, checkpoints: checkpoints)
            .train(onEvent: onEvent, shouldStop: shouldStop)
    }

    @Test("Training on photos with several labels learns each label on its own") func learns() throws {
        let result = try result(shapes(count: 96, seed: 1), epochs: 8)
        let (model, validation) = (result.model, try #require(result.multiLabelEvaluation))
        #expect(model.head == .sigmoid && model.network.nodes.last?.name == "probabilities")
        #expect(result.evaluation == nil && model.training?.calibration == nil)
        #expect(result.modelEvaluation?.multiLabel?.results == validation.results)
        #expect(TrainingResult(model: model).modelEvaluation == nil)
        #expect(try #require(validation.meanAveragePrecision) > 0.95)
        #expect(model.training?.thresholds?.keys.sorted() == ["disc", "square"])
        #expect(abs(try #require(model.training?.accuracy) - 1) < 0.2)

        let classifier = try ImageClassifier(model)
        let unseen = try shapes(count: 40, seed: 99)
        let evaluation = try classifier.evaluateMultiLabel(on: unseen)
        #expect(try #require(evaluation.meanAveragePrecision) > 0.95)
        #expect(evaluation.accuracy > 0.9)
        #expect(!classifier.confidencesSumToOne)
        let rule = ConfidenceRule(threshold: .perLabel)
        try rule.check(classifier)
        #expect(throws: ImprintError.self) { try classifier.evaluate(on: unseen) }
        #expect(Report(model, evaluation: .multiLabel(validation)).html.contains("mean average precision"))
    }

    @Test("An evaluation for another kind of model is an error; an imported network with sigmoids fits both")
    func kindsOfModels() throws {
        var photos = InMemorySource(labels: ["a", "b"])
        for index in 0..<4 { try photos.append(testImage(index), labels: [index % 2 == 0 ? "a" : "b"]) }
        let imported = try smallModel(labels: ["a", "b"], isShared: false)
        #expect(try imported.evaluate(on: photos).results.count == 4)
        #expect(try imported.evaluateMultiLabel(on: photos).results.count == 4)

        var hyperparameters = ClassifierHyperparameters()
        hyperparameters.isMultiLabel = true
        let model = imported.model
        let multiLabel = try ImageClassifier(
            ModelFile(
                network: model.network, parameters: model.parameters, labels: model.labels,
                preprocessing: model.preprocessing, training: TrainingRecord(.classifier(hyperparameters))))
        let singleLabel = try smallModel(labels: ["a", "b"])
        let (one, several) = ("a model that predicts one label per photo", "a multi-label model")
        #expect(throws: ImprintError.wrongKindOfModel(network: "small", found: several, expected: one)) {
            try multiLabel.evaluate(on: photos)
        }
        #expect(throws: ImprintError.wrongKindOfModel(network: "small", found: one, expected: several)) {
            try singleLabel.evaluateMultiLabel(on: photos)
        }
    }

    @Test("A resumed multi-label run and other numbers of threads give a bitwise equal model") func deterministic()
        throws
    {
        let photos = try shapes(count: 32, seed: 3)
        let expected = try bytes(of: result(photos, epochs: 3).model)
        #expect(try bytes(of: result(photos, epochs: 3, threads: 3).model) == expected)
        try withTemporaryFolder { folder in
            func options(resumes: Bool) -> CheckpointOptions {
                CheckpointOptions(folder: folder, interval: .zero, resumes: resumes)
            }
            var steps = 0
            _ = try result(
                photos, epochs: 3, checkpoints: options(resumes: false), shouldStop: { steps >= 5 },
                onEvent: { if case .batch = $0 { steps += 1 } })
            #expect(steps == 5)
            #expect(try bytes(of: result(photos, epochs: 3, checkpoints: options(resumes: true)).model) == expected)
        }
    }

    @Test("A validation list with several labels is an error for a model with one label per photo") func severalLabels()
        throws
    {
        try withImages(perLabel: 4) { folder in
            let list = folder.appending(path: "validation.csv")
            try Data("photo,labels\nleft/0.png,left;right\n".utf8).write(to: list)
            let photo = folder.appending(path: "left/0.png").path(percentEncoded: false)
            #expect(throws: ImprintError.notOneLabel(photo: photo, labels: ["left", "right"])) {
                try train(folder, quickTraining(epochs: 1) { $0.validationFolder = list })
            }
        }
    }
}
