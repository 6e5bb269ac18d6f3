package import Foundation
package import ImprintCore
internal import ImprintImages
package import ImprintModel
internal import ImprintNetwork

extension ModelFile {
    /// The model with features of some of the photos that it was trained on: as many of each label as there are, up to `count` in all.
    ///
    /// Photos that can no longer be read are left out. Without any, and if there is no head that could be tuned, it is as it was.
    package func rehearsing(
        _ items: [(url: URL, label: Int)], count: Int, seed: UInt64, workers: Workers
    ) throws -> ModelFile {
        guard count > 0, network.tunedPlace != nil else { return self }
        let runtime = head.runtime(self, workers: Workers(1))
        let chosen = Self.evenly(items.map(\.label), count: count, seed: seed).map { items[$0] }
        let found = try workers.parallelMap(chosen.count) { place -> (label: Int, features: [Float])? in
            do {
                return (
                    chosen[place].label,
                    try runtime.features(of: .file(chosen[place].url), blocks: 0, views: ImageViews(count: 1))[0]
                )
            } catch is ImageError {
                return nil
            }
        }.compactMap { $0 }
        guard !found.isEmpty else { return self }
        let rehearsal = Rehearsal(
            features: found.flatMap(\.features), places: runtime.positions, labels: found.map(\.label))
        return ModelFile(
            network: network, parameters: parameters, labels: labels, preprocessing: preprocessing,
            detector: detector, training: training, base: base, rehearsal: rehearsal, categories: categories,
            precision: precision)
    }

    /// Places of `count` photos, of each label in turn, by chance; in the order of the photos.
    static func evenly(_ labels: [Int], count: Int, seed: UInt64) -> [Int] {
        var stream = RandomStream(seed: seed, "rehearsal")
        let byLabel = Dictionary(grouping: labels.indices) { labels[$0] }.sorted { $0.key < $1.key }
        let places = byLabel.map { _, places in stream.permutation(of: places.count).map { places[$0] } }
        let rounds = places.map(\.count).max() ?? 0
        let inTurn = (0..<rounds).flatMap { round in places.compactMap { $0.indices.contains(round) ? $0[round] : nil }
        }
        return inTurn.prefix(count).sorted()
    }
}
