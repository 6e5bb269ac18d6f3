internal import Foundation

/// The difference between the labels of a group of `similarLabels(in:)`, as the predicate of a sentence.
package let labelSimilarity = "differ only in case, spaces, hyphens, underscores or Unicode form"

/// Returns the groups of different labels that are probably meant as one label: they differ only in case, spaces, hyphens, underscores
/// or Unicode form.
///
/// "TwoCircles" and "two_circles" form a group. So do "Ring", "ring " and "ＲＩＮＧ". Canonically equivalent labels, such as the composed and the
/// decomposed form of "é", are equal strings, so they count once.
/// - Returns: The groups of at least two labels, in the order of `labels`.
package func similarLabels(in labels: [String]) -> [[String]] {
    var indices: [String: Int] = [:]
    var groups: [[String]] = []
    var seen: Set<String> = []
    for label in labels where seen.insert(label).inserted {
        let key = withoutSeparators(folded(label))
        if let index = indices[key] {
            groups[index].append(label)
        } else {
            indices[key] = groups.count
            groups.append([label])
        }
    }
    return groups.filter { $0.count > 1 }
}

/// The difference between the labels of a pair of `transposedLabels(in:)` or a group of `similarLabels(in:)`, as the predicate of a sentence.
package let spellingSimilarity = labelSimilarity + ", or in the order of two neighbouring letters"

/// Returns the pairs of labels that differ in the order of two neighbouring letters, such as "chair" and "chiar", and otherwise only as
/// `similarLabels(in:)`.
///
/// As with `LabelSearch.nearest(to:)`, labels of fewer than four characters, such as "no" and "on", are not compared, and digits must have the
/// same order.
/// - Returns: The pairs, each in the order of `labels`. Of a group of similar labels, only the first is compared.
package func transposedLabels(in labels: [String]) -> [[String]] {
    var indices: [[Character]: Int] = [:]
    var pairs: [[String]] = []
    for (index, label) in labels.enumerated() {
        var key = Array(withoutSeparators(folded(label)))
        // The maximum bounds the time, which is proportional to the square of the number of characters.
        guard (4...200).contains(key.count), indices[key] == nil else { continue }
        for position in 1..<key.count where !key[position].isNumber && !key[position - 1].isNumber {
            guard key[position] != key[position - 1] else { continue }
            key.swapAt(position - 1, position)
            if let other = indices[key] { pairs.append([labels[other], label]) }
            key.swapAt(position - 1, position)
        }
        indices[key] = index
    }
    return pairs
}

/// Returns the first of some labels that differs from a text only in case, spaces or Unicode form, such as "Ring" for "ring".
/// - Parameter looksEqual: Whether the labels must look alike apart from their case, so that "m²" is not similar to "m2".
/// - Returns: The label; nil if no label is similar, or if the text is one of the labels.
package func similarLabel(to text: String, in labels: [String], looksEqual: Bool = false) -> String? {
    guard !labels.contains(text) else { return nil }
    let key = folded(text, keepsLook: looksEqual)
    return labels.first { folded($0, keepsLook: looksEqual) == key }
}

/// Returns an unknown label in quotation marks, with the label that it probably means: `"ring" (similar to "Ring")`.
///
/// That is a similar label, otherwise the nearest one, if there is any. Invisible characters are escaped if both labels look the same.
package func quoted(_ unknown: String, similarTo known: [String]) -> String {
    LabelSearch(known).quoted(unknown)
}

/// Finds the labels with almost the same spelling as others.
package struct LabelSearch: Sendable {
    private struct Entry {
        let label: String
        /// The position of the label.
        let index: Int
        let key: [Character]
    }

    private let labels: Set<String>
    /// The first label with each folded spelling without separators.
    private let similarLabels: [String: String]
    /// The labels by the number of characters of their folded spelling.
    private let entries: [Int: [Entry]]

    /// The maximum edit distance; with it, `keyLimit` bounds the time for labels of untrusted files.
    private static let distanceLimit = 50
    /// The maximum number of characters of a label that is compared by its edit distance.
    private static let keyLimit = 4 * (distanceLimit + 1)

    /// Creates a search in some labels.
    package init(_ labels: [String]) {
        var similarLabels: [String: String] = [:]
        var entries: [Int: [Entry]] = [:]
        for (index, label) in labels.enumerated() {
            let key = folded(label)
            let similarKey = withoutSeparators(key)
            guard similarLabels[similarKey] == nil else { continue }
            similarLabels[similarKey] = label
            let characters = Array(key)
            if characters.count < Self.keyLimit + Self.distanceLimit {
                entries[characters.count, default: []].append(Entry(label: label, index: index, key: characters))
            }
        }
        self.labels = Set(labels)
        (self.similarLabels, self.entries) = (similarLabels, entries)
    }

    /// Returns the text of `quoted(_:similarTo:)` for these labels; without a remark if `unknown` is one of them.
    package func quoted(_ unknown: String) -> String {
        guard !labels.contains(unknown),
            let label = similarLabels[withoutSeparators(folded(unknown))] ?? nearest(to: unknown)
        else { return unknown.debugDescription }
        let labels = quotedLookalikes([unknown, label])
        return "\(labels[0]) (similar to \(labels[1]))"
    }

    /// Returns the label with the smallest edit distance, which is at most a quarter of the characters of a text.
    ///
    /// Labels with other digits are not near, because they are probably numbered.
    /// - Returns: The label; nil if none is near, or if a label is equal or similar to the text.
    package func nearest(to text: String) -> String? {
        var comparisons = 0
        return nearest(to: text, comparisons: &comparisons)
    }

    /// Returns the label of `nearest(to:)`.
    /// - Parameter comparisons: Increases by the number of compared pairs of characters, which measures the time.
    package func nearest(to text: String, comparisons: inout Int) -> String? {
        let spelling = folded(text)
        let key = Array(spelling)
        guard similarLabels[withoutSeparators(spelling)] == nil, key.count < Self.keyLimit else { return nil }
        var limit = key.count / 4
        var nearest: (label: String, index: Int)?
        for count in (key.count - limit)...(key.count + limit) where limit > 0 {
            for entry in entries[count] ?? [] {
                guard let distance = editDistance(key, entry.key, limit: limit, comparisons: &comparisons),
                    distance < limit || entry.index < nearest?.index ?? .max,
                    key.filter(\.isNumber) == entry.key.filter(\.isNumber)
                else { continue }
                limit = distance
                nearest = (entry.label, entry.index)
            }
        }
        return nearest?.label
    }
}

/// Returns the edit distance: the number of insertions, deletions and replacements of characters, and of transpositions of neighbours.
///
/// It is the restricted Damerau–Levenshtein distance (optimal string alignment), which edits no part of a text twice.
package func editDistance(_ first: String, _ second: String) -> Int {
    let (first, second) = (Array(first), Array(second))
    let limit = max(first.count, second.count)
    return editDistance(first, second, limit: limit) ?? limit
}

/// Returns the edit distance; nil if it is above a limit.
///
/// The time is proportional to the limit and to the number of characters of the shorter text, and less if the texts differ early.
package func editDistance(_ first: [Character], _ second: [Character], limit: Int) -> Int? {
    var comparisons = 0
    return editDistance(first, second, limit: limit, comparisons: &comparisons)
}

/// Returns the distance of `editDistance(_:_:limit:)`.
/// - Parameter comparisons: Increases by the number of compared pairs of characters.
private func editDistance(
    _ first: [Character], _ second: [Character], limit: Int, comparisons: inout Int
) -> Int? {
    guard abs(first.count - second.count) <= limit else { return nil }
    guard !second.isEmpty else { return first.count }
    // Only the columns at most `limit` from the diagonal can have a distance of at most `limit`; the others stay above it.
    var previous = (0...second.count).map { min($0, limit + 1) }
    var current = [Int](repeating: limit + 1, count: second.count + 1)
    /// The row before `previous`, for transpositions.
    var earlier = current
    for (index, character) in first.enumerated() {
        let row = index + 1
        let columns = max(1, row - limit)...min(second.count, row + limit)
        comparisons += columns.count
        current[columns.lowerBound - 1] = columns.lowerBound == 1 ? row : limit + 1
        var minimum = current[columns.lowerBound - 1]
        for column in columns {
            let replaced = previous[column - 1] + (character == second[column - 1] ? 0 : 1)
            var distance = min(replaced, previous[column] + 1, current[column - 1] + 1)
            if row > 1, column > 1, character == second[column - 2], first[index - 1] == second[column - 1] {
                distance = min(distance, earlier[column - 2] + 1)
            }
            current[column] = distance
            minimum = min(minimum, distance)
        }
        guard minimum <= limit else { return nil }
        swap(&earlier, &previous)
        swap(&previous, &current)
    }
    let distance = previous[second.count]
    return distance <= limit ? distance : nil
}

/// Returns a label without the differences that are easily overlooked: case, white space, invisible characters, and Unicode compatibility
/// forms such as full-width letters.
/// - Parameter keepsLook: Whether to keep compatibility forms and the invisible characters that change others, such as joiners.
private func folded(_ label: String, keepsLook: Bool = false) -> String {
    // The last visible character.
    var base: Unicode.Scalar?
    var scalars = String.UnicodeScalarView()
    for scalar in label.unicodeScalars {
        let isInvisible = scalar.properties.isDefaultIgnorableCodePoint
        let isKept =
            switch scalar.value {
            // The tags in the emoji of a flag, such as that of Scotland.
            case 0xE0020...0xE007F: hasTags(base)
            // Joiners and variation selectors.
            case 0x200C, 0x200D, 0xFE00...0xFE0F: keepsLook
            default: !isInvisible
            }
        if isKept { scalars.append(scalar) }
        if !isInvisible { base = scalar }
    }
    let visible = String(scalars)
    let form =
        keepsLook ? visible.precomposedStringWithCanonicalMapping : visible.precomposedStringWithCompatibilityMapping
    // Upper case of lower case, because "ß" and "ẞ" are "SS", and "ς" and "σ" are "Σ".
    return form.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased().uppercased()
}

/// Returns a folded label without the spaces, hyphens and underscores between its words.
///
/// Those between digits become a space, because "1-2" is not "12", and those at the ends stay, because "A-" is not "A".
private func withoutSeparators(_ label: String) -> String {
    var result = ""
    var separators = ""
    for character in label {
        if character == " " || character == "-" || character == "_" {
            separators.append(character)
            continue
        }
        if result.isEmpty {
            result += separators
        } else if !separators.isEmpty, character.isNumber, result.last?.isNumber == true {
            result.append(" ")
        }
        separators = ""
        result.append(character)
    }
    return result + separators
}
