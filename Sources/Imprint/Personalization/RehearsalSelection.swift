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

    /// The size of the upright photo in pixels; 0 if it is unknown without loading or decoding the photo.
    fileprivate var size: (width: Int, height: Int) {
        switch content {
        case nil: (try? ImageFile.information(of: url))?.uprightSize ?? (0, 0)
        case .decoded(let image): (image.width, image.height)
        case .encoded, .loaded: (0, 0)
        }
    }
}

extension ModelFile {
    /// Returns a copy of the model with rehearsal features of some training photos, balanced over the labels.
    ///
    /// The method skips unreadable photos. It returns an unchanged copy if the model does not have a trainable head, if all photos are
    /// unreadable, or if there is not enough memory: the features are optional, but the training of the model may have taken hours.
    /// - Parameters:
    ///   - photos: The training photos, with one label each.
    ///   - count: The maximum number of photos.
    ///   - seed: The random seed of the selection.
    ///   - workers: The threads that compute features.
    /// - Returns: The copy, and `ImprintError.outOfMemory` if there was not enough memory.
    package func addingRehearsal(
        _ photos: [TrainingPhoto], count: Int, seed: UInt64, workers: Workers
    ) throws -> (model: ModelFile, failure: ImprintError?) {
        guard count > 0, network.headIndex != nil else { return (self, nil) }
        let selected = Self.balancedSample(photos.map(\.label), count: count, seed: seed).map { photos[$0] }
        let found: [(label: Int, features: [Float])]
        do {
            found = try headFeatures(of: selected, workers: workers)
        } catch ImprintError.outOfMemory(let byteCount) {
            return (self, .outOfMemory(byteCount: byteCount))
        } catch NetworkError.outOfMemory(let byteCount) {
            return (self, .outOfMemory(byteCount: byteCount))
        }
        guard !found.isEmpty else { return (self, nil) }
        let rehearsal = Rehearsal(
            features: found.flatMap(\.features), positions: head.runtime(self, workers: Workers(1)).positions,
            labels: found.map(\.label))
        return (with(parameters, baseDigest: baseDigest, rehearsal: rehearsal), nil)
    }

    /// Computes the inputs of the head for photos; unreadable photos are left out.
    /// - Parameters:
    ///   - photos: The photos, with one label each.
    ///   - workers: The threads that share the photos; the features do not depend on them.
    package func headFeatures(
        of photos: [TrainingPhoto], workers: Workers
    ) throws -> [(label: Int, features: [Float])] {
        // A detector needs a plan for each shape, so photos of one shape follow each other, and each thread keeps the plans of one shape.
        let runtime = head.runtime(self, workers: Workers(1), shapes: 1)
        let order = head.seesWholeImage ? Array(photos.indices) : Self.sortedByShape(photos, workers)
        let features = try workers.parallelMap(order.count) { turn -> [Float]? in
            do {
                return try runtime.features(
                    of: photos[order[turn]].source(), blocks: 0, views: ImageViews(count: 1))[0]
            } catch is ImageError {
                return nil
            }
        }
        return zip(order, features).sorted { $0.0 < $1.0 }.compactMap { index, features in
            features.map { (label: photos[index].label, features: $0) }
        }
    }

    /// Returns the indices of photos, sorted by the size of the photos.
    private static func sortedByShape(_ photos: [TrainingPhoto], _ workers: Workers) -> [Int] {
        let sizes = workers.parallelMap(photos.count) { photos[$0].size }
        return photos.indices.sorted {
            (sizes[$0].width, sizes[$0].height, $0) < (sizes[$1].width, sizes[$1].height, $1)
        }
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
