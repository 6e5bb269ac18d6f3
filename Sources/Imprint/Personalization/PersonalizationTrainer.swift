internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

/// Trains a personalization from the training data of a session.
struct PersonalizationTrainer {
    private let base: ImageClassifier
    private let data: PersonalizationSession.TrainingData
    private let configuration: PersonalizationConfiguration
    private let model: ModelFile
    /// The labels of the head's outputs, in order: the labels of the base model, the labels that the initial personalization added, then new ones.
    private let outputs: [String]
    private let newLabels: [String]

    init(
        _ base: ImageClassifier, _ data: PersonalizationSession.TrainingData,
        _ configuration: PersonalizationConfiguration
    ) throws {
        self.base = base
        self.data = data
        self.configuration = configuration
        model = base.model
        newLabels = try Self.newLabels(of: data.examples.map(\.supervision), base, data.initial)
        outputs = model.headLabels + (data.initial?.addedLabels ?? []) + newLabels
    }

    /// Returns the labels that photos add to a model, in the order of the first photo of each.
    /// - Parameters:
    ///   - supervision: The supervision of all photos and corrections.
    ///   - base: The model.
    ///   - initial: The personalization of the model; nil for none.
    /// - Throws: `ImprintError.unknownLabel` if neither the model nor a photo has the label of a correction, `ImprintError.cannotAddLabel` if
    ///   photos cannot add labels to the model.
    static func newLabels(
        of supervision: [Supervision], _ base: ImageClassifier, _ initial: Personalization?
    ) throws(ImprintError) -> [String] {
        let known = base.model.labels + (initial?.addedLabels ?? [])
        // A correction may precede the first photo of its label.
        let new = supervision.positiveLabels.filter { !known.contains($0) }
        let all = Set(known + new)
        if let unknown = supervision.first(where: { !all.contains($0.label) }) {
            throw .unknownLabel(unknown.label, known: known)
        }
        if let label = new.first, !base.learnsNewLabels { throw .cannotAddLabel(label, known: known) }
        return new
    }

    /// Trains a personalization.
    /// - Returns: The personalization; the initial one, if any, if there are no examples.
    /// - Throws: `ImprintError.personalizationDiverged` if a parameter is not finite at the end, or is beyond the range of float16.
    func run(
        shouldStop: () throws -> Bool, onStep: ((PersonalizationProgress.Step) -> Void)? = nil
    ) throws -> Personalization? {
        guard !data.examples.isEmpty else { return data.initial }
        let start = try start()
        let personalization: Personalization
        do {
            personalization =
                configuration.blocks == 0
                ? try trainHead(start, shouldStop, onStep) : try trainBlocks(start, shouldStop, onStep)
        } catch is TrainingDivergedError {
            throw ImprintError.personalizationDiverged
        }
        guard personalization.isFinite else { throw ImprintError.personalizationDiverged }
        return personalization
    }

    private func trainHead(
        _ start: Personalization, _ shouldStop: () throws -> Bool, _ onStep: ((PersonalizationProgress.Step) -> Void)?
    ) throws -> Personalization {
        let trained = trainedOutputs
        let change = try HeadObjective(
            try head(start), samples, rehearsal: rehearsal(start), trained: trained, newCount: newLabels.count,
            penalty: configuration.penalty
        ).run(shouldStop: shouldStop, onStep: onStep)
        return start.adding(
            weight: change.weight, bias: change.bias, to: trained.map { outputs[$0] }, record: data.record)
    }

    private func trainBlocks(
        _ start: Personalization, _ shouldStop: () throws -> Bool, _ onStep: ((PersonalizationProgress.Step) -> Void)?
    ) throws -> Personalization {
        let tail = try tail(blocks: configuration.blocks, outputs: outputs.count)
        let change = try AdapterObjective(
            tail, parameters: model.parameters(of: tail, with: start), rank: configuration.rank, samples: samples,
            rehearsal: rehearsal(start), newCount: newLabels.count
        ).run(shouldStop: shouldStop, onStep: onStep)
        return start.adding(weight: change.weight, bias: change.bias, to: outputs, record: data.record)
            .adding(change.adapters)
    }

    /// Returns the tail of the network: the last blocks and the head, with the given number of outputs and without a softmax.
    private func tail(blocks: Int, outputs: Int) throws -> Network {
        let tail = try base.model.split(blocks: blocks).tail.logits()
        return outputs == model.headLabels.count ? tail : try tail.resizingHead(outputs: outputs)
    }

    /// The outputs whose columns change: the outputs of the examples' labels, or all outputs if an example shows none of the detector's logos.
    private var trainedOutputs: [Int] {
        let labels = Set(data.examples.map(\.supervision.label))
        if !labels.isSubset(of: outputs) { return Array(outputs.indices) }
        return outputs.indices.filter { labels.contains(outputs[$0]) }
    }

    /// Returns the initial personalization with the initial columns of new labels.
    private func start() throws -> Personalization {
        let initial = data.initial
        return try Personalization(
            baseDigest: model.identity, addedLabels: (initial?.addedLabels ?? []) + newLabels,
            columns: (initial?.columns ?? []) + imprintedColumns(), adapters: initial?.adapters ?? [],
            record: data.record)
    }

    /// Returns the head with the initial personalization.
    private func head(_ start: Personalization) throws -> HeadParameters {
        let head = try tail(blocks: 0, outputs: outputs.count)
        let parameters = try model.parameters(of: head, with: start)
        let name = head.nodes[0].name
        let scaling = model.head.plattScaling(outputs: outputs.count)
        let bias = parameters["\(name).bias"]
        return HeadParameters(
            weight: parameters["\(name).weight"] ?? [], bias: bias ?? outputs.map { _ in 0 }, hasBias: bias != nil,
            slopes: scaling.slopes, offsets: scaling.offsets, hasNone: model.head.hasLabelWithoutOutput)
    }

    /// Returns the initial columns of new labels by weight imprinting (Qi et al., "Low-shot learning with imprinted weights", 2018).
    ///
    /// A column is the mean feature of the label's photos minus the mean rehearsal feature, which all photos have in common. It is scaled
    /// to the mean norm of the base model's columns. The bias puts the decision boundary half-way between the two means.
    private func imprintedColumns() throws -> [Personalization.Column] {
        guard !newLabels.isEmpty else { return [] }
        func norm(_ values: [Float]) -> Float { values.reduce(0) { $0 + $1 * $1 }.squareRoot() }
        func mean(_ rows: [[Float]]) -> [Float] {
            guard var sum = rows.first else { return [] }
            for row in rows.dropFirst() { for (channel, value) in row.enumerated() { sum[channel] += value } }
            return sum.map { $0 / Float(rows.count) }
        }
        let features = try featuresOfHead()
        let baseOutputs = model.headLabels.count
        let baseWeight = base.model.headWeight
        let channels = baseWeight.count / baseOutputs
        let meanNorm = (0..<baseOutputs).reduce(Float(0)) { sum, output in
            sum + norm((0..<channels).map { baseWeight[$0 * baseOutputs + output] }) / Float(baseOutputs)
        }
        let common =
            model.rehearsal.map { rehearsal in
                mean(
                    (0..<rehearsal.labels.count).map {
                        Array(rehearsal.features[($0 * channels)..<(($0 + 1) * channels)])
                    })
            } ?? (0..<channels).map { _ in 0 }
        return newLabels.map { label in
            let ofLabel = zip(data.examples, features).filter { $0.0.supervision == .isLabel(label) }
            let center = mean(ofLabel.flatMap(\.1))
            let difference = zip(center, common).map { $0 - $1 }
            let scale = meanNorm / max(norm(difference), 1e-12)
            let bias = zip(difference, zip(center, common)).reduce(0) { $0 - scale * $1.0 * ($1.1.0 + $1.1.1) / 2 }
            return Personalization.Column(
                label: label, weights: difference.map { $0 * scale }, bias: hasBias ? bias : 0)
        }
    }

    /// Whether the head has biases.
    private var hasBias: Bool {
        model.network.headIndex.map { model.parameters["\(model.network.nodes[$0].name).bias"] != nil } ?? false
    }

    /// Computes the inputs of the head for each view of each example.
    private func featuresOfHead() throws -> [[[Float]]] {
        let tail = try tail(blocks: configuration.blocks, outputs: model.headLabels.count)
        guard configuration.blocks > 0, let blocks = try tail.splitAtHead()?.features else {
            return data.examples.map(\.views)
        }
        let parameters = try Parameters(ParameterLayout(blocks))
        parameters.load(from: try data.initial.map(model.personalized)?.parameters ?? model.parameters)
        let pool = try ExecutionPlanPool(blocks, parameters: parameters, workers: Workers(1))
        return data.examples.map { $0.views.map(pool.callAsFunction) }
    }

    /// The samples of the user's examples, one per view; their weights sum to 1.
    private var samples: [PersonalizationSample] {
        let share = 1 / Float(data.examples.count)
        return data.examples.flatMap { example in
            let label = outputs.firstIndex(of: example.supervision.label) ?? outputs.count
            let target: PersonalizationSample.Target = example.supervision.isPositive ? .label(label) : .not(label)
            return example.views.map { view in
                PersonalizationSample(features: view, target: target, weight: share / Float(example.views.count))
            }
        }
    }

    /// Returns the rehearsal samples of the base model, and pseudo-rehearsal samples of labels that the initial personalization added.
    private func rehearsal(_ start: Personalization) throws -> [PersonalizationSample] {
        guard let rehearsal = model.rehearsal, configuration.rehearsalWeight > 0 else { return [] }
        let count = rehearsal.labels.count
        let length = rehearsal.positions * rehearsal.channels
        let positions = base.runtime.positions
        let features = (0..<count).map { photo in
            var features = Array(
                rehearsal.features[(photo * length)..<((photo + 1) * length)].prefix(positions * rehearsal.channels))
            // A model file may contain fewer positions per photo: repeat the last one.
            while features.count < positions * rehearsal.channels { features += features.suffix(rehearsal.channels) }
            return features
        }
        let samples = features.map {
            PersonalizationSample(
                features: $0, target: .distilled, weight: configuration.rehearsalWeight / Float(count))
        }
        let earlier = data.initial?.addedLabels ?? []
        guard !earlier.isEmpty else { return samples }
        let known = outputs.count - newLabels.count
        let pseudoRehearsal = PseudoRehearsal(try head(start), known: known, features: features)
        return samples
            + ((known - earlier.count)..<known).flatMap {
                pseudoRehearsal.samples(of: $0, weight: configuration.rehearsalWeight / Float(known))
            }
    }
}

extension PersonalizationTrainer {
    /// Measures accuracy by cross-validation; see `PersonalizationSession.crossValidated(folds:)`.
    static func crossValidated(
        _ base: ImageClassifier, _ data: PersonalizationSession.TrainingData,
        _ configuration: PersonalizationConfiguration, folds: Int, shouldStop: () throws -> Bool
    ) throws -> PersonalizationSession.Accuracy? {
        let examples = data.examples
        guard examples.count >= 2 * folds else { return nil }
        func correctCount(_ personalization: Personalization?, _ examples: [Example]) throws -> Int {
            let confidences = try base.runtime.confidences(blocks: configuration.blocks, with: personalization)
            let labels = base.labels + (personalization?.addedLabels ?? [])
            return examples.count { example in
                let scores = confidences(example.views[0])
                let best = labels.indices.max { scores[$0] < scores[$1] }.map { labels[$0] }
                return (best == example.supervision.label) == example.supervision.isPositive
            }
        }
        // Folds are assigned round-robin within each label, because examples may be interleaved by label.
        var seen: [Supervision: Int] = [:]
        let foldOfExample = examples.map { example in
            defer { seen[example.supervision, default: 0] += 1 }
            return seen[example.supervision, default: 0] % folds
        }
        // Without its only photo, a label could not be trained.
        guard seen.allSatisfy({ !$0.key.isPositive || $0.value > 1 }) else { return nil }
        var after = 0
        for fold in 0..<folds where foldOfExample.contains(fold) {
            if try shouldStop() { return nil }
            var rest = data
            rest.examples = zip(examples, foldOfExample).filter { $1 != fold }.map(\.0)
            let personalization = try PersonalizationTrainer(base, rest, configuration).run(shouldStop: shouldStop)
            after += try correctCount(personalization, zip(examples, foldOfExample).filter { $1 == fold }.map(\.0))
        }
        if try shouldStop() { return nil }
        let count = Double(examples.count)
        return PersonalizationSession.Accuracy(
            before: Double(try correctCount(data.initial, examples)) / count, after: Double(after) / count)
    }
}

extension PersonalizationSession.TrainingData {
    /// The record of the initial personalization, with the number of examples and corrections of each label added.
    var record: Personalization.Record {
        var record = initial?.record ?? Personalization.Record(examples: [:])
        for example in examples {
            switch example.supervision {
            case .isLabel(let label): record.examples[label, default: 0] += 1
            case .isNot(let label): record.corrections[label, default: 0] += 1
            }
        }
        return record
    }
}

extension Personalization.LowRankAdapter {
    /// Returns an adapter with the sum A·B + A′·B′: [A A′] · [B; B′].
    fileprivate func concatenated(with other: Self) -> Self {
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
    /// The weights of the head, [channels, outputs]; empty if there is no head.
    fileprivate var headWeight: [Float] {
        network.headIndex.flatMap { parameters["\(network.nodes[$0].name).weight"] } ?? []
    }
}

extension Personalization {
    /// Returns a copy with a further change to the head: weights [channels, labels] and biases [labels].
    fileprivate func adding(weight: [Float], bias: [Float], to labels: [String], record: Record) -> Personalization {
        var changed = columns
        for (column, label) in labels.enumerated() {
            let added = stride(from: column, to: weight.count, by: labels.count).map { weight[$0] }
            let index = changed.firstIndex { $0.label == label }
            let current = index.map { changed[$0] }
            let sum = Column(
                label: label, weights: added.indices.map { added[$0] + (current?.weights[$0] ?? 0) },
                bias: (bias.isEmpty ? 0 : bias[column]) + (current?.bias ?? 0))
            if let index { changed[index] = sum } else { changed.append(sum) }
        }
        return Personalization(
            baseDigest: baseDigest, addedLabels: addedLabels, columns: changed, adapters: adapters, record: record)
    }

    /// Returns a copy with further adapters; adapters of the same layer are concatenated, so their ranks add up.
    fileprivate func adding(_ more: [LowRankAdapter]) -> Personalization {
        var changed = adapters
        for adapter in more {
            if let index = changed.firstIndex(where: { $0.parameter == adapter.parameter }) {
                changed[index] = changed[index].concatenated(with: adapter)
            } else {
                changed.append(adapter)
            }
        }
        return Personalization(
            baseDigest: baseDigest, addedLabels: addedLabels, columns: columns, adapters: changed, record: record)
    }

    /// Returns a copy without the column and the record of a label; nil if no change remains.
    func without(_ label: String) -> Personalization? {
        let remaining = columns.filter { $0.label != label }
        if remaining.isEmpty && adapters.isEmpty { return nil }
        var record = record
        record.examples[label] = nil
        record.corrections[label] = nil
        return Personalization(
            baseDigest: baseDigest, addedLabels: addedLabels.filter { $0 != label }, columns: remaining,
            adapters: adapters,
            record: record)
    }
}
