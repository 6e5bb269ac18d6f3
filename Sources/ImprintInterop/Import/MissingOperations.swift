/// What a model has that Imprint lacks, collected over all of it; what reads the results of such operations is passed over.
struct MissingOperations {
    private var missing: [ImportError.Unsupported] = []
    private var lost: Set<String> = []

    /// Takes note of an operation that Imprint does not have.
    mutating func add(_ operation: ImportError.Unsupported, making results: [String]) {
        missing.append(operation)
        lost.formUnion(results)
    }

    /// Does what makes `results` of `inputs`, unless one of these is lost; they are lost too where that is not supported.
    mutating func collect(reading inputs: [String], making results: [String], _ body: () throws -> Void) throws {
        guard lost.isDisjoint(with: inputs) else { return lost.formUnion(results) }
        do {
            try body()
            lost.subtract(results)
        } catch ImportError.Problem.unsupported(let operations) {
            missing += operations
            lost.formUnion(results)
        }
    }

    /// - Throws: `ImportError.Problem.unsupported` with all that is missing, if something is.
    func check() throws {
        if !missing.isEmpty { throw ImportError.Problem.unsupported(missing) }
    }
}
