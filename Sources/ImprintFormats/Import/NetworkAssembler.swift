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

    /// A node with what it computes and knows.
    private struct Entry {
        let node: Network.Node
        let shape: Shape
        /// By the parameters' names, in the order of the network.
        var numbers: [String: [Float]]
    }

    /// The shape of an image.
    let input: Shape
    private var entries: [Entry] = []
    private var places: [String: Int] = [:]
    /// The nodes whose result the source has the logarithm of.
    private var logarithms: Set<String> = []

    init(input: Shape) { self.input = input }

    /// The image, as the source sees it.
    func image(axes: [Axis]) -> SourceActivation {
        SourceActivation(node: Network.inputName, shape: input, axes: axes)
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
        let shape: Shape
        do {
            shape = try layer.outputShape(for: shapes)
        } catch {
            throw .network(node: name, error)
        }
        let sizes = [shape.height, shape.width, shape.channels]
        guard let count = checkedProduct(sizes), count <= Self.greatestCount, shape.channels <= Self.greatestCount >> 4
        else {
            throw .malformed(reason: "\(name) makes \(shape) numbers, more than any model of images")
        }
        for parameter in layer.parameters(for: shapes) {
            let found = numbers[parameter.name]?.count ?? 0
            guard found == parameter.count else {
                throw .malformed(
                    reason: "\(name) has \(found) numbers as its \(parameter.name), expected \(parameter.count)")
            }
        }
        places[name] = entries.count
        let node = Network.Node(name: name, layer: layer, inputs: inputs.map(\.node))
        entries.append(Entry(node: node, shape: shape, numbers: numbers))
        return SourceActivation(node: name, shape: shape, axes: axes ?? inputs[0].axes)
    }

    /// The layer that computes an activation, where it is of this kind.
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

    /// Notes that the source has the logarithm of a softmax, which can only be the model's end.
    mutating func noteLogarithm(of activation: SourceActivation) { logarithms.insert(activation.node) }

    private func unusedName(_ wanted: String, for layer: some Layer) -> String {
        let first = wanted.isEmpty ? "\(type(of: layer).kind)\(entries.count + 1)" : wanted
        var (name, number) = (first, 2)
        while places[name] != nil || name == Network.inputName {
            name = "\(first)_\(number)"
            number += 1
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
            parameters[entry.name] = entries[place].numbers.removeValue(forKey: entry.parameter.name)
        }
        return (network, parameters)
    }
}
