internal import Foundation
internal import ImprintCore

/// The memory that pictures take while several threads decode them.
///
/// Very large pictures are decoded one after the other, and smaller ones side by side, as many as fit.
final class DecodingMemory: @unchecked Sendable {
    /// The one that all decoding shares.
    static let shared = DecodingMemory(capacity: max(largeByteCount, SystemMemory.available / 4)) {
        SystemMemory.available
    }

    /// Pictures that take more are decoded one after the other.
    static let largeByteCount = 1 << 28
    /// Pictures that take less are not counted.
    static let smallByteCount = 1 << 26

    private let capacity: Int
    private let available: @Sendable () -> Int
    private let condition = NSCondition()
    private var byteCount = 0
    private var largeCount = 0

    /// - Parameters:
    ///   - capacity: How many bytes pictures take together, unless one alone takes more.
    ///   - available: The bytes that the process can take, of which a picture gets half.
    init(capacity: Int, available: @escaping @Sendable () -> Int) {
        self.capacity = capacity
        self.available = available
    }

    /// Calls `body`, which takes about `needed` bytes, as soon as so many are free.
    /// - Throws: `ImageError.outOfMemory` if they are more than half of the memory that is available, and what `body` throws.
    func withBytes<Result>(
        _ needed: Int, for header: ImageHeader, file: URL, _ body: () throws(ImageError) -> Result
    ) throws(ImageError) -> Result {
        guard needed > Self.smallByteCount else {
            guard SystemMemory.allows(needed) else { throw Self.failure(needed, of: available(), header, file) }
            return try body()
        }
        condition.lock()
        while byteCount > 0 && (byteCount + needed > capacity || (needed > Self.largeByteCount && largeCount > 0)) {
            condition.wait()
        }
        take(needed, 1)
        condition.unlock()
        defer {
            condition.lock()
            take(-needed, -1)
            condition.broadcast()
            condition.unlock()
        }
        let budget = available() / 2
        guard needed <= budget, SystemMemory.allows(needed) else {
            throw Self.failure(needed, of: budget, header, file)
        }
        return try body()
    }

    private func take(_ bytes: Int, _ pictures: Int) {
        byteCount += bytes
        if abs(bytes) > Self.largeByteCount { largeCount += pictures }
    }

    private static func failure(_ needed: Int, of budget: Int, _ header: ImageHeader, _ file: URL) -> ImageError {
        .outOfMemory(
            file: file,
            reason:
                "its \(header.width)x\(header.height) pixels need about \(SystemMemory.text(needed)), expected at most "
                + SystemMemory.text(budget))
    }
}

extension ImageError {
    /// A decoder's own allocation failed.
    static func decoderOutOfMemory(_ file: URL, _ format: ImageFormat) -> ImageError {
        .outOfMemory(file: file, reason: "the \(format.rawValue) decoder was refused memory")
    }
}
