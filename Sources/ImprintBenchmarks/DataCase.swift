internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintSynthesis

/// The data pipeline of an epoch for photos that are not in memory: decode, scale to 224x224 pixels, augment, normalize.
let photos = BenchmarkCase(suite: .data, name: "photos-224") { options in
    if let folder = options.photos { return try measure(folder, options) }
    let folder = FileManager.default.temporaryDirectory.appending(path: "imprint-bench-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    try DrawingRecipe.load(named: "two-circles").write(
        to: folder, count: maximumPhotoCount, seed: 1, workers: Workers(options.threads))
    return try measure(folder, options)
}

/// The maximum number of photos in a run, which takes about a second.
private let maximumPhotoCount = 128

private func measure(_ folder: URL, _ options: BenchmarkOptions) throws -> BenchmarkResult {
    let images = try ImageFolder(at: folder, minimumLabels: 1)
    let step = (images.items.count + maximumPhotoCount - 1) / maximumPhotoCount
    let loader = try BatchLoader(
        items: stride(from: 0, to: images.items.count, by: step).map { images.items[$0] }, labels: images.labels,
        preprocessing: Preprocessing(width: 224, height: 224), augmentation: Augmentation([.flip, .rotate, .blur]),
        batchSize: 32, shuffles: true, seed: 1, workers: Workers(options.threads), memoryLimit: 0)
    let values = UnsafeMutableBufferPointer<Float>.allocate(capacity: 32 * 224 * 224 * 3)
    values.initialize(repeating: 0)
    defer { values.deallocate() }
    var epoch = 0
    let measurement = try Measurement(seconds: options.seconds) {
        epoch += 1
        try loader.forEachBatch(epoch: epoch, onUnreadable: { _ in }) { batch in batch.write(to: values) }
    }
    return BenchmarkResult(
        .data, "photos-224", options, measurement.rates(of: Double(loader.count)), .imagesPerSecond, of: measurement,
        batch: loader.count)
}
