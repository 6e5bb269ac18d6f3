internal import ImprintImages
public import ImprintModel

extension [Classification] {
    /// Returns the confidence, 0…1, that the image has any label except the given ones.
    ///
    /// For example, a model may have the labels "LightOnDark" and "DarkOnLight" for two variants of a logo, and "Other". The confidence in the
    /// logo is:
    ///
    /// ```swift
    /// classifications.groupedConfidence(excluding: ["Other"], sumToOne: classifier.confidencesSumToOne)
    /// ```
    ///
    /// Call the method on all classifications of an image, not only on those that a `ConfidenceRule` accepts.
    /// - Parameters:
    ///   - labels: The labels to exclude.
    ///   - sumToOne: Whether the confidences of all labels sum to 1, as given by `ImageClassifier.confidencesSumToOne`. If true, the result is
    ///     the sum of the confidences. If false, it is 1 − Π(1 − cᵢ): the probability of any of the labels if they are independent.
    public func groupedConfidence(excluding labels: Set<String>, sumToOne: Bool) -> Float {
        lazy.filter { !labels.contains($0.label) }.map(\.confidence).grouped(sumToOne)
    }

    /// Returns the classifications with the labels of each category combined into one classification.
    ///
    /// The classification of a category has the grouped confidence of its labels, as in `groupedConfidence(excluding:sumToOne:)`, and the box
    /// of its most confident label. It has no precision–recall curve and no threshold. Classifications of labels without a category do not
    /// change.
    ///
    /// ```swift
    /// if let categories = classifier.model.categories {
    ///     classifications = classifications.rolledUp(into: categories, sumToOne: classifier.confidencesSumToOne)
    /// }
    /// ```
    /// - Parameters:
    ///   - categories: The categories, for example `ModelFile.categories`.
    ///   - sumToOne: Whether the confidences of all labels sum to 1, as given by `ImageClassifier.confidencesSumToOne`.
    /// - Returns: The classifications by descending confidence.
    public func rolledUp(into categories: Categories, sumToOne: Bool) -> [Classification] {
        var members: [String: [Classification]] = [:]
        var rest: [Classification] = []
        for classification in self {
            if let category = categories.category(of: classification.label) {
                members[category, default: []].append(classification)
            } else {
                rest.append(classification)
            }
        }
        // Sorted by name, so that the order of equal confidences is deterministic.
        let groups = members.sorted { $0.key < $1.key }.map { category, members in
            Classification(
                label: category, confidence: members.lazy.map(\.confidence).grouped(sumToOne),
                box: members.max { $0.confidence < $1.confidence }?.box)
        }
        return Classification.ranked(groups + rest)
    }
}

extension [DetectedObject] {
    /// Returns the probability, 0…1, that at least one object has any label except the given ones.
    ///
    /// The probability is 1 − Π(1 − cᵢ) over the confidences cᵢ of these objects, as if the objects were independent.
    /// - Parameter labels: The labels to exclude.
    public func groupedConfidence(excluding labels: Set<String> = []) -> Float {
        lazy.filter { !labels.contains($0.label) }.map(\.confidence).grouped(false)
    }

    /// Returns the objects with the name of their category as the label; objects of labels without a category do not change.
    /// - Parameter categories: The categories, for example `ModelFile.categories`.
    public func rolledUp(into categories: Categories) -> [DetectedObject] {
        map { object in
            DetectedObject(
                label: categories.category(of: object.label) ?? object.label, confidence: object.confidence,
                box: object.box)
        }
    }
}

extension Sequence<Float> {
    /// Returns the probability of any of the elements.
    fileprivate func grouped(_ sumToOne: Bool) -> Float {
        // The sum may exceed 1 by a rounding error.
        sumToOne ? Swift.min(reduce(0, +), 1) : 1 - reduce(1) { $0 * (1 - $1) }
    }
}
