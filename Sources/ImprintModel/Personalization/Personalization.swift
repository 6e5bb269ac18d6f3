package import ImprintNetwork

/// What one person's photos add to a model: a change of its head, and where it was asked for of some layers before it.
///
/// It belongs to one base, which it names by digest and leaves as it is. It holds numbers for the network, names of labels and counts of
/// photos; no photo, no feature of one, no date and no path. All numbers are float16, so that a personalization that was saved and read
/// is the same as before.
///
/// ```swift
/// let mine = try Personalization(contentsOf: URL(filePath: "me.imprint"))
/// let classifier = try ImageClassifier(base).personalized(with: mine)
/// ```
public struct Personalization: Sendable, Equatable {
    /// The format that this version writes, and the newest that it reads.
    public static let formatVersion = 1

    /// What is added to the head's numbers of one label.
    public struct Column: Sendable, Hashable {
        /// The label: one of the base's, or an added one.
        public let label: String
        /// What is added to its weights, a number per channel of a feature; of an added label the weights themselves.
        public let weights: [Float]
        /// What is added to its bias; 0 where the head has none.
        public let bias: Float

        /// Makes a column; the numbers are rounded to float16.
        public init(label: String, weights: [Float], bias: Float) {
            self.label = label
            self.weights = roundedToFloat16(weights)
            self.bias = roundedToFloat16([bias])[0]
        }
    }

    /// A change of low rank of the weights of a convolution or dense layer: W + A·B (Hu et al., "LoRA: Low-rank adaptation of large
    /// language models", 2021).
    ///
    /// W is looked at as a matrix [rows, columns] with a column per output channel: for a convolution the rows are
    /// [kernel height, kernel width, input channels].
    public struct Factors: Sendable, Hashable {
        /// The weights that are changed, as in "conv4.weight".
        public let parameter: String
        /// A, [rows, rank].
        public let left: [Float]
        /// B, [rank, columns].
        public let right: [Float]
        /// The rank, ≥ 1.
        public let rank: Int

        /// Makes factors; the numbers are rounded to float16.
        public init(parameter: String, left: [Float], right: [Float], rank: Int) {
            precondition(
                rank >= 1 && left.count.isMultiple(of: rank) && right.count.isMultiple(of: rank),
                "\(left.count) and \(right.count) numbers are not factors of rank \(rank)")
            self.parameter = parameter
            self.left = roundedToFloat16(left)
            self.right = roundedToFloat16(right)
            self.rank = rank
        }

        /// The product A·B, [rows, columns].
        package var product: [Float] {
            let (rows, columns) = (left.count / rank, right.count / rank)
            var product = [Float](repeating: 0, count: rows * columns)
            for row in 0..<rows {
                for inner in 0..<rank {
                    let factor = left[row * rank + inner]
                    for column in 0..<columns {
                        product[row * columns + column] += factor * right[inner * columns + column]
                    }
                }
            }
            return product
        }
    }

    /// What a personalization was made of.
    public struct Record: Codable, Sendable, Hashable {
        /// How many photos of each label were shown.
        public var examples: [String: Int]
        /// How many photos were shown as not being of a label, by that label.
        public var corrections: [String: Int]

        /// Makes a record.
        public init(examples: [String: Int], corrections: [String: Int] = [:]) {
            self.examples = examples
            self.corrections = corrections
        }

        /// All photos.
        public var count: Int { examples.values.reduce(0, +) + corrections.values.reduce(0, +) }
    }

    /// The digest of the model file that it was made for.
    public let base: String
    /// The labels that it adds, in the order of the network's further outputs.
    public let addedLabels: [String]
    /// What is added to the head; every added label has a column.
    public let columns: [Column]
    /// What is added to layers before the head.
    public let factors: [Factors]
    /// What it was made of.
    public let record: Record
    /// The file that it was read from, for messages.
    let path: String?

    /// Puts a personalization together; parts that contradict each other are refused if it is saved or applied.
    public init(base: String, addedLabels: [String], columns: [Column], factors: [Factors] = [], record: Record) {
        self.init(
            base: base, addedLabels: addedLabels, columns: columns, factors: factors, record: record, path: nil)
    }

    init(
        base: String, addedLabels: [String], columns: [Column], factors: [Factors], record: Record, path: String?
    ) {
        self.base = base
        self.addedLabels = addedLabels
        self.columns = columns
        self.factors = factors
        self.record = record
        self.path = path
    }

    /// Whether both say the same, wherever they were read from.
    public static func == (left: Personalization, right: Personalization) -> Bool {
        left.base == right.base && left.addedLabels == right.addedLabels && left.columns == right.columns
            && left.factors == right.factors && left.record == right.record
    }

    /// Whether all numbers are finite, as they are unless they were too large for float16.
    public var isFinite: Bool {
        columns.allSatisfy { $0.bias.isFinite && $0.weights.allSatisfy(\.isFinite) }
            && factors.allSatisfy { ($0.left + $0.right).allSatisfy(\.isFinite) }
    }
}

// MARK: Applying

extension ModelFile {
    /// The digest of the tensors, of the file that this was read from or else of the one that would be written.
    /// - Throws: `SafetensorsError` if a parameter is beyond float16.
    public var identity: String { get throws { try digest ?? tensorDigest() } }

    /// The model with a personalization applied, as a whole of its own.
    ///
    /// `ImageClassifier.personalized(with:)` applies one without a copy.
    /// - Throws: `ModelFileError` if it was made for another model or does not fit, `NetworkError.outOfMemory`.
    public func personalized(with personalization: Personalization) throws -> ModelFile {
        try check(personalization)
        let labels = labels + personalization.addedLabels
        let network =
            personalization.addedLabels.isEmpty ? network : try network.replacingHead(outputs: labels.count)
        return ModelFile(
            network: network, parameters: try parameters(of: network, with: personalization), labels: labels,
            preprocessing: preprocessing, detector: detector, training: training, base: try identity,
            rehearsal: rehearsal, categories: categories, precision: precision)
    }

    /// The numbers of `part`, which is the network or its end, with those of the personalization.
    package func parameters(of part: Network, with personalization: Personalization) throws -> Parameters {
        let changed = try Parameters(ParameterLayout(part))
        changed.load(from: parameters)
        let outputs = headLabels + personalization.addedLabels
        let head = network.tunedPlace.map { network.nodes[$0].name } ?? ""
        let (weight, bias) = ("\(head).weight", "\(head).bias")
        if !personalization.addedLabels.isEmpty {
            for name in [weight, bias] where parameters[name] != nil {
                changed[name] = parameters[name].map { widened($0, to: outputs.count) }
            }
        }
        for column in personalization.columns {
            guard let place = outputs.firstIndex(of: column.label) else { continue }
            if let entry = changed.layout[weight] {
                changed.withValues(of: entry) { values in
                    for (row, change) in column.weights.enumerated() { values[row * outputs.count + place] += change }
                }
            }
            if let entry = changed.layout[bias] { changed.withValues(of: entry) { $0[place] += column.bias } }
        }
        for factors in personalization.factors {
            guard let entry = changed.layout[factors.parameter] else { continue }
            changed.withValues(of: entry) { values in
                for (place, change) in factors.product.enumerated() { values[place] += change }
            }
        }
        return changed
    }

    /// The rows of the head with zeros for further outputs.
    private func widened(_ values: [Float], to outputs: Int) -> [Float] {
        let own = headLabels.count
        var wide = [Float](repeating: 0, count: values.count / own * outputs)
        for (place, value) in values.enumerated() { wide[place / own * outputs + place % own] = value }
        return wide
    }

    /// The labels of the head's outputs, in order: all, or for a logo detector those of the logos.
    package var headLabels: [String] { detector.map { $0.marks.map(\.label) } ?? labels }

    /// Checks that no personalization is a copy of another one: that no two change the model in the same way.
    ///
    /// What the copies record about their photos does not matter. Two different saves of one person cannot be told from those of two.
    package func checkDistinct(_ personalizations: [Personalization]) throws {
        struct Change: Hashable {
            let addedLabels: [String]
            let columns: [Personalization.Column]
            let factors: [Personalization.Factors]
        }
        func name(_ position: Int) -> String { personalizations[position].path ?? "personalization \(position + 1)" }
        var first: [Change: Int] = [:]
        for (position, personalization) in personalizations.enumerated() {
            let change = Change(
                addedLabels: personalization.addedLabels, columns: personalization.columns,
                factors: personalization.factors)
            if let original = first.updateValue(position, forKey: change) {
                throw ModelFileError(path: name(position), problem: .copy(of: name(original)))
            }
        }
    }

    /// Checks that a personalization was made for this model.
    package func check(_ personalization: Personalization) throws {
        let path = personalization.path ?? "the personalization"
        let own = try identity
        guard personalization.base == own else {
            throw ModelFileError(path: path, problem: .otherBase(found: personalization.base, expected: own))
        }
        do {
            try personalization.checkWhole()
        } catch {
            throw ModelFileError(path: path, problem: error)
        }
        if let problem = problem(personalization) {
            throw ModelFileError(
                path: path, problem: .invalidMetadata(key: Personalization.formatKey, reason: problem))
        }
    }

    /// What does not fit; nil if all does.
    private func problem(_ personalization: Personalization) -> String? {
        guard let channels = network.headChannels else { return "the model has no head that could be tuned" }
        let added = personalization.addedLabels
        if let label = added.first(where: labels.contains) {
            return "it adds the label \(label.debugDescription), which is there"
        }
        if !head.acceptsNewLabels && !added.isEmpty { return "it adds labels to a logo detector" }
        let known = Set(headLabels + added)
        for column in personalization.columns {
            guard known.contains(column.label) else {
                return "a column for \(column.label.debugDescription), which is no label"
            }
            guard column.weights.count == channels else {
                return "a column of \(column.weights.count) weights for features of \(channels)"
            }
        }
        for factors in personalization.factors {
            let entry = parameters.layout[factors.parameter]
            // With labels added, the head has another shape than its factors.
            if let entry, entry.node == network.tunedPlace.map({ network.nodes[$0].name }) {
                return "factors for \(entry.name), which is the head; its changes are columns"
            }
            // A rank that a file makes up would overflow where sizes are multiplied with it.
            let shape = entry?.parameter.shape
            guard let shape, let columns = shape.last, shape.count > 1,
                factors.right.count / factors.rank == columns,
                factors.left.count / factors.rank == shape.reduce(1, *) / columns
            else { return "factors for \(factors.parameter), whose shape is \(shape.map { "\($0)" } ?? "unknown")" }
        }
        return nil
    }
}
