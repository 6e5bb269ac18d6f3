internal import ImprintCore
public import ImprintModel
internal import ImprintNetwork

/// What came of averaging the personalizations of several people.
public struct Merge: Sendable {
    /// The merged model.
    public let weights: ModelFile
    /// How many personalizations it was made of.
    public let users: Int
    /// How many photos these were made of.
    public let examples: Int
    /// How many changes were scaled down to the norm that they may have.
    public let clipped: Int
    /// The labels that the model has and its base has not.
    public let addedLabels: [String]
    /// The labels that were added by users and that the model has not, since their names would tell of these users.
    public let leftOutLabels: [String]
    /// What of the noise there is.
    public let privacy: Privacy?
    /// Whether features of the base's photos were left out, since the layers that compute them changed.
    public let leavesOutRehearsal: Bool

    /// What noise hides, as differential privacy at the level of users: with or without any one of them, any property of the model's numbers
    /// has probabilities p and q with p ≤ e^ε q + δ.
    public struct Privacy: Hashable, Sendable {
        /// ε.
        public let epsilon: Double
        /// δ.
        public let delta: Double
        /// The deviation of the noise in each number.
        public let deviation: Double
    }
}

extension ModelFile {
    /// This model with the mean of several people's changes of it: federated averaging (McMahan et al., "Communication-efficient learning of
    /// deep networks from decentralized data", 2017).
    ///
    /// With Δᵢ the change of user i, of factors of low rank their product, and nᵢ the user's photos, at least 1, w becomes w + Σ nᵢ Δᵢ / Σ nᵢ.
    /// Who has no change of a number counts with 0 there. A label that several users added gets the mean of their columns, weighted by their
    /// photos of it, over those who have it.
    ///
    /// With `MergeOptions.clip` C, Δᵢ is scaled down to ‖Δᵢ‖ ≤ C. With `MergeOptions.noise` z, w becomes w + (Σ wᵢ Δᵢ + noise of deviation
    /// z · C) / Σ wᵢ with wᵢ = min(nᵢ / n̂, 1) and n̂ the median of nᵢ (McMahan et al., "Learning differentially private recurrent language
    /// models", 2018), in each number of the head and of the weights that anyone has factors for; added labels are left out.
    /// docs/merging.md says what this promises.
    /// - Parameter personalizations: One of each user, in any order. Copies are refused; two different ones of the same user cannot be detected.
    /// - Throws: `ModelFileError` if one of them was made for another model, does not fit or is a copy of another one,
    ///   `ImprintError.invalidSetting` if there are none or a setting is out of range, `NetworkError.outOfMemory`.
    public func merging(_ personalizations: [Personalization], options: MergeOptions = MergeOptions()) throws -> Merge {
        try options.check()
        guard !personalizations.isEmpty else {
            throw ImprintError.invalidSetting(name: "personalizations", found: "none", expected: "one at least")
        }
        for personalization in personalizations { try check(personalization) }
        try checkDistinct(personalizations)
        let average = Average(self, personalizations, options)
        let all = personalizations.flatMap(\.addedLabels).firstOfEach
        let added = options.noise == nil ? all : []
        let channels = network.headChannels ?? 0
        // Their numbers are set below; this one makes room for them.
        let room = Personalization(
            base: try identity, addedLabels: added,
            columns: added.map {
                Personalization.Column(
                    label: $0, weights: [Float](repeating: 0, count: channels), bias: 0)
            },
            record: Personalization.Record(examples: [:]))
        let network = added.isEmpty ? network : try network.replacingHead(outputs: labels.count + added.count)
        let merged = try parameters(of: network, with: room)
        average.apply(to: merged, outputs: headLabels.count + added.count)
        for (place, label) in added.enumerated() {
            set(label, at: headLabels.count + place, of: merged, personalizations)
        }
        let head = network.tunedPlace.map { network.nodes[$0].name }
        let isDeep = personalizations.contains { $0.factors.contains { $0.parameter != "\(head ?? "").weight" } }
        return Merge(
            weights: ModelFile(
                network: network, parameters: merged, labels: labels + added, preprocessing: preprocessing,
                detector: detector, training: training, base: try identity, rehearsal: isDeep ? nil : rehearsal,
                categories: categories, precision: precision),
            users: personalizations.count, examples: personalizations.reduce(0) { $0 + $1.record.count },
            clipped: average.clipped, addedLabels: added, leftOutLabels: added.isEmpty ? all : [],
            privacy: options.noise.map {
                Merge.Privacy(
                    epsilon: GaussianMechanism.epsilon(multiplier: $0, delta: options.delta), delta: options.delta,
                    deviation: average.deviation)
            },
            leavesOutRehearsal: isDeep && rehearsal != nil)
    }

    /// Sets the column of an added label.
    private func set(_ label: String, at place: Int, of merged: Parameters, _ personalizations: [Personalization]) {
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
        let head = network.tunedPlace.map { network.nodes[$0].name } ?? ""
        for (name, column) in [("\(head).weight", weights), ("\(head).bias", [bias])] {
            guard let entry = merged.layout[name] else { continue }
            merged.withValues(of: entry) { values in
                let outputs = values.count / column.count
                for (row, value) in column.enumerated() { values[row * outputs + place] = Float(value / total) }
            }
        }
    }
}

/// The weighted sum of the changes of what the base has.
private struct Average {
    /// By the name of the parameter, as the base has it.
    private var sums: [String: [Double]] = [:]
    /// What the sums are divided by.
    private var total = 0.0
    private(set) var clipped = 0
    /// The deviation of the noise in each number; 0 for none.
    private(set) var deviation = 0.0
    private let head: String
    private let ownOutputs: Int
    private let options: MergeOptions

    init(_ base: ModelFile, _ personalizations: [Personalization], _ options: MergeOptions) {
        self.options = options
        head = base.network.tunedPlace.map { base.network.nodes[$0].name } ?? ""
        ownOutputs = base.headLabels.count
        let layout = base.parameters.layout
        let names = ["\(head).weight", "\(head).bias"] + personalizations.flatMap { $0.factors.map(\.parameter) }
        for name in names {
            if let entry = layout[name] { sums[name] = [Double](repeating: 0, count: entry.parameter.count) }
        }
        let counts = personalizations.map { Double(max($0.record.count, 1)) }
        let weights = options.noise == nil ? counts : counts.map { min($0 / counts.median, 1) }
        total = weights.reduce(0, +)
        if let noise = options.noise, let clip = options.clip { deviation = noise * clip / total }
        for (personalization, weight) in zip(personalizations, weights) {
            let change = change(by: personalization, base)
            // In the order of the names, so that the same people give the same bits.
            let norm = change.keys.sorted().reduce(0.0) { $0 + (change[$1] ?? []).squareSum }.squareRoot()
            var share = weight
            if let clip = options.clip, norm > clip {
                share *= clip / norm
                clipped += 1
            }
            for (name, values) in change {
                for (place, value) in values.enumerated() { sums[name]?[place] += share * value }
            }
        }
    }

    /// One person's change of what the base has, by parameter.
    private func change(by personalization: Personalization, _ base: ModelFile) -> [String: [Double]] {
        var change: [String: [Double]] = [:]
        for factors in personalization.factors { change[factors.parameter] = factors.product.map(Double.init) }
        for (name, column) in [
            ("\(head).weight", \Personalization.Column.weights), ("\(head).bias", \Personalization.Column.asBias),
        ] {
            guard let count = sums[name]?.count else { continue }
            var values = change[name] ?? [Double](repeating: 0, count: count)
            for own in personalization.columns {
                guard let place = base.headLabels.firstIndex(of: own.label) else { continue }
                for (row, value) in own[keyPath: column].enumerated() {
                    values[row * ownOutputs + place] += Double(value)
                }
            }
            change[name] = values
        }
        return change
    }

    /// Adds the mean and the noise to parameters whose head has at least the base's outputs, its own first.
    func apply(to parameters: Parameters, outputs: Int) {
        var generator = options.generator
        for entry in parameters.layout.entries {
            guard let sum = sums[entry.name] else { continue }
            let isHead = entry.node == head
            parameters.withValues(of: entry) { values in
                for (place, value) in sum.enumerated() {
                    let target = isHead ? place / ownOutputs * outputs + place % ownOutputs : place
                    let noise = deviation > 0 ? deviation * generator.gaussian() : 0
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

    /// The middle one in order, or the mean of the two that are.
    fileprivate var median: Double {
        let ordered = sorted()
        return (ordered[(count - 1) / 2] + ordered[count / 2]) / 2
    }
}

extension [String] {
    /// Each but once, if it is first.
    fileprivate var firstOfEach: [String] {
        var seen = Set<String>()
        return filter { seen.insert($0).inserted }
    }
}
