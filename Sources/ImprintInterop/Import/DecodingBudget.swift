/// A limit for the number of decoded tensor elements.
///
/// It stops the import of a file in which very many nodes read the same tensor.
final class DecodingBudget {
    private var remaining: Int

    /// - Parameter bytes: The total size of the model's files.
    init(bytes: Int) { remaining = 4 * bytes + 1 << 22 }

    /// - Parameter bytes: The total size of the files with compressed weights, in which a byte has at most eight elements.
    init(compressedBytes bytes: Int) { remaining = 8 * bytes + 1 << 20 }

    /// Counts decoded elements.
    /// - Throws: `ImportError.Problem` if the limit is exceeded.
    func read(_ count: Int, for name: String) throws(ImportError.Problem) {
        remaining -= count
        guard remaining >= 0 else {
            throw .exceedsLimit(reason: "\(name) reads tensors that other nodes have already read too many times")
        }
    }
}
