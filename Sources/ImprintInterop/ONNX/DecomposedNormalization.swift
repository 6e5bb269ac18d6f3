internal import ImprintModel

/// A layer normalization that is decomposed into (x − mean(x)) / √(mean((x − mean(x))²) + ε).
///
/// Exporters decompose it before opset 17. A following factor and addend are separate operators, which the importer merges into
/// it.
struct DecomposedNormalization {
    /// The name of x.
    let input: String
    /// The axes of the means in the file.
    let axes: [Int]
    let epsilon: Float
    /// The indices of the nodes before the last one; no other node reads their outputs.
    fileprivate let parts: [Int]

    /// Returns the normalizations of a graph by the index of their last node, the division.
    static func all(in graph: ONNXModel.Graph) throws -> [Int: DecomposedNormalization] {
        // A graph without a square root has no such normalization.
        guard graph.nodes.contains(where: { $0.operation == "Sqrt" }) else { return [:] }
        let search = Search(graph)
        var found: [Int: DecomposedNormalization] = [:]
        for index in graph.nodes.indices where graph.nodes[index].operation == "Div" {
            found[index] = try search.normalization(endingAt: index)
        }
        return found
    }
}

extension [Int: DecomposedNormalization] {
    /// The indices of the nodes that the normalizations replace.
    var replaced: Set<Int> { Set(values.flatMap(\.parts)) }
}

/// An index of a graph's nodes by their inputs and outputs.
private struct Search {
    private let nodes: [ONNXModel.Node]
    private var producers: [String: Int] = [:]
    private var consumers: [String: Set<Int>] = [:]
    private var tensors: [String: ONNXModel.Tensor] = [:]
    private let outputs: Set<String>

    init(_ graph: ONNXModel.Graph) {
        nodes = graph.nodes
        outputs = Set(graph.outputs.map(\.name))
        for tensor in graph.initializers { tensors[tensor.name] = tensor }
        for (index, node) in nodes.enumerated() {
            if node.operation == "Constant", let tensor = node.attributes["value"]?.tensor,
                let name = node.outputs.first
            {
                tensors[name] = tensor
            }
            for name in node.outputs { producers[name] = index }
            for name in node.inputs { consumers[name, default: []].insert(index) }
        }
    }

    func normalization(endingAt last: Int) throws -> DecomposedNormalization? {
        guard let (dividend, divisor) = pair(nodes[last]),
            let difference = node("Sub", producing: dividend), let (x, mean) = pair(nodes[difference]),
            let firstMean = node("ReduceMean", producing: mean), nodes[firstMean].inputs.first == x,
            let root = node("Sqrt", producing: divisor), let radicand = nodes[root].inputs.first,
            let sum = node("Add", producing: radicand), let (variance, epsilon) = try shifted(nodes[sum]),
            let secondMean = node("ReduceMean", producing: variance), let square = nodes[secondMean].inputs.first,
            let power = try squaring(dividend, producing: square),
            let axes = try axes(firstMean), try self.axes(secondMean) == axes
        else { return nil }
        let parts = [difference, firstMean, root, sum, secondMean, power]
        let all = Set(parts + [last])
        let isPrivate = parts.allSatisfy { part in
            nodes[part].outputs.allSatisfy { name in
                producers[name] == part && !outputs.contains(name) && consumers[name]?.isSubset(of: all) ?? true
            }
        }
        return isPrivate ? DecomposedNormalization(input: x, axes: axes, epsilon: epsilon, parts: parts) : nil
    }

    private func node(_ operation: String, producing name: String) -> Int? {
        guard let index = producers[name], nodes[index].operation == operation, nodes[index].outputs == [name] else {
            return nil
        }
        return index
    }

    private func pair(_ node: ONNXModel.Node) -> (String, String)? {
        node.inputs.count == 2 ? (node.inputs[0], node.inputs[1]) : nil
    }

    /// Returns the name of a sum's tensor and the positive constant that is added to it.
    private func shifted(_ node: ONNXModel.Node) throws -> (String, Float)? {
        guard let (first, second) = pair(node) else { return nil }
        for (tensor, addend) in [(first, second), (second, first)] {
            if let value = try number(addend), value > 0, value.isFinite { return (tensor, value) }
        }
        return nil
    }

    /// Returns the node that computes `square` as the square of `value`.
    private func squaring(_ value: String, producing square: String) throws -> Int? {
        if let product = node("Mul", producing: square), nodes[product].inputs == [value, value] { return product }
        guard let power = node("Pow", producing: square), let (base, exponent) = pair(nodes[power]), base == value,
            try number(exponent) == 2
        else { return nil }
        return power
    }

    /// Returns the axes of a ReduceMean with keepdims.
    private func axes(_ index: Int) throws -> [Int]? {
        let node = nodes[index]
        guard node.attributes["keepdims"]?.integer ?? 1 != 0 else { return nil }
        if let axes = node.attributes["axes"] { return axes.integers }
        guard node.inputs.count == 2, let tensor = tensors[node.inputs[1]], tensor.shape.count == 1,
            tensor.shape[0] <= NetworkAssembler.maximumRank
        else { return nil }
        return try tensor.constant().integers
    }

    /// Returns a scalar constant.
    private func number(_ name: String) throws -> Float? {
        if let tensor = tensors[name] {
            guard tensor.shape.allSatisfy({ $0 == 1 }) else { return nil }
            return try tensor.constant().floats.first
        }
        return node("Constant", producing: name).flatMap { nodes[$0].attributes["value_float"]?.float }
    }
}
