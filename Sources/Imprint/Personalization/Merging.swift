internal import ImprintCore
public import ImprintModel
internal import ImprintNetwork

/// The result of merging the personalizations of several users into one model.
public struct MergeResult: Sendable {
    /// The merged model.
    public let model: ModelFile
    /// The number of merged personalizations, one per user.
    public let userCount: Int
    /// The number of photos that the personalizations were trained on.
    public let exampleCount: Int
    /// The number of changes that were scaled down to `MergeOptions.clip`.
    public let clippedCount: Int
    /// The labels that users added and the merged model includes.
    public let addedLabels: [String]
    /// The labels that users added but the merged model omits, because their names could identify users; empty without noise.
    public let omittedLabels: [String]
    /// The privacy guarantee of the noise; nil without noise.
    public let privacy: Privacy?
    /// Whether the model omits the rehearsal features of its base, because the layers that compute them changed.
    public let omitsRehearsal: Bool
    /// Whether the model omits the novelty rule of its base, because the layers that compute the features changed.
    public let omitsNovelty: Bool

    /// A guarantee of (ε, δ)-differential privacy at the level of users.
    ///
    /// For any set of models, let p be the probability that the merged model is in the set, and q the same probability if the change by one
    /// of the users is replaced by no change (0). Then p ≤ e^ε q + δ and q ≤ e^ε p + δ. The number of users and the layers with low-rank
    /// adapters are public: they are the same in both cases.
    public struct Privacy: Hashable, Sendable {
        /// ε.
        public let epsilon: Double
        /// δ.
        public let delta: Double
        /// The standard deviation of the noise in each parameter.
        public let standardDeviation: Double
    }
}

extension ModelFile {
    /// Merges the personalizations of several users into a new model by federated averaging.
    ///
    /// The method follows McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017. Let Δᵢ be the
    /// change to the parameters by user i, with A·B for each low-rank adapter, and nᵢ the number of the user's photos, at least 1. A
    /// parameter w becomes w + Σ nᵢ Δᵢ / Σ nᵢ, where Δᵢ is 0 for users who do not change it. An added label gets the mean of its columns,
    /// weighted by the number of its photos, over the users who added it.
    ///
    /// `MergeOptions.clip` C scales each Δᵢ down to ‖Δᵢ‖ ≤ C. With `MergeOptions.noise` z, w becomes w + (Σ Δᵢ + noise) / N, where the noise
    /// has a standard deviation of z · C, and N is the number of users. All users have the same weight, because weights that depend on the
    /// private nᵢ would reveal them. Noise is added to each parameter of the head and of every layer for which a user has an adapter, and
    /// added labels are omitted. See docs/explanation/merging.md for the privacy guarantee.
    ///
    /// If a user has an adapter, the features change, so the merged model has no rehearsal features and no novelty rule.
    ///
    /// ```swift
    /// let merge = try base.merging(personalizations, options: MergeOptions(clip: 1, noise: 1))
    /// try merge.model.write(to: url)
    /// ```
    /// - Parameters:
    ///   - personalizations: One personalization per user, in any order. A copy is an error, but two different
    ///     personalizations of the same user cannot be detected.
    ///   - options: The clipping and noise options.
    /// - Returns: The merged model, with statistics.
    /// - Throws:
    ///   - `ModelFileError` if a personalization was made for another model, does not fit the model, or is a copy of another one.
    ///   - `ImprintError.invalidSetting` if there are no personalizations, or an option is out of range.
    ///   - `NetworkError.outOfMemory` if there is not enough memory.
    public func merging(
        _ personalizations: [Personalization], options: MergeOptions = MergeOptions()
    ) throws -> MergeResult {
        try options.check()
        guard head.isTrainable else { throw ImprintError.cannotTrainImportedDetector(network: network.name) }
        guard !personalizations.isEmpty else {
            throw ImprintError.invalidSetting(name: "personalizations", found: "none", expected: "at least one")
        }
        for personalization in personalizations { try check(personalization) }
        try checkDistinct(personalizations)
        let average = Average(self, personalizations, options)
        let proposed = personalizations.flatMap(\.addedLabels).withoutDuplicates
        let added = options.noise == nil ? proposed : []
        let channels = network.headChannels ?? 0
        // Widens the head; the parameters of added labels are set below.
        let placeholder = Personalization(
            baseDigest: try identity, addedLabels: added,
            columns: added.map {
                Personalization.Column(
                    label: $0, weights: [Float](repeating: 0, count: channels), bias: 0)
            },
            record: Personalization.Record(examples: [:]))
        let network = added.isEmpty ? network : try network.resizingHead(outputs: headLabels.count + added.count)
        let merged = try parameters(of: network, with: placeholder)
        average.apply(to: merged, outputs: headLabels.count + added.count)
        for (index, label) in added.enumerated() {
            set(label, at: headLabels.count + index, of: merged, personalizations)
        }
        let changesFeatures = personalizations.contains { !$0.adapters.isEmpty }
        let digest = try identity
        var model = with(
            merged, network: network, addedLabels: added, baseDigest: digest,
            rehearsal: changesFeatures ? nil : rehearsal, trainedModel: digest)
        // The rule was calibrated on the features of the base.
        if changesFeatures { model.noveltyRule = nil }
        return MergeResult(
            model: model,
            userCount: personalizations.count, exampleCount: personalizations.reduce(0) { $0 + $1.record.count },
            clippedCount: average.clippedCount, addedLabels: added, omittedLabels: added.isEmpty ? proposed : [],
            privacy: options.noise.map {
                MergeResult.Privacy(
                    epsilon: GaussianMechanism.epsilon(multiplier: $0, delta: options.delta), delta: options.delta,
                    standardDeviation: average.standardDeviation)
            },
            omitsRehearsal: changesFeatures && rehearsal != nil, omitsNovelty: changesFeatures && noveltyRule != nil)
    }

    /// Sets the column of an added label to the weighted mean of the users' columns.
    private func set(_ label: String, at output: Int, of merged: Parameters, _ personalizations: [Personalization]) {
        var total = 0.0
        var weights = [Double](repeating: 0, count: network.headChannels ?? 0)
        var bias = 0.0
        for personalization in personalizations where personalization.addedLabels.contains(label) {
            guard let column = personalization.columns.first(where: { $0.label == label }) else { continue }
            let share = Double(max(personalization.record.examples[label] ?? 0, 1))
            total += share
            for (row, value) in column.weights.enumerated() { weights[row] += share * Double(value) }
            bias += share * Double(column.bias)
        }
        let head = network.headIndex.map { network.nodes[$0].name } ?? ""
        for (name, column) in [("\(head).weight", weights), ("\(head).bias", [bias])] {
            guard let entry = merged.layout[name] else { continue }
            merged.withValues(of: entry) { values in
                let outputs = values.count / column.count
                for (row, value) in column.enumerated() { values[row * outputs + output] = Float(value / total) }
            }
        }
    }
}

/// The weighted average of the users' changes to the base's parameters.
private struct Average {
    /// The weighted sums of the changes, by the name of the parameter.
    private var sums: [String: [Double]] = [:]
    /// The sum of the weights.
    private var total = 0.0
    private(set) var clippedCount = 0
    /// The standard deviation of the noise in each parameter; 0 for no noise.
    private(set) var standardDeviation = 0.0
    private let head: String
    /// The number of outputs of the base's head.
    private let baseOutputs: Int
    private let options: MergeOptions

    init(_ base: ModelFile, _ personalizations: [Personalization], _ options: MergeOptions) {
        self.options = options
        head = base.network.headIndex.map { base.network.nodes[$0].name } ?? ""
        baseOutputs = base.headLabels.count
        let layout = base.parameters.layout
        let names = ["\(head).weight", "\(head).bias"] + personalizations.flatMap { $0.adapters.map(\.parameter) }
        for name in names {
            if let entry = layout[name] { sums[name] = [Double](repeating: 0, count: entry.parameter.count) }
        }
        // With noise, the weights do not depend on the users, so a user changes the sum by at most the clip, and the total is public.
        let weights = personalizations.map { options.noise == nil ? Double(max($0.record.count, 1)) : 1 }
        total = weights.reduce(0, +)
        if let noise = options.noise, let clip = options.clip { standardDeviation = noise * clip / total }
        for (personalization, weight) in zip(personalizations, weights) {
            let change = change(by: personalization, base)
            // Sorted by name, so that the sum is deterministic.
            let norm = change.keys.sorted().reduce(0.0) { $0 + (change[$1] ?? []).squareSum }.squareRoot()
            var share = weight
            if let clip = options.clip, norm > clip {
                share *= clip / norm
                clippedCount += 1
            }
            for (name, values) in change {
                for (index, value) in values.enumerated() { sums[name]?[index] += share * value }
            }
        }
    }

    /// Computes one user's change to the base's parameters.
    private func change(by personalization: Personalization, _ base: ModelFile) -> [String: [Double]] {
        var change: [String: [Double]] = [:]
        for adapter in personalization.adapters { change[adapter.parameter] = adapter.product.map(Double.init) }
        for (name, columnValues) in [
            ("\(head).weight", \Personalization.Column.weights), ("\(head).bias", \Personalization.Column.asBias),
        ] {
            guard let count = sums[name]?.count else { continue }
            var values = change[name] ?? [Double](repeating: 0, count: count)
            for column in personalization.columns {
                guard let output = base.headLabels.firstIndex(of: column.label) else { continue }
                for (row, value) in column[keyPath: columnValues].enumerated() {
                    values[row * baseOutputs + output] += Double(value)
                }
            }
            change[name] = values
        }
        return change
    }

    /// Adds the average and the noise to parameters whose head has at least the outputs of the base, in the same order.
    func apply(to parameters: Parameters, outputs: Int) {
        var generator = options.generator
        for entry in parameters.layout.entries {
            guard let sum = sums[entry.name] else { continue }
            let isHead = entry.node == head
            parameters.withValues(of: entry) { values in
                for (index, value) in sum.enumerated() {
                    let target = isHead ? index / baseOutputs * outputs + index % baseOutputs : index
                    let noise = standardDeviation > 0 ? standardDeviation * generator.gaussian() : 0
                    values[target] = Float(Double(values[target]) + value / total + noise)
                }
            }
        }
    }
}

extension Personalization.Column {
    fileprivate var asBias: [Float] { [bias] }
}

extension [Double] {
    fileprivate var squareSum: Double { reduce(0) { $0 + $1 * $1 } }
}

extension [String] {
    /// The elements without repetitions, in the order of their first occurrence.
    fileprivate var withoutDuplicates: [String] {
        var seen = Set<String>()
        return filter { seen.insert($0).inserted }
    }
}
