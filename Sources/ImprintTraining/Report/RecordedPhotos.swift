package import ImprintModel

/// The numbers of photos in a training record, and the set that its accuracy was measured on.
package struct RecordedPhotos {
    /// The set that the accuracy was measured on.
    package enum AccuracySet {
        case validation, training
        /// Composites of the artwork of a detector without training photos.
        case composites
    }

    /// The number of training photos.
    package let training: Int
    /// The number of validation photos.
    package let validation: Int
    /// Whether the numbers count labels: a photo of a multi-label model counts once for each of its labels, and not without any.
    package let countsLabels: Bool
    /// Whether a detector was trained without photos, only on composites of artwork.
    package let isOnlyArtwork: Bool
    /// The set that the accuracy was measured on.
    package let accuracySet: AccuracySet

    /// The number of photos that the accuracy was measured on; nil if it is unknown, and for composites.
    package var accuracyCount: Int? {
        let count =
            switch accuracySet {
            case .validation: validation
            case .training: training
            case .composites: 0
            }
        return countsLabels || count == 0 ? nil : count
    }

    /// Returns the 95 % confidence interval of the accuracy on other photos; nil for the accuracy on training images or an unknown number of photos.
    func accuracyInterval(_ accuracy: Double) -> ClosedRange<Double>? {
        guard accuracySet == .validation, let count = accuracyCount else { return nil }
        return Evaluation.interval(hits: Int((accuracy * Double(count)).rounded()), of: count)
    }

    /// Counts the photos of a model's training record; nil without a record.
    ///
    /// The record may be invalid, so the counts are clamped to prevent overflow of their sum.
    package init?(_ model: ModelFile) {
        guard let record = model.training else { return nil }
        func sum(_ counts: [String: Int]) -> Int { counts.values.reduce(0) { $0 + min(max($1, 0), 1 << 40) } }
        var isDetector = false
        if case .detector = record.hyperparameters { isDetector = true }
        let training = sum(record.trainingImages)
        let isOnlyArtwork = isDetector && training == 0
        let isValidated = record.keepsInitialParameters || record.bestEpochMetrics?.validationAccuracy != nil
        self.training = training
        validation = sum(record.validationImages)
        countsLabels = model.isMultiLabel
        self.isOnlyArtwork = isOnlyArtwork
        accuracySet = isValidated ? .validation : isOnlyArtwork ? .composites : .training
    }
}

extension TrainingRecord {
    /// The end of a title: " of the trained model" if the model with this record was merged or personalized after training; otherwise empty.
    var owner: String { trainedModel == nil ? "" : " of the trained model" }
}
