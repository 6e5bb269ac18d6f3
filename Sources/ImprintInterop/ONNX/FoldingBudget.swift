/// Accounts for the results of operators over known values, so that a small file cannot ask for all memory or all time.
///
/// A result is kept until the last node that reads it. Those that are kept take at most four times the bytes of the file, and all of them
/// together 64 times, and 16 MiB more each: weights that are converted, scaled and shifted in several steps stay far below.
struct FoldingBudget {
    private var memory: Int
    private var work: Int
    /// The bytes of each result that is kept.
    private var kept: [String: Int] = [:]
    /// For each name the last node that reads it.
    private var lastReaders: [String: Int] = [:]

    /// - Parameter bytes: The size of all files of the model.
    init(bytes: Int, graph: ONNXModel.Graph) {
        memory = 4 * bytes + 1 << 24
        work = 64 * bytes + 1 << 24
        for (index, node) in graph.nodes.enumerated() {
            for name in node.inputs { lastReaders[name] = index }
        }
        for output in graph.outputs { lastReaders[output.name] = graph.nodes.count }
    }

    /// Accounts for a result.
    /// - Throws: `ImportError.Problem.exceedsLimit` if the results take too much memory or time.
    mutating func add(_ bytes: Int, as name: String, for node: String) throws(ImportError.Problem) {
        memory -= bytes
        work -= bytes
        guard memory >= 0, work >= 0 else {
            throw .exceedsLimit(reason: "\(node) computes constants many times larger than the file")
        }
        kept[name] = bytes
    }

    /// The results among `names` that no node after this one reads; their memory counts no longer.
    mutating func release(after index: Int, reading names: [String]) -> [String] {
        names.filter { name in
            guard lastReaders[name] == index, let bytes = kept.removeValue(forKey: name) else { return false }
            memory += bytes
            return true
        }
    }
}
