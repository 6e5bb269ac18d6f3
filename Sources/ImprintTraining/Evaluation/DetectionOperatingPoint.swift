public import Imprint

extension DetectionMetrics {
    /// The numbers of correct, wrong and missing detections at IoU .5.
    ///
    /// Detections that match only a crowd do not count.
    public struct Counts: Codable, Hashable, Sendable {
        /// The number of objects that were found.
        public var truePositives = 0
        /// The number of detections that are not matched to an object: other image content, an IoU below .5, or an object that another
        /// detection matches.
        public var falsePositives = 0
        /// The number of objects that were not found.
        public var falseNegatives = 0

        /// The share of the detections that are correct, TP / (TP + FP); nil if there are no detections.
        public var precision: Double? { quotient(truePositives, truePositives + falsePositives) }
        /// The share of the objects that were found, TP / (TP + FN); nil if there are no objects.
        public var recall: Double? { quotient(truePositives, truePositives + falseNegatives) }
        /// The harmonic mean of precision and recall, 2 TP / (2 TP + FP + FN); nil if there are no detections and no objects.
        public var f1: Double? { quotient(2 * truePositives, 2 * truePositives + falsePositives + falseNegatives) }

        private func quotient(_ count: Int, _ total: Int) -> Double? {
            total > 0 ? Double(count) / Double(total) : nil
        }
    }

    /// The metrics of the detections whose confidence reaches a threshold.
    public struct OperatingPoint: Codable, Hashable, Sendable {
        /// The minimum confidence of a detection of each label.
        public let thresholds: [Double]
        /// The counts of each label.
        public let perLabel: [Counts]
        /// The counts of all labels together, whose precision, recall and F1 are micro-averages.
        public let total: Counts
        /// The mean number of detections in a photo that shows no object of the labels; nil without such photos.
        ///
        /// Every detection in such a photo is a false positive.
        public let falsePositivesPerEmptyPhoto: Double?
    }

    /// Returns the counts of all labels together in each photo, in the order of `predictions`.
    /// - Parameter thresholds: The minimum confidence of each label, in the order of `labels`.
    func countsByPhoto(thresholds: [Double]) -> [Counts] {
        check(thresholds)
        var counts = predictions.map { _ in Counts() }
        for (matches, threshold) in zip(matches, thresholds) {
            for match in matches { counts[match.photo].add(match, threshold) }
        }
        return counts
    }

    /// An object that was not found.
    public struct MissedObject: Hashable, Sendable {
        /// The photo of the object.
        public let photo: AnnotatedPhoto
        /// The object.
        public let object: AnnotatedPhoto.Object
        /// The confidence of the detection that matches the object but does not reach the threshold; nil if no detection has an IoU of .5.
        public let confidence: Float?
    }

    /// A detection that is not matched to an object.
    public struct FalsePositive: Hashable, Sendable {
        /// The photo.
        public let photo: AnnotatedPhoto
        /// The detection.
        public let detection: DetectedObject
    }

    /// Returns the metrics at IoU .5 of the detections whose confidence reaches the threshold of their label.
    ///
    /// Detections with a lower confidence never take an object from those with a higher one, so the matching does not depend on the thresholds.
    /// - Parameter thresholds: The minimum confidence of each label, in the order of `labels`.
    /// - Precondition: There are as many thresholds as labels.
    public func operatingPoint(thresholds: [Double]) -> OperatingPoint {
        check(thresholds)
        var perLabel: [Counts] = []
        for (matches, threshold) in zip(matches, thresholds) {
            perLabel.append(matches.reduce(into: Counts()) { $0.add($1, threshold) })
        }
        return OperatingPoint(
            thresholds: thresholds, perLabel: perLabel,
            total: perLabel.reduce(into: Counts()) { $0.add($1) },
            falsePositivesPerEmptyPhoto: falsePositivesPerEmptyPhoto(thresholds))
    }

    /// Returns the metrics at IoU .5 of the detections whose confidence reaches one threshold for all labels.
    /// - Parameter threshold: The minimum confidence.
    public func operatingPoint(threshold: Double) -> OperatingPoint {
        operatingPoint(thresholds: labels.map { _ in threshold })
    }

    /// Returns the objects that were not found, worst first.
    ///
    /// Objects without any detection come first, then those whose detection has the lowest confidence. Of equal ones, an object that covers more
    /// of its photo comes first.
    /// - Parameters:
    ///   - thresholds: The minimum confidence of each label, in the order of `labels`.
    ///   - limit: The maximum number of objects.
    /// - Precondition: There are as many thresholds as labels. `DetectionEvaluation.thresholds` is empty for pooled detections.
    public func missedObjects(thresholds: [Double], limit: Int) -> [MissedObject] {
        check(thresholds)
        let missed = zip(matches, thresholds).flatMap { matches, threshold in
            matches.flatMap { match in
                match.objects.filter { !Self.reaches($0.confidence, threshold) }.map { object in
                    let photo = predictions[match.photo].photo
                    return MissedObject(
                        photo: photo, object: photo.objects[object.index], confidence: object.confidence)
                }
            }
        }
        func rank(_ missed: MissedObject) -> (Float, Float) {
            (missed.confidence ?? -.infinity, -missed.object.box.width * missed.object.box.height)
        }
        return Array(missed.sorted { rank($0) < rank($1) }.prefix(max(limit, 0)))
    }

    /// Returns the false positives with the highest confidence, in descending order.
    /// - Parameters:
    ///   - thresholds: The minimum confidence of each label, in the order of `labels`.
    ///   - limit: The maximum number of detections.
    /// - Precondition: There are as many thresholds as labels. `DetectionEvaluation.thresholds` is empty for pooled detections.
    public func falsePositives(thresholds: [Double], limit: Int) -> [FalsePositive] {
        check(thresholds)
        let wrong = zip(matches, thresholds).flatMap { matches, threshold in
            matches.flatMap { match in
                Self.falsePositives(match, threshold).map { detection in
                    let (photo, detections) = predictions[match.photo]
                    return FalsePositive(photo: photo, detection: detections[detection.index])
                }
            }
        }
        return Array(wrong.sorted { $0.detection.confidence > $1.detection.confidence }.prefix(max(limit, 0)))
    }

    private func falsePositivesPerEmptyPhoto(_ thresholds: [Double]) -> Double? {
        guard !emptyPhotoIndices.isEmpty else { return nil }
        let empty = Set(emptyPhotoIndices)
        let wrong = zip(matches, thresholds).reduce(0) { count, label in
            count
                + label.0.reduce(0) {
                    $0 + (empty.contains($1.photo) ? Self.falsePositives($1, label.1).count : 0)
                }
        }
        return Double(wrong) / Double(emptyPhotoIndices.count)
    }

    /// Returns the detections of a photo that reach the threshold and match neither an object nor a crowd at IoU .5.
    fileprivate static func falsePositives(
        _ match: DetectionMatches, _ threshold: Double
    ) -> [DetectionMatches.Detection] {
        match.detections.filter { ($0.hits | $0.ignored) & 1 == 0 && reaches($0.confidence, threshold) }
    }

    fileprivate static func reaches(_ confidence: Float?, _ threshold: Double) -> Bool {
        confidence.map { Double($0) >= threshold } ?? false
    }

    private func check(_ thresholds: [Double]) {
        precondition(thresholds.count == labels.count, "\(labels.count) labels, but \(thresholds.count) thresholds")
    }
}

extension DetectionMetrics.Counts {
    /// Adds other counts, each as often as a weight.
    mutating func add(_ other: DetectionMetrics.Counts, weight: Int = 1) {
        truePositives += weight * other.truePositives
        falsePositives += weight * other.falsePositives
        falseNegatives += weight * other.falseNegatives
    }

    /// Adds the counts of a label in a photo.
    fileprivate mutating func add(_ match: DetectionMatches, _ threshold: Double) {
        let hits = match.objects.count { DetectionMetrics.reaches($0.confidence, threshold) }
        truePositives += hits
        falseNegatives += match.objects.count - hits
        falsePositives += DetectionMetrics.falsePositives(match, threshold).count
    }
}

extension DetectionMetrics.OperatingPoint {
    /// Adds up the counts of evaluations with the same labels.
    init(pooling evaluations: [DetectionEvaluation], labels: [String]) {
        let points = evaluations.map(\.operatingPoint)
        perLabel = labels.indices.map { label in
            points.reduce(into: DetectionMetrics.Counts()) { $0.add($1.perLabel[label]) }
        }
        total = points.reduce(into: DetectionMetrics.Counts()) { $0.add($1.total) }
        thresholds = []
        let counts = evaluations.map { Double($0.metrics.emptyPhotoIndices.count) }
        let wrong = zip(points, counts).map { ($0.falsePositivesPerEmptyPhoto ?? 0) * $1 }
        let emptyPhotos = counts.reduce(0, +)
        falsePositivesPerEmptyPhoto = emptyPhotos > 0 ? wrong.reduce(0, +) / emptyPhotos : nil
    }
}
