internal import Foundation
package import ImprintCore
package import ImprintImages
package import ImprintModel
internal import ImprintNetwork

extension TrainingPhoto {
    /// Returns the photo as an image to classify.
    /// - Throws: `ImageError.notLoaded` if a photo that is not a file cannot be loaded.
    fileprivate func source() throws(ImageError) -> ImageSource {
        switch content {
        case nil: .file(url)
        case .encoded(let bytes): .data(Data(bytes))
        case .decoded(let image): .image(image)
        case .loaded(let data): .data(Data(try bytes(of: data)))
        }
    }
}

extension ModelFile {
    /// Returns a copy of the model with rehearsal features of some training photos, balanced over the labels.
    ///
    /// The method skips unreadable photos. It returns an unchanged copy if the model does not have a trainable head, or if all photos are
    /// unreadable.
    /// - Parameters:
    ///   - photos: The training photos, with one label each.
    ///   - count: The maximum number of photos.
    ///   - seed: The random seed of the selection.
    ///   - workers: The threads that compute features.
    package func addingRehearsal(
        _ photos: [TrainingPhoto], count: Int, seed: UInt64, workers: Workers
    ) throws -> ModelFile {
        guard count > 0, network.headIndex != nil else { return self }
        let selected = Self.balancedSample(photos.map(\.label), count: count, seed: seed).map { photos[$0] }
        let found = try headFeatures(of: selected, workers: workers)
        guard !found.isEmpty else { return self }
        let rehearsal = Rehearsal(
            features: found.flatMap(\.features), positions: head.runtime(self, workers: Workers(1)).positions,
            labels: found.map(\.label))
        return with(parameters, base: base, rehearsal: rehearsal)
    }

    /// Computes the inputs of the head for photos; unreadable photos are left out.
    /// - Parameters:
    ///   - photos: The photos, with one label each.
    ///   - workers: The threads that share the photos; the features do not depend on them.
    package func headFeatures(
        of photos: [TrainingPhoto], workers: Workers
    ) throws -> [(label: Int, features: [Float])] {
        let runtime = head.runtime(self, workers: Workers(1))
        return try workers.parallelMap(photos.count) { index -> (label: Int, features: [Float])? in
            do {
                return (
                    photos[index].label,
                    try runtime.features(of: photos[index].source(), blocks: 0, views: ImageViews(count: 1))[0]
                )
            } catch is ImageError {
                return nil
            }
        }.compactMap { $0 }
    }

    /// Returns the indices of a random sample of `count` photos, balanced over the labels, in ascending order.
    package static func balancedSample(_ labels: [Int], count: Int, seed: UInt64) -> [Int] {
        var stream = RandomStream(seed: seed, "rehearsal")
        let byLabel = Dictionary(grouping: labels.indices) { labels[$0] }.sorted { $0.key < $1.key }
        let shuffled = byLabel.map { _, indices in stream.permutation(of: indices.count).map { indices[$0] } }
        let turns = shuffled.map(\.count).max() ?? 0
        let interleaved = (0..<turns).flatMap { turn in
            shuffled.compactMap { $0.indices.contains(turn) ? $0[turn] : nil }
        }
        return interleaved.prefix(count).sorted()
    }
}
