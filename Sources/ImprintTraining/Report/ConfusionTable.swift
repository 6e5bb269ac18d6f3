internal import Foundation

/// The confusion matrix as a table with shaded cells.
package enum ConfusionTable {
    /// The maximum number of labels.
    static let labelLimit = 20

    /// Returns the table; empty without images.
    /// - Parameters:
    ///   - labels: The labels.
    ///   - matrix: The number of images of each true label (row) that were classified as each label (column).
    package static func html(labels: [String], matrix: [[Int]]) -> String {
        let total = matrix.reduce(0) { $0 + $1.reduce(0, +) }
        guard total > 0 else { return "" }
        let (names, counts) = shown(labels, matrix)
        let isTruncated = labels.count > labelLimit
        let columnSums = counts[0].indices.map { column in counts.reduce(0) { $0 + $1[column] } }
        let rows = counts.enumerated().map { row, counts in
            let sum = counts.reduce(0, +)
            let cells = counts.enumerated().map { column, count in
                cell(count, of: sum, kind: isTruncated && row == labelLimit ? .other : row == column ? .hit : .miss)
            }
            return
                "<tr><th scope=\"row\">\(names[row])</th>\(cells.joined())<td class=\"sum\">\(grouped(sum))</td></tr>"
        }
        let style = names.count > 6 ? "confusion upright" : "confusion"
        let table = """
            <table class="\(style)">
            <thead><tr><th scope="col"><span class="hidden">true label</span></th>\
            \(names.map { "<th scope=\"col\"><span>\($0)</span></th>" }.joined())\
            <th scope="col" class="sum"><span>photos</span></th></tr></thead>
            <tbody>
            \(rows.joined(separator: "\n"))
            </tbody>
            <tfoot><tr><th scope="row">predicted</th>\
            \(columnSums.map { "<td class=\"sum\">\(grouped($0))</td>" }.joined())<td class="sum">\(grouped(total))</td></tr></tfoot>
            </table>
            """
        let note =
            isTruncated
            ? " These are the \(labelLimit) labels of \(labels.count) with the most errors; the other labels are combined."
            : ""
        return Page.scrollBox("Confusion matrix", table)
            + "\n<p class=\"more\">Rows: true labels. Columns: predicted labels. Percentages are relative to the row total.\(note)</p>"
    }

    private enum Kind: String { case hit, miss, other }

    /// Returns the names, as HTML, and the counts of all labels.
    ///
    /// If there are too many labels, it returns those with the most errors, and a last row and column with the sums of the others.
    private static func shown(_ labels: [String], _ matrix: [[Int]]) -> (names: [String], counts: [[Int]]) {
        guard labels.count > labelLimit else { return (labels.map(isolated), matrix) }
        let errors = labels.indices.map { label in
            matrix[label].reduce(0, +) + matrix.reduce(0) { $0 + $1[label] } - 2 * matrix[label][label]
        }
        let kept = labels.indices.sorted { (errors[$1], $0) < (errors[$0], $1) }.prefix(labelLimit).sorted()
        let others = Set(labels.indices).subtracting(kept)
        func columns(_ row: [Int]) -> [Int] { kept.map { row[$0] } + [others.reduce(0) { $0 + row[$1] }] }
        let last = labels.indices.map { column in others.reduce(0) { $0 + matrix[$1][column] } }
        return (
            kept.map { isolated(labels[$0]) } + ["<i>\(others.count) others</i>"],
            kept.map { columns(matrix[$0]) } + [columns(last)]
        )
    }

    private static func cell(_ count: Int, of sum: Int, kind: Kind) -> String {
        guard count > 0 else { return "<td class=\"none\"><b>0</b></td>" }
        let share = Double(count) / Double(sum)
        // Even a single image among thousands is visible.
        let shade = String(format: "%.2f", 0.08 + 0.47 * share)
        return
            "<td class=\"\(kind)\" style=\"--shade: \(shade)\"><b>\(grouped(count))</b><small>\(wholePercent(share))</small></td>"
    }
}
