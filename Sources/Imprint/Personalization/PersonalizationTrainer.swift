internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Makes a personalization of all that was shown.
struct PersonalizationTrainer {
    private let base: ImageClassifier
    private let lesson: PersonalizationSession.Lesson
    private let configuration: PersonalizationConfiguration
    private let weights: ModelFile
    /// The labels with a number of their own, in the order of the head's outputs: those of the base and of what there was before, then new
    /// ones.
    private let outputs: [String]
    private let newLabels: [String]

    init(
        _ base: ImageClassifier, _ lesson: PersonalizationSession.Lesson,
        _ configuration: PersonalizationConfiguration
    ) throws {
        self.base = base
        self.lesson = lesson
        self.configuration = configuration
        weights = base.weights
        let known = weights.labels + (lesson.before?.addedLabels ?? [])
        var new: [String] = []
        for example in lesson.examples where !(known + new).contains(example.evidence.label) {
            guard example.evidence.isPositive else {
                throw ImprintError.unknownLabel(example.evidence.label, known: known)
            }
            guard base.learnsNewLabels else {
                throw ImprintError.cannotAddLabel(example.evidence.label, known: known)
            }
            new.append(example.evidence.label)
        }
        newLabels = new
        outputs = weights.headLabels + (lesson.before?.addedLabels ?? []) + new
    }

    /// The personalization; nil if nothing was shown, nor was there anything before.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Personalization? {
        guard !lesson.examples.isEmpty else { return lesson.before }
        let start = try start()
        return configuration.blocks == 0
            ? try tunedHead(start, shouldStop, onStep) : try tunedBlocks(start, shouldStop, onStep)
    }

    private func tunedHead(
        _ start: Personalization, _ shouldStop: () throws -> Bool, _ onStep: ((PersonalizationProgress.Step) -> Void)?
    ) throws -> Personalization {
        let trained = trainedOutputs
        let change = try HeadObjective(
            try head(start), samples, rehearsal: rehearsal(start), trained: trained, newCount: newLabels.count,
            penalty: configuration.penalty
        ).run(shouldStop: shouldStop, onStep: onStep)
        return start.adding(
            weight: change.weight, bias: change.bias, to: trained.map { outputs[$0] }, record: lesson.record)
    }

    private func tunedBlocks(
        _ start: Personalization, _ shouldStop: () throws -> Bool, _ onStep: ((PersonalizationProgress.Step) -> Void)?
    ) throws -> Personalization {
        let part = try part(blocks: configuration.blocks, outputs: outputs.count)
        let change = try AdapterObjective(
            part, parameters: weights.parameters(of: part, with: start), rank: configuration.rank, samples: samples,
            rehearsal: rehearsal(start), newCount: newLabels.count
        ).run(shouldStop: shouldStop, onStep: onStep)
        return start.adding(weight: change.weight, bias: change.bias, to: outputs, record: lesson.record)
            .adding(change.factors)
    }

    /// The last blocks and the head with so many outputs, without a softmax.
    private func part(blocks: Int, outputs: Int) throws -> Network {
        let part = try base.weights.split(blocks: blocks).head.logits()
        return outputs == weights.headLabels.count ? part : try part.replacingHead(outputs: outputs)
    }

    /// The outputs that the examples are about; where one shows none of the marks, all.
    private var trainedOutputs: [Int] {
        let labels = Set(lesson.examples.map(\.evidence.label))
        if !labels.isSubset(of: outputs) { return Array(outputs.indices) }
        return outputs.indices.filter { labels.contains(outputs[$0]) }
    }

    /// What there was before, and the weights that new labels begin with.
    private func start() throws -> Personalization {
        let before = lesson.before
        return try Personalization(
            base: weights.identity, addedLabels: (before?.addedLabels ?? []) + newLabels,
            columns: (before?.columns ?? []) + imprints(), factors: before?.factors ?? [], record: lesson.record)
    }

    /// The head that training begins with.
    private func head(_ start: Personalization) throws -> HeadParameters {
        let part = try part(blocks: 0, outputs: outputs.count)
        let parameters = try weights.parameters(of: part, with: start)
        let name = part.nodes[0].name
        let marks = weights.detector?.marks
        let bias = parameters["\(name).bias"]
        return HeadParameters(
            weight: parameters["\(name).weight"] ?? [], bias: bias ?? outputs.map { _ in 0 }, hasBias: bias != nil,
            slopes: marks?.map(\.slope) ?? outputs.map { _ in 1 },
            offsets: marks?.map(\.offset) ?? outputs.map { _ in 0 }, hasNone: marks != nil)
    }

    /// The weights that new labels begin with: the normalized mean of their features, as long as the base's weights are on the average
    /// (Qi et al., "Low-shot learning with imprinted weights", 2018).
    ///
    /// Features of all photos have much in common, so that means are taken from that of the base's photos; the bias puts the border
    /// half-way between the two.
    private func imprints() throws -> [Personalization.Column] {
        guard !newLabels.isEmpty else { return [] }
        func length(_ values: [Float]) -> Float { values.reduce(0) { $0 + $1 * $1 }.squareRoot() }
        func mean(_ rows: [[Float]]) -> [Float] {
            guard var sum = rows.first else { return [] }
            for row in rows.dropFirst() { for (place, value) in row.enumerated() { sum[place] += value } }
            return sum.map { $0 / Float(rows.count) }
        }
        let features = try featuresOfHead()
        let own = weights.headLabels.count
        let baseWeight = base.weights.headWeight
        let channels = baseWeight.count / own
        let usual = (0..<own).reduce(Float(0)) { sum, output in
            sum + length((0..<channels).map { baseWeight[$0 * own + output] }) / Float(own)
        }
        let common =
            weights.rehearsal.map { rehearsal in
                mean(
                    (0..<rehearsal.labels.count).map {
                        Array(rehearsal.features[($0 * channels)..<(($0 + 1) * channels)])
                    })
            } ?? (0..<channels).map { _ in 0 }
        return newLabels.map { label in
            let shown = zip(lesson.examples, features).filter { $0.0.evidence == .isLabel(label) }
            let middle = mean(shown.flatMap(\.1))
            let away = zip(middle, common).map { $0 - $1 }
            let scale = usual / max(length(away), 1e-12)
            let bias = zip(away, zip(middle, common)).reduce(0) { $0 - scale * $1.0 * ($1.1.0 + $1.1.1) / 2 }
            return Personalization.Column(
                label: label, weights: away.map { $0 * scale }, bias: hasBias ? bias : 0)
        }
    }

    /// Whether the head has biases.
    private var hasBias: Bool {
        weights.network.tunedPlace.map { weights.parameters["\(weights.network.nodes[$0].name).bias"] != nil } ?? false
    }

    /// What the head reads of each view of each example.
    private func featuresOfHead() throws -> [[[Float]]] {
        let part = try part(blocks: configuration.blocks, outputs: weights.headLabels.count)
        guard configuration.blocks > 0, let before = try part.splitAtHead()?.features else {
            return lesson.examples.map(\.views)
        }
        let parameters = try Parameters(ParameterLayout(before))
        parameters.load(from: try lesson.before.map(weights.personalized)?.parameters ?? weights.parameters)
        let pool = try ExecutionPlanPool(before, parameters: parameters, workers: Workers(1))
        return lesson.examples.map { $0.views.map(pool.callAsFunction) }
    }

    /// The person's views.
    private var samples: [PersonalizationSample] {
        let share = 1 / Float(lesson.examples.count)
        return lesson.examples.flatMap { example in
            let place = outputs.firstIndex(of: example.evidence.label) ?? outputs.count
            let target: PersonalizationSample.Target = example.evidence.isPositive ? .label(place) : .not(place)
            return example.views.map { view in
                PersonalizationSample(features: view, target: target, weight: share / Float(example.views.count))
            }
        }
    }

    /// What the base was trained on, and what labels that were added before may have looked like.
    private func rehearsal(_ start: Personalization) throws -> [PersonalizationSample] {
        guard let rehearsal = weights.rehearsal, configuration.rehearsalWeight > 0 else { return [] }
        let count = rehearsal.labels.count
        let length = rehearsal.places * rehearsal.channels
        let places = base.runtime.positions
        let features = (0..<count).map { photo in
            var features = Array(
                rehearsal.features[(photo * length)..<((photo + 1) * length)].prefix(places * rehearsal.channels))
            // A file may keep fewer places of each photo: the last one again.
            while features.count < places * rehearsal.channels { features += features.suffix(rehearsal.channels) }
            return features
        }
        let own = features.map {
            PersonalizationSample(features: $0, target: .asBefore, weight: configuration.rehearsalWeight / Float(count))
        }
        let earlier = lesson.before?.addedLabels ?? []
        guard !earlier.isEmpty else { return own }
        let known = outputs.count - newLabels.count
        let recalled = RecalledLabels(try head(start), known: known, features: features)
        return own
            + ((known - earlier.count)..<known).flatMap {
                recalled.samples(of: $0, weight: configuration.rehearsalWeight / Float(known))
            }
    }
}

extension PersonalizationTrainer {
    /// See `PersonalizationSession.crossValidated(folds:)`; nil if there are fewer than two photos a fold.
    static func crossValidated(
        _ base: ImageClassifier, _ lesson: PersonalizationSession.Lesson, _ configuration: PersonalizationConfiguration,
        folds: Int, shouldStop: () throws -> Bool
    ) throws -> PersonalizationSession.Accuracy? {
        let examples = lesson.examples
        guard examples.count >= 2 * folds else { return nil }
        func rightCount(_ personalization: Personalization?, _ examples: [Example]) throws -> Int {
            let confidences = try base.runtime.confidences(blocks: configuration.blocks, with: personalization)
            let labels = base.labels + (personalization?.addedLabels ?? [])
            return examples.count { example in
                let scores = confidences(example.views[0])
                let best = labels.indices.max { scores[$0] < scores[$1] }.map { labels[$0] }
                return (best == example.evidence.label) == example.evidence.isPositive
            }
        }
        // In turn within each label, for photos of labels may come in turn themselves.
        var shown: [Evidence: Int] = [:]
        let parts = examples.map { example in
            defer { shown[example.evidence, default: 0] += 1 }
            return shown[example.evidence, default: 0] % folds
        }
        // A label that has but one photo would be corrected, or judged, without ever having been shown.
        guard shown.allSatisfy({ !$0.key.isPositive || $0.value > 1 }) else { return nil }
        var after = 0
        for fold in 0..<folds where parts.contains(fold) {
            if try shouldStop() { return nil }
            var rest = lesson
            rest.examples = zip(examples, parts).filter { $1 != fold }.map(\.0)
            let personalization = try PersonalizationTrainer(base, rest, configuration).run(shouldStop: shouldStop)
            after += try rightCount(personalization, zip(examples, parts).filter { $1 == fold }.map(\.0))
        }
        if try shouldStop() { return nil }
        let count = Double(examples.count)
        return PersonalizationSession.Accuracy(
            before: Double(try rightCount(lesson.before, examples)) / count, after: Double(after) / count)
    }
}

extension PersonalizationSession.Lesson {
    /// How many photos were shown of each label, and as not being of it, before this lesson and in it.
    var record: Personalization.Record {
        var record = before?.record ?? Personalization.Record(examples: [:])
        for example in examples {
            switch example.evidence {
            case .isLabel(let label): record.examples[label, default: 0] += 1
            case .isNot(let label): record.corrections[label, default: 0] += 1
            }
        }
        return record
    }
}

extension Personalization.Factors {
    /// A·B + A′·B′ as one product: [A A′] · [B; B′].
    fileprivate func beside(_ other: Self) -> Self {
        let rows = left.count / rank
        var joined: [Float] = []
        for row in 0..<rows {
            joined += left[(row * rank)..<((row + 1) * rank)]
            joined += other.left[(row * other.rank)..<((row + 1) * other.rank)]
        }
        return Self(parameter: parameter, left: joined, right: right + other.right, rank: rank + other.rank)
    }
}

extension ModelFile {
    /// The weights of the head, [channels, outputs]; empty if there is none.
    fileprivate var headWeight: [Float] {
        network.tunedPlace.flatMap { parameters["\(network.nodes[$0].name).weight"] } ?? []
    }
}

extension Personalization {
    /// The same with more added to the head: weights [channels, labels] and biases [labels].
    fileprivate func adding(weight: [Float], bias: [Float], to labels: [String], record: Record) -> Personalization {
        var changed = columns
        for (column, label) in labels.enumerated() {
            let added = stride(from: column, to: weight.count, by: labels.count).map { weight[$0] }
            let place = changed.firstIndex { $0.label == label }
            let own = place.map { changed[$0] }
            let sum = Column(
                label: label, weights: added.indices.map { added[$0] + (own?.weights[$0] ?? 0) },
                bias: (bias.isEmpty ? 0 : bias[column]) + (own?.bias ?? 0))
            if let place { changed[place] = sum } else { changed.append(sum) }
        }
        return Personalization(
            base: base, addedLabels: addedLabels, columns: changed, factors: factors, record: record)
    }

    /// The same with more factors; those of one layer stand side by side, and their ranks add up.
    fileprivate func adding(_ more: [Factors]) -> Personalization {
        var changed = factors
        for part in more {
            if let place = changed.firstIndex(where: { $0.parameter == part.parameter }) {
                changed[place] = changed[place].beside(part)
            } else {
                changed.append(part)
            }
        }
        return Personalization(
            base: base, addedLabels: addedLabels, columns: columns, factors: changed, record: record)
    }

    /// The same without what is about a label; nil if nothing is left.
    func without(_ label: String) -> Personalization? {
        let left = columns.filter { $0.label != label }
        if left.isEmpty && factors.isEmpty { return nil }
        var record = record
        record.examples[label] = nil
        record.corrections[label] = nil
        return Personalization(
            base: base, addedLabels: addedLabels.filter { $0 != label }, columns: left, factors: factors, record: record
        )
    }
}
