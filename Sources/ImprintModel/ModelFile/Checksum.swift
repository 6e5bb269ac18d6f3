internal import CImprintKernels
internal import Foundation

/// A checksum of a file's data and its digest, which is much faster to verify than the digest.
///
/// It is the CRC-32C (RFC 3720, appendix B.4) of the data followed by the digest's 64 characters, as 8 hexadecimal digits.
struct Checksum {
    private var value: UInt32 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        value = imprint_crc32c(value, bytes.baseAddress, bytes.count)
    }

    /// Adds float32 values in memory order.
    /// - Returns: Whether all of them are finite.
    mutating func update(_ values: UnsafeMutableBufferPointer<Float>) -> Bool {
        var isFinite = true
        // A chunk stays in the cache for the second pass over it.
        for start in stride(from: 0, to: values.count, by: 1 << 16) {
            let chunk = UnsafeBufferPointer(rebasing: values[start..<min(start + 1 << 16, values.count)])
            update(UnsafeRawBufferPointer(chunk))
            isFinite = imprint_all_finite(chunk.baseAddress, chunk.count) != 0 && isFinite
        }
        return isFinite
    }

    /// Returns the checksum of the data so far and its digest.
    func hexadecimal(digest: String) -> String {
        var checksum = self
        Array(digest.utf8).withUnsafeBytes { checksum.update($0) }
        return String(format: "%08x", checksum.value)
    }
}
