internal import Foundation

/// A way to exchange messages between the processes of a group, such as MPI.
package protocol ProcessTransport: Sendable {
    /// The rank: the index of this process, from 0.
    var rank: Int { get }
    /// The world size: the number of processes.
    var count: Int { get }

    /// Sends bytes to another process and receives bytes from it (`MPI_Sendrecv`); the other process calls it at the same time, and receives as
    /// many bytes as this one sends.
    ///
    /// It does not return if the other process has ended: it then ends this process, too.
    /// - Parameter channel: Messages of different channels are independent, so different threads may use them at the same time.
    func exchange(
        with partner: Int, sending: UnsafeRawBufferPointer, receiving: UnsafeMutableRawBufferPointer,
        channel: ProcessChannel)
}

/// An independent sequence of messages between processes, like a communicator of MPI; each belongs to one thread.
package enum ProcessChannel: Int, CaseIterable, Sendable {
    /// The messages of the thread that trains.
    case main
    /// The messages of the thread that sums gradients in the background.
    case background
}

/// The processes that train a model together, in data-parallel training, and their collective operations.
///
/// Every process runs the same program with the same arguments and has all parameters. The processes divide each batch: each one reads and
/// computes its part, and all receive the results. Sums over the images of a batch are fixed binary trees, and each process computes a
/// subtree, so the results are bitwise identical for any number of processes.
///
/// A process waits in each collective operation for the others, so all processes must call them in the same order. Code that can throw between two
/// calls belongs in `failTogether(_:)`, unless it throws in all processes or in none.
package final class ProcessGroup: @unchecked Sendable {
    /// The numbers of processes that can divide a batch: powers of two, up to the maximum number of units of a batch.
    package static let validCounts = [1, 2, 4, BatchPart.mostUnits]

    /// The rank: the index of this process, from 0.
    package let rank: Int
    /// The world size: the number of processes.
    package let count: Int
    /// Returns the advice of the program about an error of this process, for the other processes.
    let advice: @Sendable (any Error) -> ErrorAdvice
    private let transport: any ProcessTransport
    private let background: BackgroundAllReduce
    private let received = GrowingMemory()
    private let gathered = [GrowingMemory(), GrowingMemory()]

    /// Creates the group; the number of processes must be one of `validCounts`.
    /// - Parameters:
    ///   - transport: Exchanges the messages.
    ///   - advice: Returns the advice of the program about an error.
    package init(
        _ transport: any ProcessTransport,
        advice: @escaping @Sendable (any Error) -> ErrorAdvice = { _ in ErrorAdvice() }
    ) {
        precondition(
            Self.validCounts.contains(transport.count), "\(transport.count) processes, expected \(Self.validCounts)")
        self.transport = transport
        self.advice = advice
        (rank, count) = (transport.rank, transport.count)
        background = BackgroundAllReduce(transport)
    }

    /// Whether this is the first process (rank 0), which writes files and prints.
    package var isFirst: Bool { rank == 0 }

    /// Returns the part of a batch that this process computes.
    ///
    /// A small batch has fewer parts than there are processes. Several processes then compute the same part.
    package func part(of batch: Int) -> BatchPart {
        let parts = min(count, BatchPart.units(of: batch))
        return BatchPart(rank % parts, of: parts, total: batch)
    }

    // MARK: All-reduce

    // Two functions instead of a generic one, which other modules could not specialize.

    /// Replaces values by their sums over the parts of a batch: a deterministic all-reduce.
    package func allReduce(_ values: UnsafeMutablePointer<Float>, count: Int, parts: Int) {
        transport.allReduce(values, count: count, parts: parts, received: received, channel: .main)
    }

    /// Replaces values by their sums over the parts of a batch: a deterministic all-reduce.
    package func allReduce(_ values: UnsafeMutablePointer<Double>, count: Int, parts: Int) {
        transport.allReduce(values, count: count, parts: parts, received: received, channel: .main)
    }

    /// Replaces values by their sums over the parts of a batch, in the background; see `waitForAllReduces`.
    package func allReduceInBackground(_ values: UnsafeMutablePointer<Float>, count: Int, parts: Int) {
        background.add(values, count: count, parts: parts)
    }

    /// Waits for all sums of `allReduceInBackground`.
    package func waitForAllReduces() { background.wait() }

    // MARK: All-gather and broadcast

    /// Collects the slices of an array in all processes from those that have the parts of a batch.
    /// - Parameters:
    ///   - values: The array; this process has filled the slice of its part.
    ///   - slice: Returns the elements that belong to a part.
    package func allGather<Value: BitwiseCopyable>(
        _ values: UnsafeMutablePointer<Value>, parts: Int, slice: (_ part: Int) -> Range<Int>
    ) {
        func bytes(_ part: Int) -> UnsafeMutableRawBufferPointer {
            let slice = slice(part)
            return UnsafeMutableRawBufferPointer(
                UnsafeMutableBufferPointer(start: values + slice.lowerBound, count: slice.count))
        }
        for step in 1..<max(parts, 1) {
            let partner = rank ^ step
            transport.exchange(
                with: partner, sending: UnsafeRawBufferPointer(bytes(rank % parts)), receiving: bytes(partner % parts),
                channel: .main)
        }
    }

    /// Collects the values of all images of a batch in all processes, [images, count].
    /// - Parameters:
    ///   - values: The values of this process's images.
    ///   - slot: The memory for the result, 0 or 1, which is valid until the next call with the same slot.
    package func allGatherImages(
        _ values: UnsafePointer<Float>, count: Int, of part: BatchPart, slot: Int
    ) -> UnsafePointer<Float> {
        let all = gathered[slot].memory(of: Float.self, part.total * count)
        (all + part.images.lowerBound * count).update(from: values, count: part.images.count * count)
        allGather(all, parts: part.count) { part.images(of: $0, times: count) }
        return UnsafePointer(all)
    }

    /// Returns the byte strings of all processes, in the order of their ranks; their lengths may differ.
    package func allGather(_ bytes: [UInt8]) -> [[UInt8]] {
        var counts = [Int](repeating: 0, count: count)
        counts[rank] = bytes.count
        counts.withUnsafeMutableBufferPointer { counts in
            counts.baseAddress.map { allGather($0, parts: count) { $0..<($0 + 1) } }
        }
        var ends: [Int] = []
        for count in counts { ends.append((ends.last ?? 0) + count) }
        let slices = zip(ends, counts).map { ($0 - $1)..<$0 }
        var all = [UInt8](repeating: 0, count: ends[count - 1])
        all.replaceSubrange(slices[rank], with: bytes)
        all.withUnsafeMutableBufferPointer { all in
            all.baseAddress.map { allGather($0, parts: count) { slices[$0] } }
        }
        return slices.map { Array(all[$0]) }
    }

    /// Returns whether a condition holds in any process.
    package func any(_ condition: Bool) -> Bool { allGather([condition ? 1 : 0]).contains([1]) }

    /// Returns the value of the first process in all processes, and sends it as JSON.
    /// - Throws: The errors of encoding and decoding; `ProcessFailedError` if only the first process cannot encode its value.
    package func broadcast<Value: Codable>(encoding value: Value) throws -> Value {
        let encoded: [UInt8] = try failTogether { isFirst ? Array(try JSONEncoder().encode(value)) : [] }
        let first = allGather(encoded)[0]
        return try JSONDecoder().decode(Value.self, from: Data(first))
    }

    /// Returns the smallest of the values of all processes.
    package func minimum(_ value: Int) -> Int {
        var values = [Int](repeating: value, count: count)
        values.withUnsafeMutableBufferPointer { values in
            values.baseAddress.map { allGather($0, parts: count) { $0..<($0 + 1) } }
        }
        return values.min() ?? value
    }

    /// Returns the value of the first process in all processes.
    package func broadcast<Value: BitwiseCopyable>(_ value: Value) -> Value {
        var values = [Value](repeating: value, count: count)
        values.withUnsafeMutableBufferPointer { values in
            values.baseAddress.map { allGather($0, parts: count) { $0..<($0 + 1) } }
        }
        return values[0]
    }
}

extension ProcessGroup: Hashable {
    package static func == (left: ProcessGroup, right: ProcessGroup) -> Bool { left === right }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension ProcessTransport {
    /// Replaces values by their sums over the parts of a batch: recursive doubling, which adds in the order of a binary tree.
    ///
    /// In round k, processes whose ranks differ in bit k exchange their sums and add them. The sum of two floats does not depend on their order, so
    /// all processes get the same bits. (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", 2005)
    func allReduce<Value: FloatingPoint & BitwiseCopyable>(
        _ values: UnsafeMutablePointer<Value>, count: Int, parts: Int, received: GrowingMemory,
        channel: ProcessChannel
    ) {
        let other = received.memory(of: Value.self, count)
        var distance = 1
        while distance < parts {
            exchange(
                with: rank ^ distance,
                sending: UnsafeRawBufferPointer(UnsafeBufferPointer(start: values, count: count)),
                receiving: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(start: other, count: count)),
                channel: channel)
            for index in 0..<count { values[index] += other[index] }
            distance *= 2
        }
    }
}

/// The part of a batch that a process computes.
package struct BatchPart: Sendable, Equatable {
    /// The maximum number of units of a batch.
    package static let mostUnits = 8
    /// The minimum number of images of a unit.
    private static let fewestImages = 4

    /// The index of the part.
    package let index: Int
    /// The number of parts, a power of two.
    package let count: Int
    /// The number of images of the batch.
    package let total: Int

    /// Creates the part that is the whole batch.
    package init(wholeBatch total: Int) { self.init(0, of: 1, total: total) }

    package init(_ index: Int, of count: Int, total: Int) {
        (self.index, self.count, self.total) = (index, count, total)
    }

    /// Returns the number of units of a batch, a power of two: the smallest parts that can be computed separately.
    package static func units(of batch: Int) -> Int {
        var units = 1
        while units < mostUnits, batch >= 2 * units * fewestImages { units *= 2 }
        return units
    }

    /// The images of the part.
    package var images: Range<Int> { images(of: index) }

    /// Returns the images of a part, or the elements of an array with `count` values per image.
    package func images(of part: Int, times count: Int = 1) -> Range<Int> {
        let images = chunkRange(part, of: self.count, total: total)
        return (images.lowerBound * count)..<(images.upperBound * count)
    }
}
