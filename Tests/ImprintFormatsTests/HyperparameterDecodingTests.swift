import Foundation
import ImprintModel
import Testing

@Suite struct HyperparameterDecodingTests {
    /// Returns the record after `change` has edited the JSON object of its hyperparameters.
    private func decoded(
        _ hyperparameters: TrainingRecord.Hyperparameters, trainer: String, change: (inout [String: Any]) -> Void
    ) throws -> TrainingRecord.Hyperparameters {
        let data = try JSONEncoder().encode(TrainingRecord(hyperparameters))
        var record = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        var known = try #require(record["hyperparameters"] as? [String: [String: [String: Any]]])
        var values = try #require(known[trainer]?["_0"])
        change(&values)
        known[trainer]?["_0"] = values
        record["hyperparameters"] = known
        return try JSONDecoder().decode(
            TrainingRecord.self, from: JSONSerialization.data(withJSONObject: record)
        ).hyperparameters
    }

    @Test("A hyperparameter that is missing in an older file has its default value")
    func missingValues() throws {
        var stored = ClassifierHyperparameters()
        stored.epochs = 7
        stored.labelSmoothing = 0.1
        stored.seed = .max
        var expected = stored
        expected.labelSmoothing = 0
        let result = try decoded(.classifier(stored), trainer: "classifier") { $0["labelSmoothing"] = nil }
        #expect(result == .classifier(expected))

        var detector = DetectorHyperparameters()
        detector.batchSize = 8
        let detectorResult = try decoded(.detector(detector), trainer: "detector") { $0["averageDecay"] = nil }
        #expect(detectorResult == .detector(detector))
    }

    @Test("An optional hyperparameter without a stored value is nil, whatever its default")
    func missingOptional() throws {
        var stored = ClassifierHyperparameters()
        stored.learningRate = nil
        #expect(try decoded(.classifier(stored), trainer: "classifier") { _ in } == .classifier(stored))
    }

    @Test("Hyperparameters of a newer version are ignored")
    func unknownValues() throws {
        let stored = ClassifierHyperparameters()
        let result = try decoded(.classifier(stored), trainer: "classifier") { $0["mixup"] = 0.2 }
        #expect(result == .classifier(stored))
    }

    @Test("A value of the wrong type is an error")
    func wrongType() {
        #expect(throws: DecodingError.self) {
            try decoded(.classifier(ClassifierHyperparameters()), trainer: "classifier") { $0["epochs"] = "many" }
        }
    }
}
