/// Counts how many numbers a reader decodes, so that a file of many nodes that each read the same ones comes to an end.
final class ReadingLimit {
    private var room: Int

    /// - Parameter bytes: The size of all files of the model.
    init(bytes: Int) { room = 4 * bytes + 1 << 22 }

    /// Takes account of numbers that were decoded.
    /// - Throws: `ImportError.Problem` if the file's numbers were read again and again.
    func read(_ count: Int, for name: String) throws(ImportError.Problem) {
        room -= count
        guard room >= 0 else {
            throw .exceedsLimit(reason: "\(name) reads numbers that others have read more often than any model does")
        }
    }
}
