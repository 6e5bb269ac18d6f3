internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Measures photos with a frozen base model: computes their features, fits a head, and evaluates it on held-out and on mirrored photos.
struct RecipeProbe {
    /// The photos, with their features.
    let images: TrainingImages
    /// The head that was fitted to the features.
    let head: LogisticRegression.Head
    /// The measurements.
    let evidence: RecipeDecision.Evidence
    /// The duration of feature extraction per photo, in seconds.
    let secondsPerPhoto: Double

    /// The number of training photos that are mirrored, and of photos whose evidence is measured.
    private static let sampleSize = 128
    /// The minimum number of validation photos; with fewer, cross-validation on the training photos evaluates the head.
    private static let minimumHeldOut = 30

    /// Measures photos.
    /// - Parameters:
    ///   - start: The base model with a new head, which is the only trainable layer, and the part that computes features.
    ///   - configuration: The configuration that belongs to `start`.
    init(
        _ source: any TrainingSource, _ configuration: ClassifierConfiguration,
        start: ClassifierConfiguration.StartingPoint,
        extractor: ClassifierConfiguration.StartingPoint.Part, onEvent: (TrainingEvent) -> Void,
        checkContinues: () throws -> Void
    ) throws {
        var clock = FeatureClock()
        let images = try TrainingImages(
            source, configuration, start: start, earlier: nil,
            onEvent: { event in
                clock.record(event)
                onEvent(event)
            }, checkContinues: checkContinues)
        guard let training = images.training as? FeatureLoader else {
            preconditionFailure("the features of the training photos must be computed first")
        }
        self.images = images
        let validation = images.validation as? FeatureLoader
        let secondsPerPhoto = clock.seconds / Double(training.count + (validation?.count ?? 0))
        self.secondsPerPhoto = configuration.processes?.broadcast(secondsPerPhoto) ?? secondsPerPhoto
        // Each process computes the rest itself.
        (head, evidence) = try configuration.processes.failTogether {
            () throws -> (LogisticRegression.Head, RecipeDecision.Evidence) in
            let workers = Workers(configuration.threads)
            let link: LogisticRegression.Link = configuration.isMultiLabel ? .sigmoid : .softmax
            let folds =
                (validation?.count ?? 0) >= Self.minimumHeldOut
                ? []
                : try RecipeFolds.folds(
                    labels: training.items.map(\.labels),
                    groups: RecipeFolds.groups(
                        of: training.items, images, source, configuration, onEvent: onEvent,
                        checkContinues: checkContinues),
                    seed: configuration.seed)
            let loss = HeadLoss(
                link: link,
                classWeights: ClassificationLoss.classWeights(
                    configuration.hyperparameters, counts: images.counts(training), total: training.count))
            let fit = try FittedHead(
                training, validation: validation, folds: folds, labels: source.labels.count, loss, workers)
            try checkContinues()
            let photos = images.photos
            let mirrored = try Sample(photos.training, count: Self.sampleSize) { $0.mirrored }
            let mirroredResult = HeldOut(
                fit.head, on: try mirrored.outputs(of: extractor, start.preprocessing, workers), mirrored.labels, loss)
            try checkContinues()
            let sample = try Sample(photos.validation ?? photos.training, count: Self.sampleSize) { $0 }
            let spread = try fit.evidenceSpread(over: sample, extractor, start.preprocessing, workers)
            let evidence = RecipeDecision.Evidence(
                trainingPhotos: training.count, heldOutPhotos: fit.heldOut.count, headAccuracy: fit.heldOut.accuracy,
                mirroredAccuracy: mirroredResult.accuracy, evidenceSpread: spread)
            return (fit.head, evidence)
        }
    }
}

/// The time for computing features, without the time for reading the photos before.
private struct FeatureClock {
    private var clock = RunClock()
    private var isComputing = false
    private(set) var seconds: Double = 0

    mutating func record(_ event: TrainingEvent) {
        guard case .computingFeatures = event else { return }
        // The time before the first event is for reading the photos.
        let lap = clock.lap()
        if isComputing { seconds += lap }
        isComputing = true
    }
}

/// The loss of a head, whose class weights are those of training.
private struct HeadLoss {
    let link: LogisticRegression.Link
    /// The weight of each label; nil for weights of 1.
    let classWeights: [Float]?

    func weight(_ label: Int) -> Double { Double(classWeights?[label] ?? 1) }
}

/// A head that was fitted to the features of the training photos.
private struct FittedHead {
    let head: LogisticRegression.Head
    /// The result on photos that the head, or a head with the same weight decay, was not fitted to; empty without such photos.
    let heldOut: HeldOut
    /// The mean of each feature over the training photos.
    let means: [Float]

    /// The candidates for the weight decay of the head, in descending order.
    private static let weightDecays: [Float] = [1, 0.3, 0.1, 0.03, 0.01, 0.003]

    /// Fits a head with the weight decay that has the lowest loss on held-out photos.
    /// - Parameters:
    ///   - validation: The validation photos, which are held out if there are no folds; nil without any.
    ///   - folds: The indices of the training photos in each fold of a cross-validation.
    ///   - labels: The number of labels.
    init(
        _ training: FeatureLoader, validation: FeatureLoader?, folds: [[Int]], labels: Int, _ loss: HeadLoss,
        _ workers: Workers
    ) throws {
        // Before the problem of all photos, which takes as much memory as their features.
        let foldResults =
            folds.isEmpty ? [] : try Self.crossValidate(training, folds, labels: labels, loss, workers)
        let problem = LogisticRegression(
            features: training.features, targets: training.items.map(\.labels), labels: labels, link: loss.link,
            classWeights: loss.classWeights, workers: workers)
        means = problem.means
        if !foldResults.isEmpty {
            let best = HeldOut.best(foldResults)
            head = try problem.heads(weightDecays: Array(Self.weightDecays[...best]))[best]
            heldOut = foldResults[best]
        } else if let validation {
            let heads = try problem.heads(weightDecays: Self.weightDecays)
            let results = heads.map { HeldOut($0, on: validation, loss) }
            let best = HeldOut.best(results)
            (head, heldOut) = (heads[best], results[best])
        } else {
            head = try problem.heads(weightDecays: [Self.weightDecays[0]])[0]
            heldOut = HeldOut(loss)
        }
    }

    /// Evaluates each weight decay on the photos of each fold, with heads that are fitted to all other photos.
    private static func crossValidate(
        _ loader: FeatureLoader, _ folds: [[Int]], labels: Int, _ loss: HeadLoss, _ workers: Workers
    ) throws -> [HeldOut] {
        var results = weightDecays.map { _ in HeldOut(loss) }
        for fold in folds {
            let heldOut = Set(fold)
            let kept = loader.items.indices.filter { !heldOut.contains($0) }
            let heads = try LogisticRegression(
                features: kept.flatMap(loader.features(of:)), targets: kept.map { loader.items[$0].labels },
                labels: labels, link: loss.link, classWeights: loss.classWeights, workers: workers
            ).heads(weightDecays: weightDecays)
            let features = fold.flatMap(loader.features(of:))
            for (index, head) in heads.enumerated() {
                results[index].add(head.logits(features), fold.map { loader.items[$0].labels })
            }
        }
        return results
    }

    /// Returns the evidence spread over the photos of a sample; nil if the head does not read an average of a feature map.
    func evidenceSpread(
        over sample: Sample, _ extractor: ClassifierConfiguration.StartingPoint.Part, _ preprocessing: Preprocessing,
        _ workers: Workers
    ) throws -> Double? {
        guard let maps = try extractor.beforePooling() else { return nil }
        return head.evidenceSpread(
            maps: try sample.outputs(of: maps, preprocessing, workers), cells: maps.network.output.pixels, means: means)
    }
}

extension FeatureLoader {
    /// Returns the features of an image.
    fileprivate func features(of index: Int) -> ArraySlice<Float> {
        features[(index * channels)..<((index + 1) * channels)]
    }
}

/// The result of a head on photos that it was not fitted to.
private struct HeldOut {
    private(set) var count = 0
    private var correct = 0
    /// The wrong decisions about a label; 0 for one label per photo.
    private var wrong = 0
    private var totalLoss: Double = 0
    /// The sum of the weights of the photos, which divides the loss.
    private var totalWeight: Double = 0
    private let lossFunction: HeadLoss

    init(_ loss: HeadLoss) { lossFunction = loss }

    init(_ head: LogisticRegression.Head, on loader: FeatureLoader, _ loss: HeadLoss) {
        self.init(head, on: loader.features, loader.items.map(\.labels), loss)
    }

    init(_ head: LogisticRegression.Head, on features: [Float], _ labels: [[Int]], _ loss: HeadLoss) {
        self.init(loss)
        add(head.logits(features), labels)
    }

    mutating func add(_ logits: [[Float]], _ labels: [[Int]]) {
        for (row, labels) in zip(logits, labels) {
            switch lossFunction.link {
            case .softmax:
                let weight = lossFunction.weight(labels[0])
                let confidences = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0).confidences(row)
                totalLoss -= weight * log(Double(max(confidences[labels[0]], 1e-12)))
                totalWeight += weight
                correct += row.indices.max { row[$0] < row[$1] } == labels[0] ? 1 : 0
            case .sigmoid:
                for (label, logit) in row.enumerated() {
                    let isPresent = labels.contains(label)
                    let weight = isPresent ? lossFunction.weight(label) : 1
                    totalLoss += weight * log1p(exp(Double(isPresent ? -logit : logit)))
                    if isPresent && logit > 0 { correct += 1 } else if isPresent || logit > 0 { wrong += 1 }
                }
                totalWeight += 1
            }
            count += 1
        }
    }

    /// The share of photos whose label is predicted; for several labels per photo, the micro-averaged F1 score at a threshold of 0.5.
    ///
    /// F1 ignores labels that are neither present nor predicted, which are the majority if there are many labels.
    var accuracy: Double {
        switch lossFunction.link {
        case .softmax: Double(correct) / Double(max(count, 1))
        case .sigmoid: correct + wrong == 0 ? 1 : 2 * Double(correct) / Double(2 * correct + wrong)
        }
    }
    private var loss: Double { count > 0 ? totalLoss / totalWeight : 0 }

    /// Returns the index of the result with the lowest loss.
    static func best(_ results: [Self]) -> Int { results.indices.min { results[$0].loss < results[$1].loss } ?? 0 }
}

/// A sample of a loader's photos, evenly spaced.
private struct Sample {
    let images: [RasterImage]
    let labels: [[Int]]

    init(_ loader: BatchLoader, count: Int, change: (RasterImage) -> RasterImage) throws {
        let count = min(count, loader.count)
        var images: [RasterImage] = []
        var labels: [[Int]] = []
        for position in 0..<count {
            let index = position * loader.count / count
            // Training reports photos that have become unreadable.
            guard let image = try? loader.image(at: index, epoch: 0) else { continue }
            images.append(change(image))
            labels.append(loader.items[index].labels)
        }
        (self.images, self.labels) = (images, labels)
    }

    /// Returns the outputs of a network for the photos, one after another.
    func outputs(
        of part: ClassifierConfiguration.StartingPoint.Part, _ preprocessing: Preprocessing, _ workers: Workers
    ) throws -> [Float] {
        guard !images.isEmpty else { return [] }
        let batchSize = min(16, images.count)
        let plan = try ExecutionPlan(
            part.network, parameters: part.parameters,
            options: ExecutionPlan.Options(batchSize: batchSize, workers: workers).limitingThreads(for: part.network))
        let (inputSize, outputSize) = (part.network.input.count, part.network.output.count)
        var outputs: [Float] = []
        for start in stride(from: 0, to: images.count, by: batchSize) {
            let batch = images[start..<min(start + batchSize, images.count)]
            for (row, image) in batch.enumerated() {
                preprocessing.normalize(
                    image,
                    into: UnsafeMutableBufferPointer(rebasing: plan.input[(row * inputSize)..<((row + 1) * inputSize)]))
            }
            plan.forward(count: batch.count)
            outputs += plan.output[..<(batch.count * outputSize)]
        }
        return outputs
    }
}
