/// Results as CSV (RFC 4180): a row for each shown label, or one row for a photo without labels or with an error.
struct PhotoTable {
    /// Whether the rows contain bounding boxes.
    let hasBoxes: Bool

    var header: String {
        csvRow(
            ["file", "rank", "label", "confidence"] + (hasBoxes ? ["x", "y", "width", "height"] : []) + ["error"])
    }

    func rows(_ result: PhotoResult) -> String {
        guard !result.classifications.isEmpty, !result.isRejected else { return row(of: result.file) }
        return result.classifications.enumerated().map { index, classification in
            let box = classification.box.map { [$0.x, $0.y, $0.width, $0.height].map { "\($0)" } }
            return row(
                of: result.file,
                ["\(index + 1)", classification.label, "\(classification.confidence)"] + (hasBoxes ? box ?? [] : []))
        }.joined(separator: "\n")
    }

    func row(_ failure: PhotoFailureLine) -> String { row(of: failure.file, error: failure.error) }

    /// Returns a row; missing fields are empty.
    private func row(of file: String, _ fields: [String] = [], error: String = "") -> String {
        let count = hasBoxes ? 7 : 3
        return csvRow([file] + fields + Array(repeating: "", count: count - fields.count) + [error])
    }
}
