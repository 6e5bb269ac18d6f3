import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import Testing

@Suite struct HyperparameterDecodingTests {
    /// Returns the record after `change` has edited the JSON object of its hyperparameters.
    private func decoded(
        _ hyperparameters: TrainingRecord.Hyperparameters, trainer: String, change: (inout [String: Any]) -> Void
    ) throws -> TrainingRecord.Hyperparameters {
        let data = try JSONEncoder().encode(TrainingRecord(hyperparameters))
        var record = try #require(JSONSerialization.jsonObject(with: data) as? [String: Any])
        var known = try #require(record["hyperparameters"] as? [String: [String: Any]])
        var values = try #require(known[trainer])
        change(&values)
        known[trainer] = values
        record["hyperparameters"] = known
        return try JSONDecoder().decode(
            TrainingRecord.self, from: JSONSerialization.data(withJSONObject: record)
        ).hyperparameters
    }

    @Test("A hyperparameter that is not finite is rejected by name", arguments: [Float.infinity, -.infinity, .nan])
    func notFinite(value: Float) {
        func check(_ name: String, _ set: (inout ClassifierHyperparameters) -> Void) {
            var hyperparameters = ClassifierHyperparameters()
            set(&hyperparameters)
            #expect(hyperparameters.problem?.name == name)
        }
        check("learningRate") { $0.learningRate = value }
        check("momentum") { $0.momentum = value }
        check("weightDecay") { $0.weightDecay = value }
        check("gradientClipping") { $0.gradientClipping = value }
        check("labelSmoothing") { $0.labelSmoothing = value }
        check("emaDecay") { $0.emaDecay = value }
        check("layerDecay") { $0.fineTuning.layerDecay = value }
        check("schedule") { $0.schedule = .cosine(final: value) }
        check("schedule") { $0.schedule = .step(every: 1, factor: value) }
        func checkDetector(_ name: String, _ set: (inout DetectorHyperparameters) -> Void) {
            var hyperparameters = DetectorHyperparameters()
            hyperparameters.phases = [
                DetectorPhase(
                    steps: 1, learningRate: 0.1, composites: 1, hardNegatives: 0, background: 0, mined: 0, located: 0)
            ]
            set(&hyperparameters)
            #expect(hyperparameters.problem?.name == name)
        }
        checkDetector("emaDecay") { $0.emaDecay = value }
        checkDetector("beta1") { $0.optimizer.beta1 = value }
        checkDetector("beta2") { $0.optimizer.beta2 = value }
        checkDetector("epsilon") { $0.optimizer.epsilon = value }
        checkDetector("weightDecay") { $0.optimizer.weightDecay = value }
        checkDetector("gradientClipping") { $0.optimizer.gradientClipping = value }
        checkDetector("learningRate") { $0.phases?[0].learningRate = value }
        checkDetector("mined") { $0.phases?[0].mined = value }
    }

    @Test("The expected range of a hyperparameter without an upper limit excludes infinity") func finiteRanges() {
        var classifier = ClassifierHyperparameters()
        classifier.gradientClipping = .infinity
        #expect(classifier.problem?.expected == "more than 0 and finite")
        classifier.weightDecay = .infinity
        #expect(classifier.problem?.expected == "at least 0 and finite")
        classifier.learningRate = .infinity
        #expect(classifier.problem?.name == "learningRate")
        #expect(classifier.problem?.expected == "at least 0 and finite")
        var detector = DetectorHyperparameters()
        detector.optimizer.epsilon = .infinity
        #expect(detector.problem?.expected == "more than 0 and finite")
    }

    @Test("A stored hyperparameter that is not finite can be read", arguments: [Float.infinity, -.infinity])
    func storedNotFinite(value: Float) throws {
        var hyperparameters = ClassifierHyperparameters()
        hyperparameters.gradientClipping = value
        let record = TrainingRecord(.classifier(hyperparameters))
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        #expect(try decoder.decode(TrainingRecord.self, from: Data(json(record).utf8)) == record)
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
        let detectorResult = try decoded(.detector(detector), trainer: "detector") { $0["emaDecay"] = nil }
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

    @Test("Hyperparameters that an older file has under the key _0 are read")
    func olderForm() throws {
        var stored = ClassifierHyperparameters()
        stored.epochs = 7
        stored.validation = .fraction(0.3)
        let result = try decoded(.classifier(stored), trainer: "classifier") { values in
            values["validation"] = ["fraction": ["_0": 0.3]]
            values = ["_0": values]
        }
        #expect(result == .classifier(stored))
        var detector = DetectorHyperparameters()
        detector.batchSize = 8
        #expect(
            try decoded(.detector(detector), trainer: "detector") { $0 = ["_0": $0] } == .detector(detector))
    }

    // MARK: Stored names

    /// Returns a JSON text in a canonical form.
    private func canonical(_ json: Data) throws -> String {
        let value = try JSONSerialization.jsonObject(with: json)
        return String(
            decoding: try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .prettyPrinted]),
            as: UTF8.self)
    }

    /// Checks that hyperparameters are stored as the golden text, and that they are read from it.
    private func check(_ hyperparameters: TrainingRecord.Hyperparameters, golden: String) throws {
        #expect(try canonical(JSONEncoder().encode(hyperparameters)) == canonical(Data(golden.utf8)))
        #expect(
            try JSONDecoder().decode(TrainingRecord.Hyperparameters.self, from: Data(golden.utf8)) == hyperparameters)
    }

    private static let optionals = """
        , "emaDecay": 0.5, "gradientClipping": 5, "inputSize": 64, "patience": 3, "timeLimit": [0, 2000000000000000000]
        """

    @Test("The stored names and default values of a classifier's hyperparameters do not change")
    func storedClassifier() throws {
        func golden(optionals: String) -> String {
            """
            {"classifier": {
                "augmentation": {"kinds": []}, "batchSize": 32, "calibrates": true, "classWeights": "none",
                "cropAndScale": "center-crop", "epochs": 20,
                "fineTuning": {"keepsStatistics": true, "layerDecay": 0.4, "stageEpochs": 1},
                "isMultiLabel": false, "keepsGroupsTogether": true, "labelSmoothing": 0, "learningRate": 0.02, "momentum": 0.9,
                "optimizer": "sgd", "poolsMaximum": false, "rehearsalImages": 512, "schedule": {"cosine": {"final": 0.01}}, "seed": 0,
                "usesMixedPrecision": false, "validation": {"automatic": {}}, "weightDecay": 0.0001\(optionals)
            }}
            """
        }
        var hyperparameters = ClassifierHyperparameters()
        try check(.classifier(hyperparameters), golden: golden(optionals: ""))
        hyperparameters.emaDecay = 0.5
        hyperparameters.gradientClipping = 5
        hyperparameters.inputSize = 64
        hyperparameters.patience = 3
        hyperparameters.timeLimit = .seconds(2)
        try check(.classifier(hyperparameters), golden: golden(optionals: Self.optionals))
    }

    @Test("The stored names and default values of a detector's hyperparameters do not change")
    func storedDetector() throws {
        func golden(optionals: String) -> String {
            """
            {"detector": {
                "batchSize": 64, "emaDecay": 0.995, "epochs": 20, "keepsGroupsTogether": true,
                "optimizer": {
                    "beta1": 0.9, "beta2": 0.99, "epsilon": 1e-08, "gradientClipping": 2, "weightDecay": 0.03
                },
                "poolSize": 600, "rehearsalImages": 512, "seed": 0, "validation": {"automatic": {}}\(optionals)
            }}
            """
        }
        var hyperparameters = DetectorHyperparameters()
        try check(.detector(hyperparameters), golden: golden(optionals: ""))
        hyperparameters.phases = [
            DetectorPhase(
                steps: 10, learningRate: 0.5, composites: 0.5, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0)
        ]
        let phase = """
            , "phases": [{
                "background": 0.25, "composites": 0.5, "hardNegatives": 0.25, "learningRate": 0.5, "located": 0, "mined": 0,
                "steps": 10
            }]
            """
        try check(.detector(hyperparameters), golden: golden(optionals: phase))
    }

    @Test(
        "A validation rule is stored without generated keys",
        arguments: [
            (ValidationRule.automatic, #"{"automatic": {}}"#), (.fraction(0.25), #"{"fraction": 0.25}"#),
            (.none, #"{"none": {}}"#),
        ] as [(ValidationRule, String)])
    func storedValidation(rule: ValidationRule, golden: String) throws {
        #expect(try canonical(JSONEncoder().encode(rule)) == canonical(Data(golden.utf8)))
        #expect(try JSONDecoder().decode(ValidationRule.self, from: Data(golden.utf8)) == rule)
    }

    @Test("A record has the warm-up steps of version 1: the first epoch", arguments: [(1, 0), (2, 2)])
    func warmUpSteps(epochs: Int, steps: Int) throws {
        var hyperparameters = ClassifierHyperparameters()
        hyperparameters.epochs = epochs
        let record = TrainingRecord(.classifier(hyperparameters), trainingImages: ["a": 20, "b": 13])
        let stored = try #require(
            JSONSerialization.jsonObject(with: JSONEncoder().encode(record)) as? [String: Any])
        #expect((stored["schedule"] as? [String: Any])?["warmUpSteps"] as? Int == steps)
    }

    @Test(
        "A record continues another one with the same settings if it begins with the same epochs, also with other photos"
    )
    func continuation() {
        let epochs = (1...3).map { EpochMetrics(epoch: $0, loss: 1 / Float($0), accuracy: 0.5, learningRate: 0.1) }
        func record(_ history: [EpochMetrics], digest: String = "a", seed: UInt64 = 0) -> TrainingRecord {
            var hyperparameters = ClassifierHyperparameters()
            hyperparameters.seed = seed
            return TrainingRecord(.classifier(hyperparameters), dataDigest: digest, history: history)
        }
        let later = record(epochs)
        func continues(_ earlier: TrainingRecord) -> Bool { later.continues(runState: earlier.runState) }
        #expect(continues(record(Array(epochs.prefix(2)))) && continues(later))
        #expect(!record(Array(epochs.prefix(2))).continues(runState: later.runState))
        #expect(!continues(record([])) && !continues(record(Array(epochs.dropFirst()))))
        #expect(continues(record(Array(epochs.prefix(2)), digest: "b")))
        #expect(!continues(record(Array(epochs.prefix(2)), seed: 1)))
        for damaged in ["", "2", "-1 a", "4 a", "99999999999999999999 a"] {
            #expect(!later.continues(runState: damaged), "\(damaged)")
        }
    }

    @Test("A record continues one whose hyperparameters differ only in those that may change when a run is resumed")
    func continuationWithOtherLength() {
        let epochs = (1...3).map { EpochMetrics(epoch: $0, loss: 1 / Float($0), accuracy: 0.5, learningRate: 0.1) }
        func classifier(_ count: Int, _ change: (inout ClassifierHyperparameters) -> Void = { _ in }) -> TrainingRecord
        {
            var hyperparameters = ClassifierHyperparameters()
            change(&hyperparameters)
            return TrainingRecord(.classifier(hyperparameters), history: Array(epochs.prefix(count)))
        }
        func detector(_ count: Int, _ change: (inout DetectorHyperparameters) -> Void = { _ in }) -> TrainingRecord {
            var hyperparameters = DetectorHyperparameters()
            change(&hyperparameters)
            return TrainingRecord(.detector(hyperparameters), history: Array(epochs.prefix(count)))
        }
        let later = classifier(3) {
            $0.epochs = 100
            $0.patience = 4
            $0.timeLimit = .seconds(60)
            $0.calibrates = false
            $0.rehearsalImages = 8
        }
        #expect(later.continues(runState: classifier(2).runState))
        #expect(classifier(3).continues(runState: later.runState))
        #expect(!later.continues(runState: classifier(2) { $0.batchSize = 8 }.runState))
        #expect(!later.continues(runState: detector(2).runState))
        #expect(detector(3) { $0.rehearsalImages = 8 }.continues(runState: detector(2).runState))
        #expect(!detector(3) { $0.epochs = 8 }.continues(runState: detector(2).runState))
    }
}
