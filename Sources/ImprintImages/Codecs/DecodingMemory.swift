internal import Foundation
internal import ImprintCore

/// Limits the memory of concurrent decoding.
///
/// Very large images are decoded one at a time, and smaller ones concurrently, as many as fit.
final class DecodingMemory: @unchecked Sendable {
    /// The shared instance for all decoding.
    static let shared = DecodingMemory(capacity: max(largeByteCount, SystemMemory.available / 4)) {
        SystemMemory.available
    }

    /// Images that need more memory are decoded one at a time.
    static let largeByteCount = 1 << 28
    /// Images that need less memory are not counted.
    static let smallByteCount = 1 << 26

    private let capacity: Int
    private let available: @Sendable () -> Int
    private let condition = NSCondition()
    private var byteCount = 0
    private var largeCount = 0

    /// Creates a limit.
    /// - Parameters:
    ///   - capacity: The maximum number of bytes of all images together, unless a single image needs more.
    ///   - available: The number of bytes available to the process; an image gets at most half of them.
    init(capacity: Int, available: @escaping @Sendable () -> Int) {
        self.capacity = capacity
        self.available = available
    }

    /// Waits until `needed` bytes are free, then calls `body`, which uses about that many.
    /// - Throws: `ImageError.outOfMemory` if `needed` exceeds half of the available memory, and the errors of `body`.
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

    private func take(_ bytes: Int, _ images: Int) {
        byteCount += bytes
        if abs(bytes) > Self.largeByteCount { largeCount += images }
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
    /// Returns the error of a decoder that could not allocate memory.
    static func decoderOutOfMemory(_ file: URL, _ format: ImageFormat) -> ImageError {
        .outOfMemory(file: file, reason: "the \(format.rawValue) decoder could not allocate memory")
    }
}
