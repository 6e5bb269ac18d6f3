internal import ImprintCore

/// Warns about labels that differ only in case, spaces or Unicode form, because they are probably meant as one label.
/// - Parameters:
///   - labels: The labels.
///   - added: Only warn about groups with one of these labels; nil for all groups.
///   - consequence: A sentence that states the effect of different labels.
func warnAboutSimilarLabels(_ labels: [String], added: [String]? = nil, consequence: String) {
    let groups = similarLabels(in: labels).filter { group in
        added?.contains { group.contains($0) } ?? true
    }
    let limit = 5
    for group in groups.prefix(limit) {
        let names = group.map { "\"\(shown($0))\"" }
        Terminal.warn(
            "The labels \(names.dropLast().joined(separator: ", ")) and \(names[names.count - 1]) \(labelSimilarity). "
                + "\(consequence) If they mean the same, use one spelling.")
    }
    if groups.count > limit {
        Terminal.warn("\(counted(groups.count - limit, "more group")) of labels differ only in this way.")
    }
}
