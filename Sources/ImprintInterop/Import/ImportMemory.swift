internal import ImprintCore

extension ImportError.Problem {
    /// The maximum number of copies of a tensor in memory at once: decoded, transposed and in the network's layout.
    private static let copies = 3

    /// Checks that there is enough memory to read and convert a tensor with `count` elements.
    ///
    /// A failed array allocation would end the process.
    /// - Throws: `ImportError.Problem.outOfMemory`.
    static func checkMemory(forElements count: Int) throws(ImportError.Problem) {
        let (byteCount, overflow) = count.multipliedReportingOverflow(by: copies * MemoryLayout<Float>.stride)
        guard !overflow, SystemMemory.allows(byteCount) else { throw .outOfMemory(byteCount: byteCount) }
    }
}
