internal import CImprintKernels
internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// A memory-mapped file, whose bytes are read from the disk on access.
///
/// If a mapped file shrinks, access to it ends the process. Only map files that no other process writes, such as models to
/// import.
package final class MappedFile: Sendable {
    /// The file's path for messages.
    let path: String
    /// The number of bytes.
    let count: Int
    // Read-only; `deinit` releases it.
    private nonisolated(unsafe) let base: UnsafeRawPointer?
    private let isMapped: Bool

    /// Maps the file at `url`.
    ///
    /// - Throws: `FileError` if the file is unreadable.
    init(contentsOf url: URL) throws(FileError) {
        path = url.path(percentEncoded: false)
        let file = try RegularFile(path)
        count = file.byteCount
        isMapped = true
        guard count > 0 else {
            base = nil
            return
        }
        // The mapping stays after the file is closed.
        let mapped = withExtendedLifetime(file) {
            mmap(nil, file.byteCount, PROT_READ, MAP_PRIVATE, file.descriptor, 0)
        }
        guard let mapped, mapped != MAP_FAILED else {
            throw .cannotRead(path, errno: errno)
        }
        base = UnsafeRawPointer(mapped)
    }

    /// Copies the bytes of a file that is already in memory.
    package init(_ bytes: [UInt8], named name: String) {
        path = name
        count = bytes.count
        isMapped = false
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        copy.copyBytes(from: bytes)
        base = UnsafeRawPointer(copy.baseAddress)
    }

    deinit {
        guard let base = base.map(UnsafeMutableRawPointer.init(mutating:)) else { return }
        if isMapped { munmap(base, count) } else { base.deallocate() }
    }

    subscript(offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < count, "byte \(offset) is beyond the file's \(count) bytes")
        return base!.load(fromByteOffset: offset, as: UInt8.self)
    }

    /// Returns the bytes of a range, which must be within the file.
    package func bytes(_ range: Range<Int>) -> UnsafeRawBufferPointer {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "\(range) is beyond the file's \(count) bytes")
        return UnsafeRawBufferPointer(start: base.map { $0 + range.lowerBound }, count: range.count)
    }

    /// Returns the little-endian integer at an offset of any alignment.
    func load<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number {
        Number(littleEndian: bytes(offset..<(offset + MemoryLayout<Number>.size)).loadUnaligned(as: type))
    }

    /// Returns a range of the file as text; nil if it is not UTF-8.
    func text(_ range: Range<Int>) -> String? { String(validating: bytes(range), as: UTF8.self) }

    /// Returns a range of the file, a multiple of four bytes, as 32-bit floating-point values.
    ///
    /// - Throws: `ImportError.Problem.outOfMemory`.
    func floats(_ range: Range<Int>) throws(ImportError.Problem) -> [Float] {
        try ImportError.Problem.checkMemory(forElements: range.count / 4)
        defer { releasePages(range) }
        return [Float](unsafeUninitializedCapacity: range.count / 4) { values, initialized in
            UnsafeMutableRawBufferPointer(values).copyMemory(
                from: UnsafeRawBufferPointer(rebasing: bytes(range)[..<(range.count / 4 * 4)]))
            initialized = range.count / 4
        }
    }

    /// Returns a range of the file, a multiple of two bytes, as converted 16-bit floating-point values.
    ///
    /// - Throws: `ImportError.Problem.outOfMemory`.
    func halves(_ range: Range<Int>) throws(ImportError.Problem) -> [Float] {
        let count = range.count / 2
        try ImportError.Problem.checkMemory(forElements: count)
        defer { releasePages(range) }
        // The offset may be odd, so copy the values to aligned memory first.
        var halves = [UInt16](repeating: 0, count: min(count, EncodedFloats.partLength))
        return [Float](unsafeUninitializedCapacity: count) { values, initialized in
            for first in stride(from: 0, to: count, by: EncodedFloats.partLength) {
                let length = min(EncodedFloats.partLength, count - first)
                let start = range.lowerBound + 2 * first
                halves.withUnsafeMutableBytes { $0.copyMemory(from: bytes(start..<(start + 2 * length))) }
                imprint_float16_to_float32(halves, values.baseAddress.map { $0 + first }, length)
            }
            initialized = count
        }
    }

    /// Lets the system reclaim the pages of a large range; a later access reads them from the disk again.
    private func releasePages(_ range: Range<Int>) {
        let page = Int(getpagesize())
        let (start, end) = ((range.lowerBound + page - 1) / page * page, range.upperBound / page * page)
        guard isMapped, end - start >= 1 << 20, let base else { return }
        madvise(UnsafeMutableRawPointer(mutating: base) + start, end - start, MADV_DONTNEED)
    }
}
