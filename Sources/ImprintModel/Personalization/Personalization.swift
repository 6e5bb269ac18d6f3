package import ImprintNetwork

/// The changes that a user's photos make to a model: a delta of its head and, optionally, low-rank adapters of layers before the head.
///
/// A personalization belongs to one base model, identified by its digest, and does not modify that model. It contains parameters, label
/// names and photo counts, but no photos, features, dates or paths. All values are float16, so a personalization that was saved and read is
/// equal to the original.
///
/// ```swift
/// let mine = try Personalization(contentsOf: URL(filePath: "me.imprint"))
/// let classifier = try ImageClassifier(base).personalized(with: mine)
/// ```
public struct Personalization: Sendable, Equatable {
    /// The format that this version of Imprint writes, and the newest that it reads.
    public static let formatVersion = 1

    /// The change to the head's parameters for one label.
    package struct Column: Sendable, Hashable {
        /// The label: a label of the base model, or an added one.
        package let label: String
        /// The change to the label's weights, one value per feature channel; for an added label, the weights themselves.
        package let weights: [Float]
        /// The change to the label's bias; 0 if the head has no biases.
        package let bias: Float

        /// Creates a column and rounds its values to float16.
        package init(label: String, weights: [Float], bias: Float) {
            self.label = label
            self.weights = roundedToFloat16(weights)
            self.bias = roundedToFloat16([bias])[0]
        }
    }

    /// A low-rank adapter (LoRA) of the weights W of a convolution or dense layer: W + A·B.
    ///
    /// W is a matrix [rows, columns] with one column per output channel; the rows of a convolution are [kernel height, kernel width, input
    /// channels]. Source: Hu et al., "LoRA: Low-rank adaptation of large language models", 2021.
    package struct LowRankAdapter: Sendable, Hashable {
        /// The name of the adapted weights, such as "conv4.weight".
        package let parameter: String
        /// A, [rows, rank].
        package let left: [Float]
        /// B, [rank, columns].
        package let right: [Float]
        /// The rank, ≥ 1.
        package let rank: Int

        /// Creates an adapter and rounds its values to float16.
        package init(parameter: String, left: [Float], right: [Float], rank: Int) {
            precondition(
                rank >= 1 && left.count.isMultiple(of: rank) && right.count.isMultiple(of: rank),
                "\(left.count) and \(right.count) values are not an adapter of rank \(rank)")
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

    /// The numbers of photos that a personalization was trained on.
    public struct Record: Codable, Sendable, Hashable {
        /// The number of example photos of each label.
        public var examples: [String: Int]
        /// The number of photos that do not show a label, by that label.
        public var corrections: [String: Int]

        /// Creates a record.
        public init(examples: [String: Int], corrections: [String: Int] = [:]) {
            self.examples = examples
            self.corrections = corrections
        }

        /// The total number of photos.
        public var count: Int { examples.values.reduce(0, +) + corrections.values.reduce(0, +) }
    }

    /// The digest of the base model.
    public let baseDigest: String
    /// The added labels, in the order of the additional network outputs.
    public let addedLabels: [String]
    /// The changes to the head; every added label has a column.
    package let columns: [Column]
    /// The low-rank adapters of layers before the head.
    package let adapters: [LowRankAdapter]
    /// The numbers of photos.
    public let record: Record
    /// The path of the file that it was read from, for error messages.
    let path: String?

    /// Creates a personalization from its parts, which are validated when it is saved or applied.
    package init(
        baseDigest: String, addedLabels: [String], columns: [Column], adapters: [LowRankAdapter] = [], record: Record
    ) {
        self.init(
            baseDigest: baseDigest, addedLabels: addedLabels, columns: columns, adapters: adapters, record: record,
            path: nil)
    }

    init(
        baseDigest: String, addedLabels: [String], columns: [Column], adapters: [LowRankAdapter], record: Record,
        path: String?
    ) {
        self.baseDigest = baseDigest
        self.addedLabels = addedLabels
        self.columns = columns
        self.adapters = adapters
        self.record = record
        self.path = path
    }

    /// Whether two personalizations have the same content; their files do not matter.
    public static func == (left: Personalization, right: Personalization) -> Bool {
        left.baseDigest == right.baseDigest && left.addedLabels == right.addedLabels && left.columns == right.columns
            && left.adapters == right.adapters && left.record == right.record
    }

    /// Whether all values are finite; values beyond the range of float16 are not.
    public var isFinite: Bool {
        columns.allSatisfy { $0.bias.isFinite && $0.weights.allSatisfy(\.isFinite) }
            && adapters.allSatisfy { ($0.left + $0.right).allSatisfy(\.isFinite) }
    }
}

// MARK: Applying

extension ModelFile {
    /// Returns a new model with a personalization applied.
    ///
    /// `ImageClassifier.personalized(with:)` applies a personalization without copying the model. If the model is quantized, the layers that the
    /// personalization changes compute in float32. If the personalization changes layers before the head, the new model has neither replay
    /// features nor a novelty rule.
    /// - Throws: `ModelFileError` if the personalization was made for another model or does not fit, `NetworkError.outOfMemory`.
    public func personalized(with personalization: Personalization) throws -> ModelFile {
        try check(personalization)
        let outputs = headLabels.count + personalization.addedLabels.count
        let network = personalization.addedLabels.isEmpty ? network : try network.resizingHead(outputs: outputs)
        return try with(personalization, network, try parameters(of: network, with: personalization))
    }

    /// Returns a detector with a personalization applied, for predictions only: a separate layer computes the heat maps of added logos.
    ///
    /// The heat maps of the other logos and the boxes are bitwise equal to those without the added logos. In the model of
    /// `personalized(with:)`, one matrix product computes all heat maps, and the width of a product may change the last bits of its columns.
    /// - Throws: The errors of `personalized(with:)`.
    package func predictor(with personalization: Personalization) throws -> ModelFile {
        try check(personalization)
        let added = personalization.addedLabels
        guard !added.isEmpty, let (network, name) = try network.addingHeatMaps(added.count) else {
            return try personalized(with: personalization)
        }
        var columnsByLabel = Dictionary(personalization.columns.map { ($0.label, $0) }) { first, _ in first }
        let columns = added.compactMap { columnsByLabel.removeValue(forKey: $0) }
        let others = Personalization(
            baseDigest: personalization.baseDigest, addedLabels: [],
            columns: personalization.columns.filter { columnsByLabel[$0.label] != nil },
            adapters: personalization.adapters, record: personalization.record)
        let parameters = try parameters(of: network, with: others)
        parameters["\(name).weight"] = (0..<(columns.first?.weights.count ?? 0)).flatMap { row in
            columns.map { $0.weights[row] }
        }
        parameters["\(name).bias"] = columns.map(\.bias)
        return try with(personalization, network, parameters)
    }

    /// Returns the model with a personalization, whose network and parameters are already changed.
    private func with(
        _ personalization: Personalization, _ network: Network, _ parameters: Parameters
    ) throws -> ModelFile {
        let adapted = personalization.adapters.compactMap { self.parameters.layout[$0.parameter]?.node }
        parameters.quantization = self.parameters.quantization?.removing(Set(adapted), in: self.network)
        // Adapters change the features that are replayed, and that the novelty rule was calibrated on.
        let keepsFeatures = personalization.adapters.isEmpty
        let digest = try identity
        var model = with(
            parameters, network: network, addedLabels: personalization.addedLabels, baseDigest: digest,
            rehearsal: keepsFeatures ? rehearsal : nil, trainedModel: digest)
        if !keepsFeatures { model.noveltyRule = nil }
        return model
    }

    /// Returns the parameters of `part`, which is the network or its end, with a personalization applied.
    package func parameters(of part: Network, with personalization: Personalization) throws -> Parameters {
        let changed = try Parameters(ParameterLayout(part))
        changed.load(from: parameters)
        let outputs = headLabels + personalization.addedLabels
        let head = network.headIndex.map { network.nodes[$0].name } ?? ""
        let (weight, bias) = ("\(head).weight", "\(head).bias")
        if !personalization.addedLabels.isEmpty {
            for name in [weight, bias] where parameters[name] != nil {
                changed[name] = parameters[name].map { padded($0, to: outputs.count) }
            }
        }
        // A search for each label would take quadratic time with a file of many labels.
        let indices = Dictionary(outputs.enumerated().map { ($1, $0) }) { first, _ in first }
        for column in personalization.columns {
            guard let output = indices[column.label] else { continue }
            if let entry = changed.layout[weight] {
                changed.withValues(of: entry) { values in
                    for (row, change) in column.weights.enumerated() { values[row * outputs.count + output] += change }
                }
            }
            if let entry = changed.layout[bias] { changed.withValues(of: entry) { $0[output] += column.bias } }
        }
        for adapter in personalization.adapters {
            guard let entry = changed.layout[adapter.parameter] else { continue }
            changed.withValues(of: entry) { values in
                for (index, change) in adapter.product.enumerated() { values[index] += change }
            }
        }
        return changed
    }

    /// Returns parameters of the head with zeros for additional outputs.
    private func padded(_ values: [Float], to outputs: Int) -> [Float] {
        let count = headLabels.count
        var padded = [Float](repeating: 0, count: values.count / count * outputs)
        for (index, value) in values.enumerated() { padded[index / count * outputs + index % count] = value }
        return padded
    }

    /// The labels of the head's outputs, in order: all labels or, for a logo detector, the labels of its logos.
    package var headLabels: [String] { head.outputLabels(labels) }

    /// Checks that no two personalizations make the same change.
    ///
    /// The check ignores photo counts. It cannot detect two different personalizations of one user.
    package func checkDistinct(_ personalizations: [Personalization]) throws {
        struct Change: Hashable {
            let addedLabels: [String]
            let columns: [Personalization.Column]
            let adapters: [Personalization.LowRankAdapter]
        }
        func name(_ position: Int) -> String { personalizations[position].path ?? "personalization \(position + 1)" }
        var first: [Change: Int] = [:]
        for (position, personalization) in personalizations.enumerated() {
            let change = Change(
                addedLabels: personalization.addedLabels, columns: personalization.columns,
                adapters: personalization.adapters)
            if let original = first.updateValue(position, forKey: change) {
                throw ModelFileError(path: name(position), problem: .copy(of: name(original)))
            }
        }
    }

    /// Checks that a personalization was made for this model.
    package func check(_ personalization: Personalization) throws {
        let path = personalization.path ?? "the personalization"
        let expected = try identity
        guard personalization.baseDigest == expected else {
            throw ModelFileError(path: path, problem: .otherBase(found: personalization.baseDigest, expected: expected))
        }
        do {
            try personalization.checkConsistency()
        } catch {
            throw ModelFileError(path: path, problem: error)
        }
        if let problem = problem(personalization) {
            throw ModelFileError(
                path: path, problem: .invalidMetadata(key: Personalization.formatKey, reason: problem))
        }
    }

    /// Returns the first mismatch between the model and a personalization; nil if they fit.
    private func problem(_ personalization: Personalization) -> String? {
        guard let channels = network.headChannels else { return "the model has no head to personalize" }
        if let problem = head.problem(headOf: network, labels: labels) { return "the model has \(problem)" }
        let added = personalization.addedLabels
        if let label = added.first(where: Set(labels).contains) {
            return "it adds the label \(label.debugDescription), which the model already has"
        }
        let known = Set(headLabels + added)
        for column in personalization.columns {
            guard known.contains(column.label) else {
                return "a column for \(column.label.debugDescription), which is not a label of the model"
            }
            guard column.weights.count == channels else {
                return "a column of \(column.weights.count) weights for features of \(channels) channels"
            }
        }
        for adapter in personalization.adapters {
            let entry = parameters.layout[adapter.parameter]
            // Added labels change the shape of the head.
            if let entry, entry.node == network.headIndex.map({ network.nodes[$0].name }) {
                return "an adapter of \(entry.name), which is the head and is changed by columns"
            }
            // Division, because a multiplication by the rank of a hostile file may overflow.
            let shape = entry?.parameter.shape
            guard let shape, let columns = shape.last, shape.count > 1,
                adapter.right.count / adapter.rank == columns,
                adapter.left.count / adapter.rank == shape.reduce(1, *) / columns
            else { return "an adapter of \(adapter.parameter), whose shape is \(shape.map { "\($0)" } ?? "unknown")" }
        }
        return nil
    }
}
