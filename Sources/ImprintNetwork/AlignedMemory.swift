internal import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// One zeroed block of memory, aligned to pages, freed with its owner.
///
/// Its size never changes, so pointers into it stay valid for as long as it lives.
final class AlignedMemory: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    let byteCount: Int

    /// Throws `NetworkError.outOfMemory` where the block is larger than the memory that is left, or the system refuses it.
    init(byteCount: Int) throws(NetworkError) {
        let alignment = 1 << 12
        self.byteCount = max(byteCount, alignment)
        // Linux promises more memory than there is and kills who uses it.
        guard byteCount <= Self.unchecked || byteCount <= SystemMemory.available else {
            throw .outOfMemory(bytes: byteCount)
        }
        var block: UnsafeMutableRawPointer?
        let status = posix_memalign(&block, alignment, self.byteCount)
        guard status == 0, let block else { throw .outOfMemory(bytes: byteCount) }
        base = block
        #if os(Linux)
            // Page faults cost more than arithmetic on large activations; huge pages make them rare.
            madvise(base, self.byteCount, MADV_HUGEPAGE)
        #endif
        memset(base, 0, self.byteCount)
    }

    deinit { free(base) }

    /// How small a block is not worth the question what is left.
    private static let unchecked = 1 << 26

    func floats(at byteOffset: Int = 0) -> UnsafeMutablePointer<Float> {
        assert((0..<byteCount).contains(byteOffset), "offset \(byteOffset) outside 0..<\(byteCount)")
        return (base + byteOffset).assumingMemoryBound(to: Float.self)
    }
}

/// `count` rounded up to a multiple of `unit`.
func roundedUp(_ count: Int, to unit: Int) -> Int { (count + unit - 1) / unit * unit }
