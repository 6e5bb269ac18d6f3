internal import ImprintCore
internal import ImprintModel

/// Warns about names that differ only in case, spaces, hyphens, underscores or Unicode form,
/// because they are probably meant as one name.
/// - Parameters:
///   - labels: The names.
///   - noun: The plural of what they name.
///   - added: Only warn about groups with one of these names; nil for all groups.
///   - consequence: A sentence that states the effect of different names.
func warnAboutSimilarLabels(
    _ labels: [String], noun: String = "labels", added: [String]? = nil, consequence: String
) {
    let groups = similarLabels(in: labels).filter { group in
        added?.contains { group.contains($0) } ?? true
    }
    let warnings = groups.map { group in
        let names = escapingLookalikes(group).map { "\"\(shown($0))\"" }
        return
            "The \(noun) \(names.dropLast().joined(separator: ", ")) and \(names[names.count - 1]) \(labelSimilarity). "
            + "\(consequence) If they mean the same, use one spelling."
    }
    warn(warnings) { "\(counted($0, "more group")) of \(noun) differ only in this way." }
}

/// Warns about categories that differ from each other, or from a label without a category, only in case, spaces, hyphens,
/// underscores or Unicode form.
/// - Parameter labels: The labels of the model.
func warnAboutSimilarCategories(_ categories: Categories, labels: [String]) {
    let names = categories.names
    warnAboutSimilarLabels(
        names + labels.filter { categories.category(of: $0) == nil }, noun: "categories and labels", added: names,
        consequence: "They have separate confidences.")
}

/// Warns about new labels that are probably misspelt, because they are nearly those of a model.
/// - Parameters:
///   - added: The new labels.
///   - known: The labels of the model.
func warnAboutMisspeltLabels(_ added: [String], known: [String]) {
    let search = LabelSearch(known)
    let warnings = added.compactMap { label in
        search.nearest(to: label).map {
            "The new label \"\(shown(label))\" is nearly the label \"\(shown($0))\" of the model, which learns it as a different label. If "
                + "it is misspelt, correct it."
        }
    }
    warn(warnings) { "\(counted($0, "more new label")) may be misspelt." }
}

/// Shows the first five warnings, and `rest` with the number of the others.
private func warn(_ warnings: [String], rest: (Int) -> String) {
    let limit = 5
    for warning in warnings.prefix(limit) { Terminal.warn(warning) }
    if warnings.count > limit { Terminal.warn(rest(warnings.count - limit)) }
}
