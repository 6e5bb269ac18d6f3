/// A limit for constant folding, so that a small file cannot exhaust memory or time.
///
/// A folded constant is retained until the last node that reads it. The retained constants may use four times the size of the
/// file plus 16 MiB, and all constants in total 64 times plus 16 MiB. Weights that are converted, scaled and shifted in several
/// steps stay far below.
struct FoldingBudget {
    private var memory: Int
    private var work: Int
    /// The size of each retained constant in bytes.
    private var retained: [String: Int] = [:]
    /// The index of the last node that reads each name.
    private var lastConsumers: [String: Int] = [:]

    /// - Parameter bytes: The total size of the model's files.
    init(bytes: Int, graph: ONNXModel.Graph) {
        memory = 4 * bytes + 1 << 24
        work = 64 * bytes + 1 << 24
        for (index, node) in graph.nodes.enumerated() {
            for name in node.inputs { lastConsumers[name] = index }
        }
        for output in graph.outputs { lastConsumers[output.name] = graph.nodes.count }
    }

    /// Counts a folded constant.
    ///
    /// - Throws: `ImportError.Problem.exceedsLimit` if the constants take too much memory or time.
    mutating func add(_ bytes: Int, as name: String, for node: String) throws(ImportError.Problem) {
        memory -= bytes
        work -= bytes
        guard memory >= 0, work >= 0 else {
            throw .exceedsLimit(reason: "\(node) computes constants many times larger than the file")
        }
        retained[name] = bytes
    }

    /// Releases the constants among `names` that no later node reads, and returns their names.
    mutating func release(after index: Int, reading names: [String]) -> [String] {
        names.filter { name in
            guard lastConsumers[name] == index, let bytes = retained.removeValue(forKey: name) else { return false }
            memory += bytes
            return true
        }
    }
}
