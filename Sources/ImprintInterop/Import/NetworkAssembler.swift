internal import ImprintNetwork

/// Puts together a network from the operations of a model of another format, in the words that the formats share: tensors with a batch and
/// axes in any order, weights as [outputs, inputs / groups, kernel height, kernel width].
///
/// An operation that can be part of the one before it (padding of a convolution, a factor after a norm) becomes a new node in that one's
/// place, from the same input; nodes that nothing reads in the end are left out.
struct NetworkAssembler {
    typealias Axis = SourceActivation.Axis

    /// More numbers than one tensor of any model has: a few bytes of a file must not ask for all memory.
    static let greatestCount = 1 << 28
    /// More axes than any tensor has.
    static let greatestRank = 16
    /// More places than any operation takes out of an axis.
    static let greatestPlaceCount = 1 << 20
    /// More labels than any classifier has.
    static let greatestLabelCount = 1 << 16

    /// A node with what it computes and knows.
    private struct Entry {
        let node: Network.Node
        let shape: TensorShape
        /// By the parameters' names, in the order of the network.
        var numbers: [String: [Float]]
    }

    /// The shape of an image.
    let input: TensorShape
    private var entries: [Entry] = []
    private var places: [String: Int] = [:]
    /// The nodes whose result the source has the logarithm of.
    private var logarithms: Set<String> = []
    /// How often a name was wanted that another node had.
    private var namesakes: [String: Int] = [:]
    /// How many bytes more the network's numbers may take.
    private var room: Int

    /// Whether every operation stays a node of its own, as it must where the file describes its network.
    let isLiteral: Bool

    /// - Parameter weights: How many bytes the file's numbers have as 32-bit ones. Twice as many may be in the network, for those that an
    ///   operation changes are there twice until the end, and 8 MiB for what the file says in fewer words than numbers; a file that
    ///   uses the same numbers again and again cannot ask for all memory.
    init(input: TensorShape, weights: Int, isLiteral: Bool = false) {
        self.input = input
        self.isLiteral = isLiteral
        room = 2 * weights + 1 << 23
    }

    /// The image, as the source sees it.
    func image(axes: [Axis]) -> SourceActivation {
        SourceActivation(node: Network.inputName, shape: input, axes: axes)
    }

    /// Takes account of numbers that the file has in fewer bits than it was thought to have.
    mutating func allow(numbers count: Int) { room += 2 * count * MemoryLayout<Float>.stride }

    /// Takes account of memory that a node needs as long as the model is imported.
    /// - Throws: `ImportError.Problem` if it would be more than the file's size accounts for.
    mutating func reserve(_ bytes: Int, for name: String) throws(ImportError.Problem) {
        guard bytes <= room else {
            throw .exceedsLimit(reason: "\(name) needs many times more numbers than the file has")
        }
        room -= bytes
    }

    /// Adds a layer.
    /// - Parameters:
    ///   - wanted: The source's name for the operation; a number is added where another node has it.
    ///   - numbers: All of the layer's parameters, by name, in the order of the network.
    ///   - axes: What the axes of the result are; those of the first input where left out.
    mutating func add(
        _ layer: some Layer, named wanted: String, to inputs: [SourceActivation], numbers: [String: [Float]] = [:],
        axes: [Axis]? = nil
    ) throws(ImportError.Problem) -> SourceActivation {
        let name = unusedName(wanted, for: layer)
        if let input = inputs.first(where: { logarithms.contains($0.node) }) {
            throw .unsupported([
                .init(
                    operation: "LogSoftmax", node: input.node, reason: "\(name) reads it, expected the end of the model"
                )
            ])
        }
        let shapes = inputs.map(\.shape)
        let shape: TensorShape
        do {
            shape = try layer.outputShape(for: shapes)
        } catch {
            throw .network(node: name, error)
        }
        let sizes = [shape.height, shape.width, shape.channels]
        guard let count = checkedProduct(sizes), count <= Self.greatestCount, shape.channels <= Self.greatestCount >> 4
        else {
            throw .exceedsLimit(reason: "\(name) makes \(shape) numbers, more than any model of images")
        }
        for parameter in layer.parameters(for: shapes) {
            let found = numbers[parameter.name]?.count ?? 0
            guard found == parameter.count else {
                throw .malformed(
                    reason: "\(name) has \(found) numbers as its \(parameter.name), expected \(parameter.count)")
            }
        }
        try reserve(numbers.values.reduce(0) { $0 + $1.count } * MemoryLayout<Float>.stride, for: name)
        places[name] = entries.count
        let node = Network.Node(name: name, layer: layer, inputs: inputs.map(\.node))
        entries.append(Entry(node: node, shape: shape, numbers: numbers))
        return SourceActivation(node: name, shape: shape, axes: axes ?? inputs[0].axes)
    }

    /// The layer that computes an activation, if it is of this kind.
    func layer<Kind: Layer>(of activation: SourceActivation, as kind: Kind.Type) -> Kind? {
        places[activation.node].flatMap { entries[$0].node.layer as? Kind }
    }

    /// The numbers of the node that computes an activation, by the parameters' names.
    func numbers(of activation: SourceActivation) -> [String: [Float]] {
        places[activation.node].map { entries[$0].numbers } ?? [:]
    }

    /// What the node that computes an activation reads, with the activation's axes.
    func inputs(of activation: SourceActivation) -> [SourceActivation] {
        guard let place = places[activation.node] else { return [] }
        return entries[place].node.inputs.map { name in
            SourceActivation(
                node: name, shape: places[name].map { entries[$0].shape } ?? input, axes: activation.axes)
        }
    }

    /// What the numbers of a model's end are.
    enum Ending {
        /// They are a softmax's.
        case probabilities
        /// They are a sigmoid's.
        case separateProbabilities
        case logits
    }

    /// What an activation's numbers are, which layers that only put them in another order do not change.
    func ending(of activation: SourceActivation) -> Ending {
        var activation = activation
        while layer(of: activation, as: Flatten.self) != nil || layer(of: activation, as: SelectChannels.self) != nil
            || layer(of: activation, as: Dropout.self) != nil, let source = inputs(of: activation).first
        {
            activation = source
        }
        if layer(of: activation, as: Softmax.self) != nil { return .probabilities }
        return layer(of: activation, as: Sigmoid.self) != nil ? .separateProbabilities : .logits
    }

    /// Notes that the source has the logarithm of a softmax, which can only be the model's end.
    mutating func noteLogarithm(of activation: SourceActivation) { logarithms.insert(activation.node) }

    private mutating func unusedName(_ wanted: String, for layer: some Layer) -> String {
        let first = wanted.isEmpty ? "\(type(of: layer).kind)\(entries.count + 1)" : wanted
        var name = first
        while places[name] != nil || name == Network.inputName {
            // From where the last search ended, for thousands may want one name.
            let number = namesakes[first, default: 1] + 1
            namesakes[first] = number
            name = "\(first)_\(number)"
        }
        return name
    }

    /// The network that computes an activation, and its numbers.
    /// - Parameter name: The network's name.
    mutating func finish(
        _ output: SourceActivation, named name: String
    ) throws -> (network: Network, parameters: Parameters) {
        guard let last = places[output.node] else {
            throw ImportError.Problem.missing(what: "layers", advice: "expected a network")
        }
        var isUsed = entries.map { _ in false }
        isUsed[last] = true
        for place in entries.indices.reversed() where isUsed[place] {
            for input in entries[place].node.inputs { places[input].map { isUsed[$0] = true } }
        }
        let network = try Network(
            name: name, input: input, nodes: entries.indices.filter { isUsed[$0] }.map { entries[$0].node })
        let parameters = try Parameters(ParameterLayout(network))
        for entry in parameters.layout.entries {
            guard let place = places[entry.node] else { continue }
            // Each array goes as soon as its numbers are where they belong.
            guard let numbers = entries[place].numbers.removeValue(forKey: entry.parameter.name) else { continue }
            guard numbers.allSatisfy(\.isFinite) else {
                throw ImportError.Problem.malformed(
                    reason: "\(entry.name) has a number that is not finite, expected trained weights")
            }
            guard entry.parameter.name != "runningVariance" || numbers.allSatisfy({ $0 >= 0 }) else {
                throw ImportError.Problem.malformed(
                    reason: "\(entry.name) has a number below 0, expected variances")
            }
            parameters[entry.name] = numbers
        }
        return (network, parameters)
    }
}
