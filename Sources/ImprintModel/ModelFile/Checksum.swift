internal import CImprintKernels
internal import Foundation

/// A checksum of a file's data and of its digest, which finds damage a hundred times as fast as the digest does.
///
/// It is the CRC-32C (RFC 3720, appendix B.4) of the data followed by the digest's 64 characters, as 8 hexadecimal digits.
struct Checksum {
    private var value: UInt32 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        value = imprint_crc32c(value, bytes.baseAddress, bytes.count)
    }

    /// Goes on with numbers as they lie in memory.
    /// - Returns: whether all of them are finite.
    mutating func update(_ numbers: UnsafeMutableBufferPointer<Float>) -> Bool {
        var isFinite = true
        // A piece stays in the cache for the second look at it.
        for start in stride(from: 0, to: numbers.count, by: 1 << 16) {
            let piece = UnsafeBufferPointer(rebasing: numbers[start..<min(start + 1 << 16, numbers.count)])
            update(UnsafeRawBufferPointer(piece))
            isFinite = imprint_all_finite(piece.baseAddress, piece.count) != 0 && isFinite
        }
        return isFinite
    }

    /// What stands in a file with this digest, after all of the data.
    func hexadecimal(digest: String) -> String {
        var whole = self
        Array(digest.utf8).withUnsafeBytes { whole.update($0) }
        return String(format: "%08x", whole.value)
    }
}
