/// The detections of one repeat with the groups of their photos, for metrics in which each group has a weight.
struct GroupedDetections: WeightedPredictions {
    /// The metrics of weighted photos.
    struct Metrics {
        /// The mean average precision at IoU .5; nil unless a photo with a weight has an object.
        var meanAveragePrecision50: Double?
        /// The precision at the thresholds of the models; nil without detections.
        var precision: Double?
        /// The recall at the thresholds of the models; nil without objects.
        var recall: Double?
    }

    private let pooled: DetectionMetrics
    /// The group of each photo, and its counts at the thresholds of its fold's model.
    private let photos: [(group: Int, counts: DetectionMetrics.Counts)]

    /// - Parameters:
    ///   - folds: The evaluations of the folds.
    ///   - pooled: The metrics of all folds together, with the photos in the order of the folds.
    ///   - groups: The group of each photo.
    init(_ folds: [DetectionEvaluation], pooled: DetectionMetrics, groups: [Int]) {
        self.pooled = pooled
        let counts = folds.flatMap { $0.metrics.countsByPhoto(thresholds: $0.thresholds) }
        photos = zip(groups, counts).map { ($0, $1) }
    }

    func metrics(weights: [Int]) -> Metrics? {
        let photoWeights = photos.map { weights[$0.group] }
        guard photoWeights.contains(where: { $0 > 0 }) else { return nil }
        let counts = zip(photos, photoWeights).reduce(into: DetectionMetrics.Counts()) {
            $0.add($1.0.counts, weight: $1.1)
        }
        return Metrics(
            meanAveragePrecision50: pooled.meanAveragePrecision50(weights: photoWeights), precision: counts.precision,
            recall: counts.recall)
    }

    static func mean(_ metrics: [Metrics]) -> Metrics {
        Metrics(
            meanAveragePrecision50: metrics.compactMap(\.meanAveragePrecision50).mean,
            precision: metrics.compactMap(\.precision).mean, recall: metrics.compactMap(\.recall).mean)
    }
}

extension CrossValidationResult.DetectorMetrics {
    /// - Parameters:
    ///   - pooled: The pooled metrics of each repeat.
    ///   - foldValues: The mAP@.5 of each fold in which it is defined.
    /// - Returns: nil if there are no predictions.
    init?(_ repeats: [GroupedDetections], pooled: [DetectionMetrics], groupCount: Int, foldValues: [Double]) {
        guard let bootstrap = BootstrapMetrics(repeats, groupCount: groupCount) else { return nil }
        let values = bootstrap.values
        self.init(
            meanAveragePrecision50: values.meanAveragePrecision50.map {
                bootstrap.estimate($0, \.meanAveragePrecision50)
            },
            meanAveragePrecision: pooled.compactMap(\.meanAveragePrecision).mean,
            precision: values.precision.map { bootstrap.estimate($0, \.precision) },
            recall: values.recall.map { bootstrap.estimate($0, \.recall) },
            foldStandardDeviation: GroupBootstrap.standardDeviation(foldValues),
            seedStandardDeviation: GroupBootstrap.standardDeviation(pooled.compactMap(\.meanAveragePrecision50)))
    }
}
