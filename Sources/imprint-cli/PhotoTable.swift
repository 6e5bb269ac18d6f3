/// Results as CSV (RFC 4180): a row for each shown label, or one row for a photo without labels, a rejected photo or an error.
///
/// With counted labels, a photo has one row with a column for each of them.
struct PhotoTable {
    /// Whether the rows contain bounding boxes.
    let hasBoxes: Bool
    /// Whether the rows contain the verdict of a novelty rule.
    let hasVerdicts: Bool
    /// The labels that are counted; nil for a row for each label.
    var countedLabels: [String]?

    var header: String {
        if let countedLabels { return csvRow(["file"] + Self.columns(of: countedLabels) + ["error"]) }
        return csvRow(
            ["file", "rank", "label", "confidence"] + (hasBoxes ? ["x", "y", "width", "height"] : []) + ["error"]
                + (hasVerdicts ? ["novelty", "rejected"] : []))
    }

    /// Returns the names of the columns of labels: a label that is named like another column gets the prefix "label ".
    private static func columns(of labels: [String]) -> [String] {
        labels.map { label in
            guard ["file", "error"].contains(label) else { return label }
            var name = "label \(label)"
            while labels.contains(name) { name = "label \(name)" }
            return name
        }
    }

    func rows(_ result: PhotoResult) -> String {
        if let countedLabels {
            return csvRow([result.file] + result.counts(of: countedLabels).map { "\($0)" } + [""])
        }
        guard !result.classifications.isEmpty, !result.isRejected else {
            return row(of: result.file, verdict: result.verdict)
        }
        return result.classifications.enumerated().map { index, classification in
            let box = classification.box.map { [$0.x, $0.y, $0.width, $0.height].map { "\($0)" } }
            return row(
                of: result.file,
                ["\(index + 1)", classification.label, "\(classification.confidence)"] + (hasBoxes ? box ?? [] : []),
                verdict: result.verdict)
        }.joined(separator: "\n")
    }

    func row(_ failure: PhotoFailureLine) -> String { row(of: failure.file, error: failure.error) }

    /// Returns a row; missing fields are empty.
    private func row(
        of file: String, _ fields: [String] = [], error: String = "", verdict: NoveltyVerdict? = nil
    ) -> String {
        if let countedLabels { return csvRow([file] + countedLabels.map { _ in "" } + [error]) }
        let missing = Array(repeating: "", count: (hasBoxes ? 7 : 3) - fields.count)
        let novelty = verdict?.novelty.map { "\($0)" } ?? ""
        let verdict = hasVerdicts ? [novelty, verdict.map { "\($0.isRejected)" } ?? ""] : []
        return csvRow([file] + fields + missing + [error] + verdict)
    }
}
