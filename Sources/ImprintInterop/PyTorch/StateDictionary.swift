/// The tensors of a PyTorch checkpoint by name: a `state_dict`.
struct StateDictionary {
    /// The names in the order of the file.
    let names: [String]
    private let tensors: [String: StateTensor]

    /// Creates the dictionary of tensors in the order of the file; the last one wins if a name occurs twice.
    init(_ tensors: [(name: String, tensor: StateTensor)]) {
        var known: [String: StateTensor] = [:]
        var names: [String] = []
        for (name, tensor) in tensors where known.updateValue(tensor, forKey: name) == nil { names.append(name) }
        self.tensors = known
        self.names = names
    }

    /// Creates the dictionary of tensors whose values are in memory, in row-major order.
    init(_ tensors: [(name: String, shape: [Int], values: [Float])]) {
        self.init(
            tensors.map { name, shape, values in
                precondition(shape.reduce(1, *) == values.count, "\(values.count) values of \(name) for \(shape)")
                return (name, StateTensor(shape: shape) { values })
            })
    }

    /// Returns the lengths of a tensor's dimensions; nil if there is no such tensor.
    func shape(of name: String) -> [Int]? { tensors[name]?.shape }

    /// Returns the elements of a tensor as 32-bit floating-point values, in row-major order and in PyTorch's order of axes.
    ///
    /// - Throws: `ImportError.Problem.missing` if there is no such tensor, `.malformed` if its bytes are damaged.
    func values(of name: String) throws -> [Float] {
        guard let tensor = tensors[name] else {
            throw ImportError.Problem.missing(
                item: "tensor \(name.debugDescription)", advice: "Choose the architecture with which it was saved")
        }
        return try tensor.floats()
    }
}

/// A tensor of a PyTorch checkpoint, whose elements are read on demand.
struct StateTensor {
    /// The lengths of the dimensions; empty for a scalar.
    let shape: [Int]
    private let read: () throws -> [Float]

    /// - Parameters:
    ///   - shape: The lengths of the dimensions.
    ///   - read: Returns the elements in row-major order.
    init(shape: [Int], read: @escaping () throws -> [Float]) {
        self.shape = shape
        self.read = read
    }

    /// Returns the elements as 32-bit floating-point values, in row-major order.
    ///
    /// - Throws: `ImportError.Problem` if the file is damaged or there is not enough memory.
    func floats() throws -> [Float] { try read() }
}
