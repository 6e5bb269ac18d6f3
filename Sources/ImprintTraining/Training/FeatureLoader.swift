internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork

/// What the head of a network reads of each image, computed once in prediction mode: then an epoch costs little more than the head.
///
/// Epochs have the order of the loader that the images come from. Features take a few kilobytes for each image.
final class FeatureLoader: BatchSource {
    let items: [ImageFolder.Item]
    let skipped: [SkippedImage]
    /// [images, channels].
    private let features: [Float]
    private let channels: Int
    private let order: BatchOrder

    /// Computes the features of all images; those that can no longer be read are left out.
    /// - Parameters:
    ///   - images: The images.
    ///   - part: What computes the features.
    ///   - workers: The threads that share the work.
    ///   - onDone: Told how many images are done; what it throws ends the work.
    /// - Throws: `ImageError` if more than half of the images can no longer be read, and what `onDone` throws.
    init(
        of images: BatchLoader, by part: ClassifierConfiguration.StartingPoint.Part, workers: Workers,
        onDone: (Int) throws -> Void
    ) throws {
        let plan = try ExecutionPlan(
            part.network, parameters: part.parameters,
            options: ExecutionPlan.Options(batchSize: min(images.order.batchSize, images.count), workers: workers)
                .limitingThreads(for: part.network))
        let channels = part.network.output.count
        var features = [[Float]](repeating: [], count: images.count)
        var lost: [SkippedImage] = []
        var done = 0
        try images.forEachBatch(epoch: 0, onUnreadable: { lost.append($0) }) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            for (row, place) in batch.indices.enumerated() {
                features[place] = Array(plan.output[(row * channels)..<((row + 1) * channels)])
            }
            done += batch.count
            try onDone(done)
        }
        let left = features.indices.filter { !features[$0].isEmpty }
        items = left.map { images.items[$0] }
        skipped = images.skipped + lost
        order = images.order.with(count: left.count)
        self.features = left.flatMap { features[$0] }
        self.channels = channels
    }

    /// The batches of an epoch; no photo of them ever becomes unreadable.
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
            return Batch(index: index, labels: indices.map { loader.items[$0].label }, indices: Array(indices)) {
                [loader] values in
                for (row, item) in indices.enumerated() {
                    let own = loader.features[(item * loader.channels)..<((item + 1) * loader.channels)]
                    _ = values[(row * loader.channels)...].update(fromContentsOf: own)
                }
            }
        }
    }
}
