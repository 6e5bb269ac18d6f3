internal import ImprintCore

extension ImportError.Problem {
    /// How many arrays of a tensor's numbers there are at a time at most: as read, turned and in the order of the network.
    private static let copies = 3

    /// Checks that a tensor of so many numbers can be read and converted: an array that is refused memory would end the process.
    /// - Throws: `ImportError.Problem.outOfMemory`.
    static func checkMemory(forNumbers count: Int) throws(ImportError.Problem) {
        let (byteCount, overflow) = count.multipliedReportingOverflow(by: copies * MemoryLayout<Float>.stride)
        guard !overflow, SystemMemory.allows(byteCount) else { throw .outOfMemory(byteCount: byteCount) }
    }
}
