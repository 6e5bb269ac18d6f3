internal import ImprintCore

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// One block of memory, zeroed or a file's, given back to the system with its owner.
///
/// Its size never changes, so pointers into it stay valid for as long as it lives.
final class AlignedMemory: @unchecked Sendable {
    let base: UnsafeMutableRawPointer
    let byteCount: Int
    private let mapping: UnsafeMutableRawBufferPointer

    /// Asks the system for memory.
    /// - Parameter isWrittenOnce: Whether it is filled before anything waits for it, so that the first write of a page may take its time then.
    /// - Throws: `NetworkError.outOfMemory` if the block is larger than the memory that is left, or the system refuses it.
    init(byteCount: Int, isWrittenOnce: Bool = false) throws(NetworkError) {
        self.byteCount = max(byteCount, 1 << 12)
        // Linux promises more memory than there is and kills who uses it.
        guard SystemMemory.allows(byteCount) else { throw .outOfMemory(bytes: byteCount) }
        // Of the system and not of the C library, which keeps what threads free for later, in pieces.
        let block = mmap(nil, self.byteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
        guard let block, block != MAP_FAILED else { throw .outOfMemory(bytes: byteCount) }
        base = block
        mapping = UnsafeMutableRawBufferPointer(start: block, count: self.byteCount)
        #if os(Linux)
            // Page faults cost more than arithmetic on large activations; huge pages make them rare.
            madvise(base, self.byteCount, MADV_HUGEPAGE)
        #endif
        // It is zero already; the first write of a page is what takes its time, here and not in a step.
        if !isWrittenOnce { memset(base, 0, self.byteCount) }
    }

    /// Takes some of an open file's bytes for memory: they are read when they are looked at, and what is written stays in memory.
    ///
    /// - Parameters:
    ///   - descriptor: The file, which may be closed afterwards.
    ///   - offset: Where the bytes begin in the file.
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

    func floats(at byteOffset: Int = 0) -> UnsafeMutablePointer<Float> {
        assert((0..<byteCount).contains(byteOffset), "offset \(byteOffset) outside 0..<\(byteCount)")
        return (base + byteOffset).assumingMemoryBound(to: Float.self)
    }
}

/// `count` rounded up to a multiple of `unit`.
func roundedUp(_ count: Int, to unit: Int) -> Int { (count + unit - 1) / unit * unit }
