internal import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// A block of memory: zeroed, or mapped from a file.
///
/// Its size is fixed, so pointers into it stay valid until it is deallocated.
final class AlignedMemory: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    let byteCount: Int
    private let mapping: UnsafeMutableRawBufferPointer

    /// Allocates zeroed memory.
    /// - Parameter isFilledByCaller: Whether the caller fills the block before the first step. If so, the initializer does not write to the
    ///   block, because the caller's writes take the page faults.
    /// - Throws: `NetworkError.outOfMemory` if the block is larger than the available memory, or the system refuses to allocate it.
    init(byteCount: Int, isFilledByCaller: Bool = false) throws(NetworkError) {
        self.byteCount = max(byteCount, 1 << 12)
        // Linux overcommits memory and kills the process that uses too much of it.
        guard SystemMemory.allows(byteCount) else { throw .outOfMemory(bytes: byteCount) }
        // mmap and not malloc: the C library would keep freed blocks, fragmented, in per-thread arenas.
        let block = mmap(nil, self.byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
        guard let block, block != MAP_FAILED else { throw .outOfMemory(bytes: byteCount) }
        base = block
        mapping = UnsafeMutableRawBufferPointer(start: block, count: self.byteCount)
        #if os(Linux)
            // Page faults cost more than arithmetic on large activations; huge pages make them rare.
            madvise(base, self.byteCount, MADV_HUGEPAGE)
        #endif
        // The memory is already zero. Writing to it takes the page faults here and not in the first step.
        if !isFilledByCaller { memset(base, 0, self.byteCount) }
    }

    /// Maps a part of an open file copy-on-write: pages are read on first access, and writes do not change the file.
    ///
    /// - Parameters:
    ///   - descriptor: The file, which may be closed afterwards.
    ///   - offset: The offset of the first byte in the file.
    /// - Returns: nil if the system cannot map the file.
    init?(mapping descriptor: Int32, at offset: Int, byteCount: Int) {
        let lead = offset % Int(getpagesize())
        let block = mmap(
            nil, lead + byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, off_t(offset - lead))
        guard let block, block != MAP_FAILED else { return nil }
        self.byteCount = byteCount
        base = block + lead
        mapping = UnsafeMutableRawBufferPointer(start: block, count: lead + byteCount)
    }

    deinit { munmap(mapping.baseAddress, mapping.count) }

    func floats() -> UnsafeMutablePointer<Float> { base.assumingMemoryBound(to: Float.self) }
}

/// Returns `count` rounded up to a multiple of `unit`.
func roundedUp(_ count: Int, to unit: Int) -> Int { (count + unit - 1) / unit * unit }
