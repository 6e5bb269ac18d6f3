public import Imprint
internal import ImprintCore
public import ImprintModel

/// The metrics of an object detector on annotated photos, equal to those of COCO.
///
/// A detection is correct if its intersection over union (IoU) with an object of its label reaches a threshold, and no detection with a
/// higher confidence matches the same object. The values equal those of `COCOeval` in pycocotools for bounding boxes, the area range "all"
/// and at most 100 detections per photo and label. Metrics are 0…1. Undefined metrics, such as those of a label without objects, are nil.
///
/// Sources: Lin et al., "Microsoft COCO: Common Objects in Context", 2014; `cocoeval.py` of <https://github.com/cocodataset/cocoapi>.
public struct DetectionMetrics: Sendable {
    /// An annotated photo with the detections in it.
    public typealias Prediction = (photo: AnnotatedPhoto, detections: [DetectedObject])

    /// The metrics of one label.
    public struct LabelMetrics: Codable, Hashable, Sendable {
        /// The label.
        public let label: String
        /// The mean of the average precisions at IoU .50, .55 … .95; nil if the label has no objects.
        public let averagePrecision: Double?
        /// The average precision at IoU .5; nil if the label has no objects.
        ///
        /// AP = 1/101 · Σ p(r) over the recalls r = 0, .01 … 1, where p(r) is the highest precision at a recall of at least r.
        public let averagePrecision50: Double?
        /// The average precision at IoU .75; nil if the label has no objects.
        public let averagePrecision75: Double?
        /// The mean recall at IoU .50, .55 … .95 with at most 100 detections per photo; nil if the label has no objects.
        public let averageRecall: Double?
        /// The number of objects, without crowds.
        public let objectCount: Int
        /// The number of detections.
        public let detectionCount: Int

        private enum CodingKeys: String, CodingKey {
            case label, averagePrecision, averagePrecision50, averagePrecision75, averageRecall, objectCount
            case detectionCount
        }

        /// Writes all keys, with `null` for nil.
        public func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(label, forKey: .label)
            try values.encode(averagePrecision, forKey: .averagePrecision)
            try values.encode(averagePrecision50, forKey: .averagePrecision50)
            try values.encode(averagePrecision75, forKey: .averagePrecision75)
            try values.encode(averageRecall, forKey: .averageRecall)
            try values.encode(objectCount, forKey: .objectCount)
            try values.encode(detectionCount, forKey: .detectionCount)
        }
    }

    /// The labels.
    public let labels: [String]
    /// The photos with their detections.
    public let predictions: [Prediction]
    /// The metrics of each label, in the order of `labels`.
    public let perLabel: [LabelMetrics]
    /// The mean average precision (mAP@.5:.95), COCO's primary metric; nil if no label has objects.
    ///
    /// It is the mean of `LabelMetrics.averagePrecision` over the labels that have objects.
    public let meanAveragePrecision: Double?
    /// The mean average precision at IoU .5 (mAP@.5), over the labels that have objects.
    public let meanAveragePrecision50: Double?
    /// The mean average precision at IoU .75 (mAP@.75), over the labels that have objects.
    public let meanAveragePrecision75: Double?
    /// The average recall (AR) with at most 1 detection per photo and label.
    ///
    /// AR = mean over the labels that have objects and the IoU thresholds .50, .55 … .95 of the share of the objects that are found.
    public let averageRecall1: Double?
    /// The average recall with at most 10 detections per photo and label.
    public let averageRecall10: Double?
    /// The average recall with at most 100 detections per photo and label.
    public let averageRecall100: Double?
    /// The number of objects of the labels, excluding crowds.
    public let objectCount: Int
    /// The number of crowds of the labels.
    public let crowdCount: Int
    /// The number of detections of the labels.
    public let detectionCount: Int
    /// The indices of the photos that show no object and no crowd of the labels.
    public let emptyPhotoIndices: [Int]

    /// The matches of each label: one element per photo with its detections or objects, in the order of the photos.
    let matches: [[DetectionMatches]]
    private let rankings: [DetectionRanking]

    /// The number of photos.
    public var photoCount: Int { predictions.count }

    /// Computes the metrics of detections.
    ///
    /// Detections with equal confidence count in the order of `predictions`, as COCO counts them in the order of the image identifiers. The
    /// confidences must not be NaN.
    /// - Parameters:
    ///   - labels: The labels to evaluate, without duplicates; objects and detections with other labels do not count.
    ///   - predictions: The photos with their detections in any order and at any confidence. The average precision is lower if the detector
    ///     omits detections of low confidence.
    public init(labels: [String], predictions: [Prediction]) {
        precondition(Set(labels).count == labels.count, "the labels \(labels) contain duplicates")
        let indices = Dictionary(uniqueKeysWithValues: labels.enumerated().map { ($1, $0) })
        var matches = labels.map { _ in [DetectionMatches]() }
        var (emptyPhotoIndices, crowdCount) = ([Int](), 0)
        for (index, (photo, detections)) in predictions.enumerated() {
            var members: [Int: (objects: [Int], detections: [Int])] = [:]
            for (object, annotated) in photo.objects.enumerated() {
                guard let label = indices[annotated.label] else { continue }
                members[label, default: ([], [])].objects.append(object)
                if annotated.isCrowd { crowdCount += 1 }
            }
            if members.isEmpty { emptyPhotoIndices.append(index) }
            for (detection, detected) in detections.enumerated() {
                guard let label = indices[detected.label] else { continue }
                members[label, default: ([], [])].detections.append(detection)
            }
            for (label, members) in members {
                matches[label].append(
                    DetectionMatches(
                        (index, photo), objects: members.objects, detections: members.detections, of: detections))
            }
        }
        let rankings = matches.map(DetectionRanking.init)
        let recalls = matches.map { matches in [1, 10, 100].map { Self.recall(matches, maximumDetections: $0) } }
        perLabel = labels.indices.map { label in
            let precisions = DetectionMatches.iouThresholds.indices.compactMap {
                rankings[label].averagePrecision(threshold: $0)
            }
            return LabelMetrics(
                label: labels[label], averagePrecision: precisions.mean, averagePrecision50: precisions.first,
                averagePrecision75: precisions.isEmpty ? nil : precisions[5], averageRecall: recalls[label][2],
                objectCount: rankings[label].objectCount,
                detectionCount: matches[label].reduce(0) { $0 + $1.detections.count })
        }
        meanAveragePrecision = perLabel.compactMap(\.averagePrecision).mean
        meanAveragePrecision50 = perLabel.compactMap(\.averagePrecision50).mean
        meanAveragePrecision75 = perLabel.compactMap(\.averagePrecision75).mean
        averageRecall1 = recalls.compactMap { $0[0] }.mean
        averageRecall10 = recalls.compactMap { $0[1] }.mean
        averageRecall100 = recalls.compactMap { $0[2] }.mean
        objectCount = perLabel.reduce(0) { $0 + $1.objectCount }
        detectionCount = perLabel.reduce(0) { $0 + $1.detectionCount }
        (self.labels, self.predictions, self.matches, self.rankings) = (labels, predictions, matches, rankings)
        (self.crowdCount, self.emptyPhotoIndices) = (crowdCount, emptyPhotoIndices)
    }

    /// Returns the mean recall over the IoU thresholds, or nil if there are no objects.
    private static func recall(_ matches: [DetectionMatches], maximumDetections: Int) -> Double? {
        let objects = matches.reduce(0) { $0 + $1.objects.count }
        guard objects > 0 else { return nil }
        let hits = matches.reduce(0) { count, match in
            count + match.detections.prefix(maximumDetections).reduce(0) { $0 + $1.hits.nonzeroBitCount }
        }
        return Double(hits) / Double(objects * DetectionMatches.iouThresholds.count)
    }

    /// The precision–recall curve at IoU .5 of every label that has objects: at most 100 points by ascending thresholds.
    public var precisionRecall: [String: [TrainingRecord.PrecisionRecallPoint]] {
        Dictionary(
            uniqueKeysWithValues: zip(labels, rankings).compactMap { label, ranking in
                ranking.precisionRecallCurve.map { (label, thinned($0, to: 100)) }
            })
    }

    // MARK: Bootstrap

    /// The number of resamples of the bootstrap.
    private static let resamples = 200

    /// Returns the 95 % confidence interval of `meanAveragePrecision50` by the percentile bootstrap, or nil if no label has objects.
    ///
    /// Its ends are the 2.5th and the 97.5th percentile, interpolated linearly, over 200 resamples of the photos with replacement (Efron,
    /// "Bootstrap methods: another look at the jackknife", 1979). A resample leaves out labels that have no objects in it. The interval
    /// treats the photos as independent; it is too narrow if they are near-duplicates.
    /// - Parameter seed: The random seed; equal seeds give equal intervals.
    public func meanAveragePrecision50Interval(seed: UInt64 = 0) -> ClosedRange<Double>? {
        guard let meanAveragePrecision50 else { return nil }
        let samples = GroupBootstrap.samples(
            groupCount: predictions.count, resamples: Self.resamples, seed: seed
        ) { self.meanAveragePrecision50(weights: $0) }
        return GroupBootstrap.interval(samples, meanAveragePrecision50)
    }

    /// Returns the mean average precision at IoU .5 if each photo counts as often as its weight, or nil if no label has objects.
    ///
    /// Matching is independent for each photo, so resamples reuse the matches.
    func meanAveragePrecision50(weights: [Int]) -> Double? {
        rankings.compactMap { $0.averagePrecision(threshold: 0, weights: weights) }.mean
    }
}
