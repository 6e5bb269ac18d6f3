internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork

/// What a run takes its batches from: prepared images, or their features.
protocol BatchSource {
    /// The images.
    var items: [ImageFolder.Item] { get }
    /// The images that were left out.
    var skipped: [SkippedImage] { get }

    /// Calls `body` with every batch of an epoch from `first` on, until it returns `false`; see `BatchLoader`.
    /// - Returns: Whether the epoch came to its end.
    @discardableResult
    func forEachBatch(
        epoch: Int, from first: Int, onLost: (SkippedImage) -> Void, _ body: (Batch) throws -> Bool
    ) throws -> Bool
}

extension BatchSource {
    /// The number of images of an epoch.
    var count: Int { items.count }
}

extension BatchLoader: BatchSource {}

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
        of images: BatchLoader, by part: TrainingConfiguration.StartingPoint.Part, workers: Workers,
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
        try images.forEachBatch(epoch: 0, onLost: { lost.append($0) }) { batch in
            batch.write(to: plan.input)
            plan.forward(count: batch.count)
            for (row, place) in batch.places.enumerated() {
                features[place] = Array(plan.output[(row * channels)..<((row + 1) * channels)])
            }
            done += batch.count
            try onDone(done)
            return true
        }
        let left = features.indices.filter { !features[$0].isEmpty }
        items = left.map { images.items[$0] }
        skipped = images.skipped + lost
        order = images.order.with(count: left.count)
        self.features = left.flatMap { features[$0] }
        self.channels = channels
    }

    /// Calls `body` with the features of every batch; none is ever lost.
    @discardableResult
    func forEachBatch(
        epoch: Int, from first: Int, onLost: (SkippedImage) -> Void, _ body: (Batch) throws -> Bool
    ) throws -> Bool {
        let batches = order.batches(epoch: epoch)
        for (index, places) in batches.enumerated().dropFirst(first) {
            let batch = Batch(index: index, labels: places.map { items[$0].label }, places: Array(places)) { values in
                for (row, place) in places.enumerated() {
                    let own = self.features[(place * self.channels)..<((place + 1) * self.channels)]
                    _ = values[(row * self.channels)...].update(fromContentsOf: own)
                }
            }
            guard try body(batch) else { return index + 1 == batches.count }
        }
        return true
    }
}
