internal import ImprintImages
public import ImprintModel

extension [Classification] {
    /// How sure it is that any label but some is in the picture, 0…1.
    ///
    /// A model that knows a logo as "LightOnDark" and as "DarkOnLight", against "Other", is as sure of the logo as of both together:
    /// `observations.groupedConfidence(excluding: ["Other"])`. These must be all of the model's observations: what a rule left out counts for
    /// nothing.
    /// - Parameters:
    ///   - labels: The labels that do not count.
    ///   - isShared: Whether the confidences add up to 1, as `ImageClassifier.sharesConfidence` says: then theirs are added; otherwise the
    ///     result is 1 − Π(1 − cᵢ), the probability of any of them if they are independent.
    public func groupedConfidence(excluding labels: Set<String>, isShared: Bool = true) -> Float {
        lazy.filter { !labels.contains($0.label) }.map(\.confidence).grouped(isShared)
    }

    /// The observations with the labels of each category in the place of its labels, best first; what is in no category stays as it is.
    ///
    /// A category's confidence is that of any of its labels, as in `groupedConfidence(excluding:isShared:)`, and its place that of the likeliest
    /// of them. Nothing was measured of categories, so theirs have no curve and no threshold.
    public func rolledUp(into categories: Categories, isShared: Bool = true) -> [Classification] {
        var members: [String: [Classification]] = [:]
        var rest: [Classification] = []
        for observation in self {
            if let category = categories.category(of: observation.label) {
                members[category, default: []].append(observation)
            } else {
                rest.append(observation)
            }
        }
        // In the order of their names, so that equal confidences give the same order every time.
        let sums = members.sorted { $0.key < $1.key }.map { category, members in
            Classification(
                label: category, confidence: members.lazy.map(\.confidence).grouped(isShared),
                box: members.max { $0.confidence < $1.confidence }?.box)
        }
        return Classification.ranked(sums + rest)
    }
}

extension Sequence<Float> {
    /// The probability of any of them.
    fileprivate func grouped(_ isShared: Bool) -> Float {
        // Rounding must not make it more than certain.
        isShared ? Swift.min(reduce(0, +), 1) : 1 - reduce(1) { $0 * (1 - $1) }
    }
}
