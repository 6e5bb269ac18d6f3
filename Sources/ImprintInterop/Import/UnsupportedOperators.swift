/// Collects the unsupported operators of a whole model.
///
/// Nodes that read the outputs of unsupported operators are skipped.
struct UnsupportedOperators {
    private var unsupported: [ImportError.Unsupported] = []
    private var unavailable: Set<String> = []

    /// Adds an operator that Imprint does not support.
    mutating func add(_ operation: ImportError.Unsupported, producing results: [String]) {
        unsupported.append(operation)
        unavailable.formUnion(results)
    }

    /// Runs `body`, which computes `results` from `inputs`, unless one of the inputs is unavailable.
    ///
    /// If an operator in `body` is not supported, its results become unavailable too.
    mutating func collect(reading inputs: [String], producing results: [String], _ body: () throws -> Void) throws {
        guard unavailable.isDisjoint(with: inputs) else { return unavailable.formUnion(results) }
        do {
            try body()
            unavailable.subtract(results)
        } catch ImportError.Problem.unsupported(let operations) {
            unsupported += operations
            unavailable.formUnion(results)
        }
    }

    /// - Throws: `ImportError.Problem.unsupported` with all unsupported operators, if there are any.
    func check() throws {
        if !unsupported.isEmpty { throw ImportError.Problem.unsupported(unsupported) }
    }
}
