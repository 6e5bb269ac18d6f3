internal import Foundation
internal import ImprintCore

/// The predictions of one repeat with their groups, for metrics in which each group has a weight.
protocol WeightedPredictions {
    associatedtype Metrics

    /// Returns the metrics if each prediction counts as often as the weight of its group, or nil if all weights are 0.
    func metrics(weights: [Int]) -> Metrics?
    /// Returns the mean of each metric, or nil for one that is undefined in all of them.
    /// - Parameter metrics: The metrics of at least one repeat.
    static func mean(_ metrics: [Metrics]) -> Metrics
}

/// The predictions of models with one label per photo in one repeat with their groups.
struct GroupedPredictions: WeightedPredictions {
    /// The metrics of weighted predictions.
    struct Metrics {
        var accuracy = 0.0
        var logLoss = 0.0
        var calibrationError = 0.0
        /// The area under the ROC curve, or nil unless there are two labels and photos of both with a weight.
        var auc: Double?
    }

    /// The parts of a prediction that the metrics need.
    private struct Prediction {
        let group: Int
        let isCorrect: Bool
        let loss: Double
        /// The highest confidence, and the bin of the reliability diagram that it belongs to.
        let confidence: Double
        let bin: Int
    }

    private let predictions: [Prediction]
    /// The predictions by descending confidence in the second of two labels; predictions with equal confidence share a step.
    private let ranking: [[(group: Int, isPositive: Bool)]]

    /// - Parameter groups: The group of each result.
    init(_ results: [Evaluation.Result], groups: [Int], labels: [String]) {
        predictions = zip(results, groups).map { result, group in
            let single = Evaluation(labels: labels, results: [result], skipped: [])
            return Prediction(
                group: group, isCorrect: result.isCorrect, loss: single.logLoss,
                confidence: Double(result.confidences[result.predicted]),
                bin: single.reliability.firstIndex { $0.count > 0 } ?? 0)
        }
        guard labels.count == 2 else {
            ranking = []
            return
        }
        var steps: [[(group: Int, isPositive: Bool)]] = []
        var last: Float?
        for (result, group) in zip(results, groups).sorted(by: { $0.0.confidences[1] > $1.0.confidences[1] }) {
            if result.confidences[1] != last { steps.append([]) }
            steps[steps.count - 1].append((group, result.label == 1))
            last = result.confidences[1]
        }
        ranking = steps
    }

    func metrics(weights: [Int]) -> Metrics? {
        let binCount = (predictions.map(\.bin).max() ?? 0) + 1
        var gaps = [Double](repeating: 0, count: binCount)
        var metrics = Metrics()
        var total = 0.0
        for prediction in predictions {
            let weight = Double(weights[prediction.group])
            guard weight > 0 else { continue }
            total += weight
            metrics.logLoss += weight * prediction.loss
            if prediction.isCorrect { metrics.accuracy += weight }
            gaps[prediction.bin] += weight * ((prediction.isCorrect ? 1 : 0) - prediction.confidence)
        }
        guard total > 0 else { return nil }
        metrics.accuracy /= total
        metrics.logLoss /= total
        metrics.calibrationError = gaps.reduce(0) { $0 + abs($1) } / total
        metrics.auc = auc(weights)
        return metrics
    }

    static func mean(_ metrics: [Metrics]) -> Metrics {
        Metrics(
            accuracy: metrics.map(\.accuracy).mean ?? 0, logLoss: metrics.map(\.logLoss).mean ?? 0,
            calibrationError: metrics.map(\.calibrationError).mean ?? 0, auc: metrics.compactMap(\.auc).mean)
    }

    private func auc(_ weights: [Int]) -> Double? {
        var (truePositives, falsePositives, area) = (0, 0, 0.0)
        for step in ranking {
            var (positives, negatives) = (0, 0)
            for entry in step {
                if entry.isPositive { positives += weights[entry.group] } else { negatives += weights[entry.group] }
            }
            area += Double(negatives) * (Double(truePositives) + Double(positives) / 2)
            truePositives += positives
            falsePositives += negatives
        }
        guard truePositives > 0, falsePositives > 0 else { return nil }
        return area / (Double(truePositives) * Double(falsePositives))
    }
}

/// Confidence intervals by resampling groups of photos with replacement (Efron, "Bootstrap methods: another look at the jackknife", 1979).
///
/// The photos of a group are correlated, so an interval over single photos would be too narrow.
enum GroupBootstrap {
    /// The default number of resamples.
    static let resamples = 1000

    /// Returns a metric of each resample in which it is defined.
    /// - Parameters:
    ///   - resamples: The number of resamples.
    ///   - seed: The random seed.
    ///   - metric: Returns the metric for the weight of each group, or nil if it is undefined.
    static func samples<Metric>(
        groupCount: Int, resamples: Int = GroupBootstrap.resamples, seed: UInt64 = 0, _ metric: ([Int]) -> Metric?
    ) -> [Metric] {
        var stream = RandomStream(seed: seed, "bootstrap")
        return (0..<resamples).compactMap { _ in
            var weights = Array(repeating: 0, count: groupCount)
            for _ in 0..<groupCount { weights[stream.index(below: groupCount)] += 1 }
            return metric(weights)
        }
    }

    /// Returns the 2.5th and the 97.5th percentile, interpolated linearly as by NumPy, or the value itself if there are no samples.
    static func interval(_ samples: [Double], _ value: Double) -> ClosedRange<Double> {
        guard !samples.isEmpty else { return value...value }
        let sorted = samples.sorted()
        func percentile(_ fraction: Double) -> Double {
            let position = fraction * Double(sorted.count - 1)
            let index = min(Int(position), sorted.count - 1)
            let next = min(index + 1, sorted.count - 1)
            return sorted[index] + (position - Double(index)) * (sorted[next] - sorted[index])
        }
        let low = percentile(0.025)
        return low...max(percentile(0.975), low)
    }

    /// Returns the standard deviation of a sample, with n − 1 in the denominator, or nil for fewer than two values.
    static func standardDeviation(_ values: [Double]) -> Double? {
        guard values.count > 1 else { return nil }
        let mean = values.reduce(0, +) / Double(values.count)
        return (values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(values.count - 1)).squareRoot()
    }
}

/// The metrics of the pooled predictions, as means over the repeats, and those of each resample of the groups.
struct BootstrapMetrics<Metrics> {
    let values: Metrics
    private let samples: [Metrics]

    /// - Parameter groupCount: The number of groups, which is the number of draws of a resample.
    /// - Returns: nil if there are no predictions.
    init?<Predictions: WeightedPredictions>(_ repeats: [Predictions], groupCount: Int)
    where Predictions.Metrics == Metrics {
        func mean(_ weights: [Int]) -> Metrics? {
            let metrics = repeats.compactMap { $0.metrics(weights: weights) }
            return metrics.isEmpty ? nil : Predictions.mean(metrics)
        }
        guard let values = mean(Array(repeating: 1, count: groupCount)) else { return nil }
        self.values = values
        samples = GroupBootstrap.samples(groupCount: groupCount, mean)
    }

    /// Returns a metric with its 95 % interval.
    /// - Parameters:
    ///   - value: The value of the metric in `values`.
    ///   - metric: Returns the metric of a resample, or nil if it is undefined.
    func estimate(_ value: Double, _ metric: (Metrics) -> Double?) -> CrossValidationResult.Estimate {
        CrossValidationResult.Estimate(
            value: value, interval: GroupBootstrap.interval(samples.compactMap(metric), value))
    }
}

extension CrossValidationResult.Metrics {
    /// - Returns: nil if there are no predictions.
    init?(_ repeats: [GroupedPredictions], groupCount: Int, foldAccuracies: [Double], seedAccuracies: [Double]) {
        guard let bootstrap = BootstrapMetrics(repeats, groupCount: groupCount) else { return nil }
        let values = bootstrap.values
        self.init(
            accuracy: bootstrap.estimate(values.accuracy, \.accuracy),
            logLoss: bootstrap.estimate(values.logLoss, \.logLoss),
            calibrationError: bootstrap.estimate(values.calibrationError, \.calibrationError),
            auc: values.auc.map { bootstrap.estimate($0, \.auc) },
            foldStandardDeviation: GroupBootstrap.standardDeviation(foldAccuracies),
            seedStandardDeviation: GroupBootstrap.standardDeviation(seedAccuracies))
    }
}

extension CrossValidationResult.MultiLabelMetrics {
    /// - Parameters:
    ///   - foldValues: The mAP of each fold in which it is defined.
    ///   - seedValues: The mAP of each repeat in which it is defined.
    /// - Returns: nil if there are no predictions.
    init?(_ repeats: [GroupedMultiLabelPredictions], groupCount: Int, foldValues: [Double], seedValues: [Double]) {
        guard let bootstrap = BootstrapMetrics(repeats, groupCount: groupCount) else { return nil }
        let values = bootstrap.values
        self.init(
            meanAveragePrecision: values.meanAveragePrecision.map {
                bootstrap.estimate($0, \.meanAveragePrecision)
            },
            microF1: bootstrap.estimate(values.microF1, \.microF1),
            macroF1: bootstrap.estimate(values.macroF1, \.macroF1),
            foldStandardDeviation: GroupBootstrap.standardDeviation(foldValues),
            seedStandardDeviation: GroupBootstrap.standardDeviation(seedValues))
    }
}
