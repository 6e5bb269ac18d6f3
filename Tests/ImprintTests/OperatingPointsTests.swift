import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import Testing

@Suite("Operating points") struct OperatingPointsTests {
    /// Returns an evaluation with the labels "no" and "yes", from pairs of (whether the label is "yes", confidence in "yes").
    private func evaluation(_ images: [(Bool, Float)]) -> Evaluation {
        Evaluation(
            labels: ["no", "yes"],
            results: images.map { isPositive, confidence in
                Evaluation.Result(
                    url: URL(filePath: "/x.png"), label: isPositive ? 1 : 0, confidences: [1 - confidence, confidence])
            }, skipped: [])
    }

    @Test("A short precision–recall curve is stored completely")
    func short() {
        let evaluation = evaluation([(false, 0.125), (false, 0.75), (true, 0.875), (true, 0.5), (true, 0.5)])
        let curve = evaluation.precisionRecall["yes"]
        let third = 1.0 / 3
        let expected: [TrainingRecord.PrecisionRecallPoint] = [
            .init(threshold: 0.125, precision: 0.6, recall: 1), .init(threshold: 0.5, precision: 0.75, recall: 1),
            .init(threshold: 0.75, precision: 0.5, recall: third), .init(threshold: 0.875, precision: 1, recall: third),
        ]
        #expect(curve == expected)
        #expect(curve == evaluation.precisionRecallCurve(of: "yes"))
    }

    @Test("A long curve is reduced to evenly spaced recalls, including both ends", arguments: [1, 2, 37])
    func long(every: Int) throws {
        // Confidences increase with the index. Positives are spread over all indices, with more at the upper end.
        let evaluation = evaluation((0..<3000).map { ($0 % every == every - 1 || $0 > 2500, Float($0) / 3000) })
        let exact = try #require(evaluation.precisionRecallCurve(of: "yes"))
        let curve = try #require(evaluation.precisionRecall["yes"])
        #expect(exact.count == 3000)
        #expect((90...100).contains(curve.count))
        #expect(curve.first == exact.first && curve.last == exact.last)
        #expect(zip(curve, curve.dropFirst()).allSatisfy { $0.threshold < $1.threshold && $0.recall >= $1.recall })
        #expect(zip(curve, curve.dropFirst()).allSatisfy { $0.recall - $1.recall < 0.0125 })
        #expect(Set(curve).isSubset(of: exact))
        // Except for the first point, the curve has the highest threshold of each recall.
        for point in curve.dropFirst() {
            #expect(exact.last { $0.recall == point.recall } == point)
        }
    }

    @Test("The threshold is halfway between the lowest confidence included at the best F1 and the next lower one")
    func thresholds() {
        // F1 at 0.875: 2/4, at 0.75: 2/5, at 0.5: 6/7, at 0.125: 6/8.
        let mixed = evaluation([(false, 0.125), (false, 0.75), (true, 0.875), (true, 0.5), (true, 0.5)])
        #expect(mixed.thresholds["yes"] == (0.5 + 0.125) / 2)
        let separate = evaluation([(false, 0.25), (true, 0.75), (true, 1)])
        #expect(separate.thresholds["yes"] == 0.5)
        // There is no lower confidence, so the gap extends to 0.
        #expect(evaluation([(true, 0.75), (true, 0.5)]).thresholds["yes"] == 0.25)
        // F1 at 1: 2/3, at 0.75: 2/5, at 0.5: 4/6. The highest threshold wins a tie.
        let equal = evaluation([(true, 1), (false, 0.75), (false, 0.75), (true, 0.5)])
        #expect(equal.thresholds["yes"] == 0.875)
    }

    private let curve: [TrainingRecord.PrecisionRecallPoint] = [
        .init(threshold: 0.1, precision: 0.4, recall: 1), .init(threshold: 0.3, precision: 0.7, recall: 0.9),
        .init(threshold: 0.5, precision: 0.6, recall: 0.6), .init(threshold: 0.8, precision: 0.9, recall: 0.6),
        .init(threshold: 0.9, precision: 1, recall: 0.2),
    ]

    private func classification(_ confidence: Float) -> Classification {
        Classification(label: "logo", confidence: confidence, precisionRecallCurve: curve, threshold: 0.75)
    }

    @Test(
        "A minimum precision is checked at the highest threshold with sufficient recall",
        arguments: [
            // At a recall of 0.6 the threshold is 0.8, with a precision of 0.9.
            (0.9, 0.6, Float(0.8), true), (0.9, 0.6, 0.79, false), (0.91, 0.6, 1, false),
            // At 0.61 it is 0.3 with 0.7.
            (0.7, 0.61, 0.3, true), (0.71, 0.61, 1, false), (0, 1, 0.1, true), (0, 1, 0.09, false),
        ])
    func minimumPrecision(precision: Double, recall: Double, confidence: Float, expected: Bool) {
        #expect(classification(confidence).hasMinimumPrecision(precision, forRecall: recall) == expected)
    }

    @Test(
        "A minimum recall is checked at the lowest threshold with sufficient precision",
        arguments: [
            // At a precision of 0.65 the threshold is 0.3 with a recall of 0.9, at 0.75 it is 0.8 with 0.6.
            (0.9, 0.65, Float(0.31), true), (0.9, 0.65, 0.29, false), (0.91, 0.65, 1, false),
            (0.6, 0.75, 0.81, true), (0.6, 0.75, 0.79, false), (0, 1, 0.91, true), (0.21, 1, 1, false),
        ])
    func minimumRecall(recall: Double, precision: Double, confidence: Float, expected: Bool) {
        #expect(classification(confidence).hasMinimumRecall(recall, forPrecision: precision) == expected)
    }

    @Test("Classifications without a curve meet no minimum, and have no threshold to reach")
    func withoutCurve() {
        let classification = Classification(label: "logo", confidence: 1)
        #expect(classification.precisionRecallCurve.isEmpty && classification.reachesThreshold == nil)
        #expect(!classification.hasMinimumPrecision(0, forRecall: 0))
        #expect(!classification.hasMinimumRecall(0, forPrecision: 0))
        #expect(self.classification(0.75).reachesThreshold == true)
        #expect(self.classification(0.7).reachesThreshold == false)
    }

    @Test("JSON and equality of a classification consider only its label and confidence")
    func json() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let data = try encoder.encode(classification(0.5))
        #expect(String(decoding: data, as: UTF8.self) == #"{"confidence":0.5,"label":"logo"}"#)
        let read = try JSONDecoder().decode(Classification.self, from: data)
        #expect(read == classification(0.5) && read.hashValue == classification(0.5).hashValue)
        #expect(read != classification(0.25) && read != Classification(label: "other", confidence: 0.5))
        #expect(read.precisionRecallCurve.isEmpty)
    }

    @Test(
        "A rule accepts a classification that meets all of its conditions",
        arguments: [
            (ConfidenceRule(), Float(0), true), (ConfidenceRule(threshold: .confidence(0.5)), 0.5, true),
            (ConfidenceRule(threshold: .confidence(0.5)), 0.49, false),
            (ConfidenceRule(threshold: .perLabel), 0.75, true), (ConfidenceRule(threshold: .perLabel), 0.74, false),
            (ConfidenceRule(minimumPrecision: 0.7), 0.3, true), (ConfidenceRule(minimumPrecision: 0.7), 0.29, false),
            (ConfidenceRule(minimumRecall: 0.6), 0.8, true), (ConfidenceRule(minimumRecall: 0.6), 0.79, false),
            (ConfidenceRule(minimumPrecision: 0.9, minimumRecall: 0.6), 0.8, true),
            (ConfidenceRule(minimumPrecision: 0.91, minimumRecall: 0.6), 1, false),
            (ConfidenceRule(threshold: .confidence(0.9), minimumPrecision: 0.7), 0.8, false),
        ])
    func rule(_ rule: ConfidenceRule, confidence: Float, expected: Bool) {
        #expect(rule.accepts(classification(confidence)) == expected)
    }

    @Test("A rule that needs metrics the model does not have is an error that names the labels")
    func missingMetrics() throws {
        let labels = (1...7).map { "label \($0)" }
        let network = try Network.logonet(labels: 7, inputSize: 16, width: 0.1)
        func model(_ record: TrainingRecord?) throws -> ModelFile {
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 0), labels: labels,
                preprocessing: Preprocessing(width: 16, height: 16), training: record)
        }
        var record = TrainingRecord(.classifier(ClassifierHyperparameters()))
        #expect(throws: ImprintError.missingMetric("threshold", labels: labels, reason: .noTrainingRecord)) {
            try ConfidenceRule(threshold: .perLabel).check(try ImageClassifier(model(nil)))
        }
        record.thresholds = Dictionary(uniqueKeysWithValues: labels.dropLast().map { ($0, 0.5) })
        #expect(throws: ImprintError.missingMetric("threshold", labels: ["label 7"], reason: .noValidationPhotos)) {
            try ConfidenceRule(threshold: .perLabel).check(try ImageClassifier(model(record)))
        }
        record.thresholds?["label 7"] = 0.5
        try ConfidenceRule(threshold: .perLabel).check(try ImageClassifier(model(record)))
        for rule in [ConfidenceRule(minimumPrecision: 0.5), ConfidenceRule(minimumRecall: 0.5)] {
            let error = #expect(throws: ImprintError.self) { try rule.check(try ImageClassifier(model(record))) }
            #expect(error == .missingMetric("precision–recall curve", labels: labels, reason: .noValidationPhotos))
            #expect(error?.description.contains("label 4, label 5 and 2 more labels") == true)
        }
        for label in labels { record.precisionRecall[label] = curve }
        try ConfidenceRule(minimumPrecision: 0.5, minimumRecall: 0.5).check(try ImageClassifier(model(record)))
        try ConfidenceRule(threshold: .confidence(0.5)).check(try ImageClassifier(model(nil)))

        let base = try model(record)
        let weights = [Float](repeating: 0, count: try #require(network.headChannels))
        let personalization = Personalization(
            baseDigest: try base.identity, addedLabels: ["new"],
            columns: [Personalization.Column(label: "new", weights: weights, bias: 0)],
            record: Personalization.Record(examples: ["new": 1]))
        let personalized = try ImageClassifier(base).personalized(with: personalization)
        #expect(throws: ImprintError.missingMetric("threshold", labels: ["new"], reason: .addedByPersonalization)) {
            try ConfidenceRule(threshold: .perLabel).check(personalized)
        }
        try ConfidenceRule(threshold: .confidence(0.5)).check(personalized)
    }

    @Test(
        "The message about a missing metric gives its reason and a fix",
        arguments: [
            (.noValidationPhotos, "no validation photo had these labels", "train again with validation photos"),
            (
                .addedByPersonalization, "a personalization adds labels without metrics",
                "Use one threshold for all labels"
            ),
            (.noTrainingRecord, "it has no training record", "Use one threshold for all labels"),
        ] as [(ImprintError.MissingMetricReason, String, String)])
    func missingMetricMessage(reason: ImprintError.MissingMetricReason, cause: String, fix: String) {
        let message = ImprintError.missingMetric("threshold", labels: ["Ring"], reason: reason).description
        #expect(message.hasPrefix("the model has no threshold for Ring, because \(cause)"), "\(message)")
        #expect(message.contains(fix) && message.hasSuffix(".") && !message.hasSuffix(".."), "\(message)")
    }

    @Test("A classifier adds the curve and threshold of the label to each classification")
    func classifier() throws {
        let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
        let record = TrainingRecord(
            .classifier(ClassifierHyperparameters()),
            precisionRecall: ["logo": curve], thresholds: ["logo": 0.5, "other": 0.25])
        let classifier = try ImageClassifier(
            ModelFile(
                network: network, parameters: try Parameters(network, seed: 0), labels: ["logo", "other"],
                preprocessing: Preprocessing(width: 16, height: 16), training: record))
        let classifications = try classifier.classify(RasterImage(width: 16, height: 16, filledWith: 200))
            .sorted { $0.label < $1.label }
        #expect(classifications.map(\.precisionRecallCurve) == [curve, []])
        #expect(classifications.map(\.threshold) == [0.5, 0.25])
    }
}
