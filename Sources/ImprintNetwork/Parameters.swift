internal import CImprintKernels
internal import ImprintCore
internal import Synchronization

/// The offsets of the parameters of a network in one contiguous buffer.
///
/// Weights come first, then biases and the parameters of normalization layers, then statistics. The trainable parameters are therefore
/// contiguous, and so are those with weight decay. There are no gaps, so a file can store the buffer as it is.
public struct ParameterLayout: Hashable, Sendable {
    /// A named tensor in the buffer.
    public struct Entry: Hashable, Sendable {
        /// The names of the node and the parameter, as in "conv1.weight".
        public let name: String
        /// The name of the node.
        public let node: String
        /// The shape, role and initialization.
        public let parameter: ParameterDescription
        /// The offset of the first element, in elements.
        public let offset: Int

        /// The range of its elements in the buffer.
        public var range: Range<Int> { offset..<(offset + parameter.count) }
    }

    /// The tensors, in the order of their offsets.
    public let entries: [Entry]
    /// The number of elements of the buffer.
    public let count: Int
    /// The number of trainable parameters, which are at the start of the buffer.
    public let trainableCount: Int
    private let indices: [String: Int]

    /// Creates the layout of the parameters of `network`.
    public init(_ network: Network) {
        var entries: [Entry] = []
        var end = 0
        var trainable = 0
        for role in [ParameterDescription.Role.weight, .bias, .statistic] {
            for (index, node) in network.nodes.enumerated() {
                for parameter in node.layer.parameters(for: network.inputShapes(of: index)) where parameter.role == role
                {
                    entries.append(
                        Entry(
                            name: "\(node.name).\(parameter.name)", node: node.name, parameter: parameter, offset: end)
                    )
                    end += parameter.count
                }
            }
            if role != .statistic { trainable = end }
        }
        self.entries = entries
        count = end
        trainableCount = trainable
        indices = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.name, $0) })
    }

    /// The tensor of this name, or nil for an unknown name.
    public subscript(name: String) -> Entry? { indices[name].map { entries[$0] } }
}

/// The parameters of a network: one contiguous float32 buffer with named views.
///
/// Several threads may read them at the same time. A training plan, its optimizer and `setValues(_:of:)` change them, so do not use parameters
/// elsewhere while a plan trains them, or give the plan a `copy()`.
public final class Parameters: @unchecked Sendable {
    /// The names, shapes and offsets.
    public let layout: ParameterLayout
    let memory: AlignedMemory
    /// The number of accesses that may have changed the values.
    let changes = Atomic(0)
    /// The quantization of the network for predictions in int8; nil if it has none.
    ///
    /// Its scales fit these values, so remove it before you change them. Copies do not have it, because they may be trained.
    package var quantization: Quantization? {
        get { currentQuantization.withLock { $0 } }
        set { currentQuantization.withLock { $0 = newValue } }
    }
    private let currentQuantization = Mutex<Quantization?>(nil)

    /// Creates parameters that are all zero.
    /// - Throws: `NetworkError.outOfMemory`.
    public init(_ layout: ParameterLayout) throws(NetworkError) {
        self.layout = layout
        memory = try AlignedMemory(byteCount: layout.count * MemoryLayout<Float>.stride, isFilledByCaller: true)
    }

    /// Maps the parameters from an open file that has them in the same layout, without a copy.
    ///
    /// Pages are read on first access, and changes are not written to the file. While these parameters exist, the file may be replaced
    /// (renamed over, or deleted) but not changed: if it is truncated, the system ends a process that reads the missing part (SIGBUS).
    /// - Parameters:
    ///   - descriptor: The file, which may be closed afterwards; it must be long enough.
    ///   - offset: The offset of the parameters in the file in bytes, a multiple of 64.
    /// - Returns: nil if the system cannot map the file.
    package init?(_ layout: ParameterLayout, mapping descriptor: Int32, at offset: Int) {
        precondition(offset % 64 == 0, "offset is \(offset), expected a multiple of 64")
        let byteCount = layout.count * MemoryLayout<Float>.stride
        guard let memory = AlignedMemory(mapping: descriptor, at: offset, byteCount: byteCount) else { return nil }
        self.layout = layout
        self.memory = memory
    }

    /// Creates randomly initialized parameters of `network`.
    ///
    /// Each tensor has its own random stream, derived from `seed`.
    /// - Throws: `NetworkError.outOfMemory`.
    public convenience init(_ network: Network, seed: UInt64) throws(NetworkError) {
        try self.init(ParameterLayout(network))
        for entry in layout.entries { draw(entry, seed: seed) }
    }

    /// Initializes one tensor as `init(_:seed:)` does.
    package func draw(_ entry: ParameterLayout.Entry, seed: UInt64) {
        var stream = RandomStream(seed: seed, "initial weights \(entry.name)")
        withValues(of: entry) { values in
            switch entry.parameter.initializer {
            case .constant(let value):
                values.update(repeating: value)
            case .heNormal(let fanIn):
                let standardDeviation = (2 / Float(fanIn)).squareRoot()
                for i in values.indices { values[i] = standardDeviation * stream.normal() }
            case .leCunUniform(let fanIn):
                let bound = 1 / Float(fanIn).squareRoot()
                for i in values.indices { values[i] = stream.uniform(in: -bound...bound) }
            case .uniform(let range):
                for i in values.indices { values[i] = stream.uniform(in: range) }
            case .normal(let mean, let standardDeviation):
                for i in values.indices { values[i] = mean + standardDeviation * stream.normal() }
            }
        }
    }

    /// Returns a copy that does not share memory with the original.
    ///
    /// The copy of quantized parameters has the same values, but no quantization, because it may be trained: its predictions are in float32.
    /// - Throws: `NetworkError.outOfMemory`.
    public func copy() throws(NetworkError) -> Parameters {
        let copy = try Parameters(layout)
        copy.floats.update(from: floats, count: layout.count)
        return copy
    }

    /// Copies all values from parameters of the same layout.
    package func copyValues(from source: Parameters) {
        precondition(layout == source.layout, "the parameters belong to different networks")
        withValues { $0.baseAddress?.update(from: source.floats, count: layout.count) }
        quantization = nil
    }

    /// The values of the tensor named `name`, last axis contiguous, or nil if no tensor has this name.
    public package(set) subscript(name: String) -> [Float]? {
        get { layout[name].map { Array(UnsafeBufferPointer(start: floats + $0.offset, count: $0.parameter.count)) } }
        set {
            guard let entry = layout[name] else { preconditionFailure("there is no parameter \"\(name)\"") }
            guard let newValue, newValue.count == entry.parameter.count else {
                preconditionFailure(
                    "\"\(name)\" has \(entry.parameter.count) values, not \(newValue.map { "\($0.count)" } ?? "none")")
            }
            withValues(of: entry) { values in _ = values.update(from: newValue) }
        }
    }

    /// Sets the values of the tensor named `name`, for example to weights from another program.
    ///
    /// `layout` has the names and shapes. The weights of a `Convolution` are [height, width, input channels / groups, output channels], and those of
    /// a `Dense` layer are [inputs, outputs]. Do not set values while a plan runs. If the parameters are quantized, they lose the quantization, which
    /// fits only the old values: a plan that was compiled for int8 cannot run afterwards, so compile a new one.
    ///
    /// To change the weights of a model that was read from a file, set the values of a `copy()`, and create a new model with it: the identity of
    /// the model, which a personalization contains, does not change with its parameters.
    /// - Parameters:
    ///   - values: The values; the last axis of the shape is contiguous.
    ///   - name: The name of the parameter, such as `layers.0.weight`.
    /// - Throws: `NetworkError.unknownParameter` or `NetworkError.parameterCount`; the parameters do not change then.
    public func setValues(_ values: [Float], of name: String) throws(NetworkError) {
        guard let entry = layout[name] else { throw .unknownParameter(name: name) }
        guard values.count == entry.parameter.count else {
            throw .parameterCount(name: name, found: values.count, shape: entry.parameter.shape)
        }
        self[name] = values
        quantization = nil
    }

    /// Calls `body` with the values of one tensor, which it may change.
    package func withValues<Result, Failure>(
        of entry: ParameterLayout.Entry, _ body: (UnsafeMutableBufferPointer<Float>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { changes.add(1, ordering: .relaxed) }
        precondition(layout[entry.name] == entry, "\"\(entry.name)\" belongs to another layout")
        return try body(UnsafeMutableBufferPointer(start: floats + entry.offset, count: entry.parameter.count))
    }

    /// Calls `body` with the values of all parameters, which it may change.
    package func withValues<Result, Failure>(
        _ body: (UnsafeMutableBufferPointer<Float>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { changes.add(1, ordering: .relaxed) }
        return try body(UnsafeMutableBufferPointer(start: floats, count: layout.count))
    }

    /// Moves all values towards those of parameters of the same layout: w ← w + rate · (target − w).
    ///
    /// Called after every training step with a rate of 1 − decay, it computes an exponential moving average (Polyak and Juditsky,
    /// "Acceleration of stochastic approximation by averaging", 1992).
    /// - Parameter rate: 0…1.
    package func move(towards target: Parameters, by rate: Float) {
        precondition(layout == target.layout, "the parameters belong to different networks")
        precondition((0...1).contains(rate), "rate is \(rate), expected 0 to 1")
        withValues { imprint_move_towards($0.baseAddress, target.floats, $0.count, rate) }
    }

    var floats: UnsafeMutablePointer<Float> { memory.floats() }
}

extension ParameterLayout {
    /// Returns the contiguous ranges of the parameter buffer that training changes, with or without weight decay.
    /// - Parameter frozen: The names of the nodes whose parameters training does not change.
    func trainableRanges(frozen: Set<String>) -> [(range: Range<Int>, decays: Bool)] {
        var ranges: [(range: Range<Int>, decays: Bool)] = []
        for entry in entries where entry.parameter.role != .statistic && !frozen.contains(entry.node) {
            let range = entry.range
            let decays = entry.parameter.role == .weight
            if let last = ranges.last, last.range.upperBound == range.lowerBound, last.decays == decays {
                ranges[ranges.count - 1].range = last.range.lowerBound..<range.upperBound
            } else {
                ranges.append((range, decays))
            }
        }
        return ranges
    }
}
