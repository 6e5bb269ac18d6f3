internal import Foundation

/// Returns the groups of different labels that are probably meant as one label: they differ only in case, spaces or Unicode form.
///
/// "Ring", "ring " and "ＲＩＮＧ" form a group. Canonically equivalent labels, such as the composed and the decomposed form of "é", are equal
/// strings, so they count once.
/// - Returns: The groups of at least two labels, in the order of `labels`.
package func similarLabels(in labels: [String]) -> [[String]] {
    var indices: [String: Int] = [:]
    var groups: [[String]] = []
    var seen: Set<String> = []
    for label in labels where seen.insert(label).inserted {
        let key = folded(label)
        if let index = indices[key] {
            groups[index].append(label)
        } else {
            indices[key] = groups.count
            groups.append([label])
        }
    }
    return groups.filter { $0.count > 1 }
}

/// Returns the first of some labels that differs from a text only in case, spaces or Unicode form, such as "Ring" for "ring".
/// - Returns: The label; nil if no label is similar, or if the text is one of the labels.
package func similarLabel(to text: String, in labels: [String]) -> String? {
    guard !labels.contains(text) else { return nil }
    let key = folded(text)
    return labels.first { folded($0) == key }
}

/// Returns the label that an unknown one probably means, as a remark for an error message: ` (similar to "Ring")`.
///
/// It is a similar label, otherwise the label with the smallest edit distance, which is at most a quarter of the characters of `unknown`.
/// - Returns: The remark; empty if no label is near, or if `unknown` is one of the labels.
package func similarityNote(for unknown: String, known: [String]) -> String {
    (similarLabel(to: unknown, in: known) ?? nearestLabel(to: unknown, in: known)).map {
        " (similar to \($0.debugDescription))"
    } ?? ""
}

/// Returns the label with the smallest edit distance, at most a quarter of the characters of a text; nil if none is near.
private func nearestLabel(to text: String, in labels: [String]) -> String? {
    let key = folded(text)
    let limit = key.count / 4
    // The time is quadratic in the length, and labels may come from untrusted files.
    guard (1...50).contains(limit), !labels.contains(text) else { return nil }
    var nearest: (label: String, distance: Int)?
    for label in labels {
        let other = folded(label)
        guard abs(other.count - key.count) <= limit else { continue }
        let distance = editDistance(key, other)
        if distance <= limit, distance < nearest?.distance ?? .max { nearest = (label, distance) }
    }
    return nearest?.label
}

/// Returns the Levenshtein distance: the number of insertions, deletions and replacements of characters.
package func editDistance(_ first: String, _ second: String) -> Int {
    let second = Array(second)
    var distances = Array(0...second.count)
    for (row, character) in first.enumerated() {
        var diagonal = row
        distances[0] = row + 1
        for (column, other) in second.enumerated() {
            let replaced = diagonal + (character == other ? 0 : 1)
            diagonal = distances[column + 1]
            distances[column + 1] = min(replaced, diagonal + 1, distances[column] + 1)
        }
    }
    return distances[second.count]
}

/// Returns a label without the differences that are easily overlooked: case, white space, invisible characters, and Unicode compatibility
/// forms such as full-width letters.
private func folded(_ label: String) -> String {
    let visible = String(label.unicodeScalars.filter { !$0.properties.isDefaultIgnorableCodePoint })
    let words = visible.precomposedStringWithCompatibilityMapping.split(whereSeparator: \.isWhitespace)
    // Upper case of lower case, because "ß" and "ẞ" are "SS", and "ς" and "σ" are "Σ".
    return words.joined(separator: " ").lowercased().uppercased()
}
