internal import CImprintKernels
internal import ImprintCore
internal import Synchronization

/// Where each parameter of a network lies in the one buffer that holds them all.
///
/// Weights come first, then biases and norms, then statistics, so that what is trained, and what of it decays, are
/// contiguous. There are no gaps, so that a file can hold the numbers as they lie.
public struct ParameterLayout: Hashable, Sendable {
    /// One named tensor in the buffer.
    public struct Entry: Hashable, Sendable {
        /// Node and parameter, as in "conv1.weight".
        public let name: String
        /// The node it belongs to.
        public let node: String
        /// Shape, role and initial values.
        public let parameter: ParameterDescription
        /// Where it begins, counted in numbers.
        public let offset: Int

        /// The places it takes.
        public var range: Range<Int> { offset..<(offset + parameter.count) }
    }

    /// The tensors in order of their places.
    public let entries: [Entry]
    /// The length of the buffer.
    public let count: Int
    /// How many numbers training can change; they are at the start of the buffer.
    public let trainableCount: Int
    private let places: [String: Int]

    /// Lays out the parameters of `network`.
    public init(_ network: Network) {
        var entries: [Entry] = []
        var end = 0
        var trainable = 0
        for role in [ParameterDescription.Role.weight, .bias, .statistic] {
            for (place, node) in network.nodes.enumerated() {
                for parameter in node.layer.parameters(for: network.inputShapes(of: place)) where parameter.role == role
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
        places = Dictionary(uniqueKeysWithValues: entries.enumerated().map { ($1.name, $0) })
    }

    /// The tensor of this name.
    public subscript(name: String) -> Entry? { places[name].map { entries[$0] } }

}

/// The parameters of a network: one contiguous float32 buffer with named views.
///
/// Any number of threads may read them. Only a training plan changes them (`ExecutionPlan.withParameters`): do not use parameters
/// elsewhere while a plan trains them, or give the plan a `copy()`.
public final class Parameters: @unchecked Sendable {
    /// Names, shapes and places.
    public let layout: ParameterLayout
    let memory: AlignedMemory
    /// How often the numbers may have changed.
    let changes = Atomic(0)

    /// Makes parameters that are all zero.
    /// - Throws: `NetworkError.outOfMemory`.
    public init(_ layout: ParameterLayout) throws(NetworkError) {
        self.layout = layout
        memory = try AlignedMemory(byteCount: layout.count * MemoryLayout<Float>.stride, isWrittenOnce: true)
    }

    /// Takes the parameters from an open file that holds them as they lie in memory, without a copy.
    ///
    /// They are read when they are looked at, and a change of theirs stays in memory. As long as these parameters live, the file may be
    /// replaced by another (renamed over, or deleted) but not written to: a process that looks at what has been cut off is ended by the system.
    /// - Parameters:
    ///   - descriptor: The file, which may be closed afterwards; it must be long enough.
    ///   - offset: Where the first number begins in the file, in bytes, at a multiple of 64.
    /// - Returns: nil if the system cannot map the file.
    package init?(_ layout: ParameterLayout, mapping descriptor: Int32, at offset: Int) {
        precondition(offset % 64 == 0, "numbers begin at multiples of 64 bytes, not at \(offset)")
        let byteCount = layout.count * MemoryLayout<Float>.stride
        guard let memory = AlignedMemory(mapping: descriptor, at: offset, byteCount: byteCount) else { return nil }
        self.layout = layout
        self.memory = memory
    }

    /// Draws the initial parameters of `network` from `seed`, each tensor from a stream of its own.
    /// - Throws: `NetworkError.outOfMemory`.
    public convenience init(_ network: Network, seed: UInt64) throws(NetworkError) {
        try self.init(ParameterLayout(network))
        for entry in layout.entries { draw(entry, seed: seed) }
    }

    /// Draws one tensor again, as `init(_:seed:)` does.
    package func draw(_ entry: ParameterLayout.Entry, seed: UInt64) {
        var stream = RandomStream(seed: seed, "initial weights \(entry.name)")
        withValues(of: entry) { values in
            switch entry.parameter.initializer {
            case .constant(let value):
                values.update(repeating: value)
            case .heNormal(let fanIn):
                let deviation = (2 / Float(fanIn)).squareRoot()
                for i in values.indices { values[i] = deviation * stream.normal() }
            case .leCunUniform(let fanIn):
                let bound = 1 / Float(fanIn).squareRoot()
                for i in values.indices { values[i] = stream.uniform(in: -bound...bound) }
            }
        }
    }

    /// A copy with memory of its own.
    /// - Throws: `NetworkError.outOfMemory`.
    public func copy() throws(NetworkError) -> Parameters {
        let copy = try Parameters(layout)
        copy.floats.update(from: floats, count: layout.count)
        return copy
    }

    /// Copies all values of parameters of the same layout.
    package func copyValues(from source: Parameters) {
        precondition(layout == source.layout, "the parameters belong to different networks")
        withValues { $0.baseAddress?.update(from: source.floats, count: layout.count) }
    }

    /// The numbers of the tensor named `name`, fastest axis last; nil if there is none.
    public package(set) subscript(name: String) -> [Float]? {
        get { layout[name].map { Array(UnsafeBufferPointer(start: floats + $0.offset, count: $0.parameter.count)) } }
        set {
            guard let entry = layout[name] else { preconditionFailure("there is no parameter \"\(name)\"") }
            guard let newValue, newValue.count == entry.parameter.count else {
                preconditionFailure(
                    "\"\(name)\" has \(entry.parameter.count) numbers, not \(newValue.map { "\($0.count)" } ?? "none")")
            }
            withValues(of: entry) { values in _ = values.update(from: newValue) }
        }
    }

    /// Gives access to the numbers of one tensor in place.
    package func withValues<Result, Failure>(
        of entry: ParameterLayout.Entry, _ body: (UnsafeMutableBufferPointer<Float>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { changes.add(1, ordering: .relaxed) }
        precondition(layout[entry.name] == entry, "\"\(entry.name)\" belongs to another layout")
        return try body(UnsafeMutableBufferPointer(start: floats + entry.offset, count: entry.parameter.count))
    }

    /// Gives access to the whole buffer in place.
    package func withValues<Result, Failure>(
        _ body: (UnsafeMutableBufferPointer<Float>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        defer { changes.add(1, ordering: .relaxed) }
        return try body(UnsafeMutableBufferPointer(start: floats, count: layout.count))
    }

    /// Moves every number towards that of parameters of the same layout: w ← w + rate · (target − w).
    ///
    /// Done after every step with a rate of 1 − decay, it keeps an exponential moving average (Polyak and Juditsky,
    /// "Acceleration of stochastic approximation by averaging", 1992).
    /// - Parameter rate: 0…1.
    package func move(towards target: Parameters, by rate: Float) {
        precondition(layout == target.layout, "the parameters belong to different networks")
        precondition((0...1).contains(rate), "the rate is 0 to 1, not \(rate)")
        withValues { imprint_move_towards($0.baseAddress, target.floats, $0.count, rate) }
    }

    var floats: UnsafeMutablePointer<Float> { memory.floats() }
}
