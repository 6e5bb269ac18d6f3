internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork

/// Batches of cached features, the input of the head: computed once per image, so an epoch costs little more than the head.
///
/// Batches come in the order of the image loader. The features of an image take a few kilobytes.
final class FeatureLoader: BatchSource {
    let items: [TrainingPhoto]
    let skipped: [SkippedImage]
    /// The features, [images, channels].
    let features: [Float]
    /// The number of features of an image.
    let channels: Int
    private let order: BatchOrder

    /// Computes the features of all images, except unreadable ones.
    /// - Parameters:
    ///   - images: The images.
    ///   - part: The part of the network that computes the features.
    ///   - workers: The thread pool.
    ///   - onDone: Called with the number of finished images; an error that it throws ends the computation in all processes.
    /// - Throws: `ImageError` if more than half of the images are unreadable; `ImprintError.nonFiniteOutput` if a feature is not finite; the
    ///   errors of `onDone`; `NetworkError.outOfMemory`.
    init(
        of images: BatchLoader, by part: ClassifierConfiguration.StartingPoint.Part, workers: Workers,
        onDone: (Int) throws -> Void
    ) throws {
        let plan = try workers.processes.failTogether {
            try ExecutionPlan(
                part.network, parameters: part.parameters,
                options: ExecutionPlan.Options(batchSize: min(images.order.batchSize, images.count), workers: workers)
                    .limitingThreads(for: part.network))
        }
        let channels = part.network.output.count
        var features = [Float](repeating: 0, count: images.count * channels)
        var isReadable = [Bool](repeating: false, count: images.count)
        var unreadable: [SkippedImage] = []
        var done = 0
        try images.forEachBatch(epoch: 0, onUnreadable: { unreadable.append($0) }) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            let output = plan.output
            for (row, index) in batch.indices.enumerated() {
                // A head that is fitted to such features would be NaN, or training would seem to diverge.
                guard output[(row * channels)..<((row + 1) * channels)].allSatisfy(\.isFinite) else {
                    throw ImprintError.nonFiniteOutput(network: part.network.name)
                }
                for channel in 0..<channels {
                    features[index * channels + channel] = output[row * channels + channel]
                }
                isReadable[index] = true
            }
            done += batch.count
            try workers.processes.failTogether { try onDone(done) }
        }
        let readable = isReadable.indices.filter { isReadable[$0] }
        if readable.count < images.count {
            features = readable.flatMap { features[($0 * channels)..<(($0 + 1) * channels)] }
        }
        items = readable.map { images.items[$0] }
        skipped = images.skipped + unreadable
        order = images.order.with(count: readable.count)
        self.features = features
        self.channels = channels
    }

    /// Returns the batches of an epoch; cached features never become unreadable.
    func batches(epoch: Int, from first: Int) -> any BatchIterator {
        FeatureBatches(self, order.batches(epoch: epoch), from: first)
    }

    private final class FeatureBatches: BatchIterator {
        private let loader: FeatureLoader
        private let batches: [ArraySlice<Int>]
        private var index: Int

        init(_ loader: FeatureLoader, _ batches: [ArraySlice<Int>], from first: Int) {
            self.loader = loader
            self.batches = batches
            index = first
        }

        func next(onUnreadable: (SkippedImage) -> Void) throws(ImageError) -> Batch? {
            guard index < batches.count else { return nil }
            let indices = batches[index]
            defer { index += 1 }
            return Batch(index: index, labelSets: indices.map { loader.items[$0].labels }, indices: Array(indices)) {
                [loader] values in
                for (row, item) in indices.enumerated() {
                    let features = loader.features[(item * loader.channels)..<((item + 1) * loader.channels)]
                    _ = values[(row * loader.channels)...].update(fromContentsOf: features)
                }
            }
        }
    }
}
