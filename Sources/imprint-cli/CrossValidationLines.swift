internal import ImprintTraining

extension CrossValidationMonitor {
    /// Prints a fold as JSON.
    func reportLine(_ fold: CrossValidationFold) throws {
        switch fold.result {
        case .singleLabel(let evaluation):
            try Terminal.report(MergedLine(FoldLine(fold), FoldMetricsLine(evaluation)))
        case .multiLabel(let evaluation):
            try Terminal.report(MergedLine(FoldLine(fold), MultiLabelEvaluationLine(evaluation)))
        case .detection(let evaluation):
            try Terminal.report(MergedLine(FoldLine(fold), DetectionEvaluationLine(evaluation)))
        }
    }

    /// Prints the pooled metrics as JSON.
    func reportLine(_ result: CrossValidationResult, _ start: CrossValidationStart) throws {
        let line = CrossValidationLine(result, start)
        switch result.pooled {
        case .singleLabel(let evaluation, let metrics):
            try Terminal.report(MergedLine(line, PooledMetricsLine(evaluation, metrics)))
        case .multiLabel(let evaluation, let metrics):
            try Terminal.report(MergedLine(line, PooledMultiLabelLine(evaluation, metrics)))
        case .detection(let evaluation, let metrics):
            try Terminal.report(MergedLine(line, PooledDetectionLine(evaluation, metrics)))
        }
    }
}

/// Two values as one JSON object, which has the keys of both.
struct MergedLine<First: Encodable, Second: Encodable>: Encodable {
    let first: First
    let second: Second

    init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

    func encode(to encoder: any Encoder) throws {
        try first.encode(to: encoder)
        try second.encode(to: encoder)
    }
}

private struct FoldLine: Encodable {
    let event = "fold"
    let seed: UInt64
    let fold: Int
    let images: Int
    let trainingImages: Int
    let seconds: Double
    let kept: Bool

    init(_ fold: CrossValidationFold) {
        seed = fold.seed
        self.fold = fold.number
        images = fold.result.imageCount
        trainingImages = fold.trainingImages
        seconds = fold.seconds
        kept = fold.wasRestored
    }
}

/// The metrics of a fold whose model predicts one label per photo.
private struct FoldMetricsLine: Encodable {
    let accuracy: Double
    let accuracyInterval: [Double]
    let logLoss: Double
    let calibrationError: Double
    @NullIfMissing var auc: Double?

    init(_ evaluation: Evaluation) {
        accuracy = evaluation.accuracy
        accuracyInterval = [evaluation.accuracyInterval.lowerBound, evaluation.accuracyInterval.upperBound]
        logLoss = evaluation.logLoss
        calibrationError = evaluation.calibrationError
        auc = evaluation.auc
    }
}

private struct CrossValidationLine: Encodable {
    let event = "crossValidation"
    let folds: Int
    let seeds: [UInt64]
    /// The number of finished folds of all seeds.
    let finishedFolds: Int
    let complete: Bool
    let images: Int
    let groups: Int
    let labels: [String]
    let seconds: Double
    let skipped: [SkippedLine]

    init(_ result: CrossValidationResult, _ start: CrossValidationStart) {
        let evaluation = result.pooled.evaluation
        (folds, seeds) = (start.foldCount, start.seeds)
        finishedFolds = result.folds.count
        complete = result.isComplete
        images = evaluation.imageCount
        groups = result.groups
        labels = evaluation.labels
        seconds = result.folds.reduce(0) { $0 + $1.seconds }
        skipped = evaluation.skipped.map(SkippedLine.init)
    }
}

/// The pooled metrics of models that predict one label per photo.
private struct PooledMetricsLine: Encodable {
    struct Metric: Encodable {
        let value: Double
        let interval: [Double]

        init(_ estimate: CrossValidationResult.Estimate) {
            value = estimate.value
            interval = estimate.bounds
        }
    }

    @NullIfMissing var accuracy: Metric?
    @NullIfMissing var logLoss: Metric?
    @NullIfMissing var calibrationError: Metric?
    @NullIfMissing var auc: Metric?
    @NullIfMissing var foldDeviation: Double?
    @NullIfMissing var seedDeviation: Double?
    let confusion: [[Int]]
    let perLabel: [Evaluation.LabelMetrics]

    init(_ evaluation: Evaluation, _ metrics: CrossValidationResult.Metrics?) {
        accuracy = (metrics?.accuracy).map(Metric.init)
        logLoss = (metrics?.logLoss).map(Metric.init)
        calibrationError = (metrics?.calibrationError).map(Metric.init)
        auc = (metrics?.auc).map(Metric.init)
        foldDeviation = metrics?.foldStandardDeviation
        seedDeviation = metrics?.seedStandardDeviation
        confusion = evaluation.confusion
        perLabel = evaluation.perLabel
    }
}

/// The pooled metrics of multi-label models, with the keys of `MultiLabelEvaluationLine`.
private struct PooledMultiLabelLine: Encodable {
    /// `null` if no photo has a label.
    @NullIfMissing var meanAveragePrecision: Double?
    @NullIfMissing var meanAveragePrecisionInterval: [Double]?
    @NullIfMissing var microF1: Double?
    @NullIfMissing var microF1Interval: [Double]?
    @NullIfMissing var macroF1: Double?
    @NullIfMissing var macroF1Interval: [Double]?
    /// The standard deviations of the mean average precision.
    @NullIfMissing var foldDeviation: Double?
    @NullIfMissing var seedDeviation: Double?
    let accuracy: Double
    let perLabel: [Evaluation.LabelMetrics]

    init(_ evaluation: MultiLabelEvaluation, _ metrics: CrossValidationResult.MultiLabelMetrics?) {
        meanAveragePrecision = metrics?.meanAveragePrecision?.value
        meanAveragePrecisionInterval = metrics?.meanAveragePrecision?.bounds
        microF1 = metrics?.microF1.value
        microF1Interval = metrics?.microF1.bounds
        macroF1 = metrics?.macroF1.value
        macroF1Interval = metrics?.macroF1.bounds
        foldDeviation = metrics?.foldStandardDeviation
        seedDeviation = metrics?.seedStandardDeviation
        accuracy = evaluation.accuracy
        perLabel = evaluation.perLabel
    }
}

/// The pooled metrics of detectors, with the keys of `DetectionEvaluationLine`.
private struct PooledDetectionLine: Encodable {
    /// `null` if there are no objects.
    @NullIfMissing var meanAveragePrecision50: Double?
    @NullIfMissing var meanAveragePrecision50Interval: [Double]?
    @NullIfMissing var meanAveragePrecision: Double?
    @NullIfMissing var precision: Double?
    @NullIfMissing var precisionInterval: [Double]?
    @NullIfMissing var recall: Double?
    @NullIfMissing var recallInterval: [Double]?
    /// The standard deviations of the mAP@.5.
    @NullIfMissing var foldDeviation: Double?
    @NullIfMissing var seedDeviation: Double?
    let objects: Int
    let perLabel: [DetectionLabelLine]

    init(_ evaluation: DetectionEvaluation, _ metrics: CrossValidationResult.DetectorMetrics?) {
        meanAveragePrecision50 = metrics?.meanAveragePrecision50?.value
        meanAveragePrecision50Interval = metrics?.meanAveragePrecision50?.bounds
        meanAveragePrecision = metrics?.meanAveragePrecision
        precision = metrics?.precision?.value
        precisionInterval = metrics?.precision?.bounds
        recall = metrics?.recall?.value
        recallInterval = metrics?.recall?.bounds
        foldDeviation = metrics?.foldStandardDeviation
        seedDeviation = metrics?.seedStandardDeviation
        objects = evaluation.metrics.objectCount
        perLabel = DetectionLabelLine.lines(evaluation)
    }
}

extension CrossValidationResult.Estimate {
    /// The ends of the interval.
    fileprivate var bounds: [Double] { [interval.lowerBound, interval.upperBound] }
}
