internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The folds of the training photos in which a recipe evaluates a head: the same as in `CrossValidation`, except for labels with only one group.
enum RecipeFolds {
    /// The maximum number of folds.
    private static let count = 5

    /// Returns the identifier of the group of near-duplicates or of a burst for each photo.
    ///
    /// It is different for each photo if the configuration does not keep groups together.
    /// - Parameters:
    ///   - photos: Photos of the source.
    ///   - images: The result of reading the source, which may have compared the photos already.
    ///   - checkContinues: Called after each portion of photos that are compared; throws if the run should end.
    static func groups(
        of photos: [TrainingPhoto], _ images: TrainingImages, _ source: any TrainingSource,
        _ configuration: ClassifierConfiguration, onEvent: (TrainingEvent) -> Void, checkContinues: () throws -> Void
    ) throws -> [Int] {
        guard configuration.split.keepsGroupsTogether else { return Array(photos.indices) }
        var groups = images.groups
        if groups == nil {
            let found = try ImageGroups([source], workers: Workers(configuration.threads)) { done in
                onEvent(.comparing(done: done, of: source.items.count))
                try checkContinues()
            }
            groups = source.items.indices.map(found.group)
        }
        let groupsByURL = Dictionary(zip(source.items.map(\.url), groups ?? [])) { first, _ in first }
        return photos.map { groupsByURL[$0.url] ?? 0 }
    }

    /// Splits photos into folds that keep groups together.
    ///
    /// A group that holds all photos of a label is in no fold, because a head that is fitted to the other photos does not know the label.
    /// - Parameters:
    ///   - labels: The labels of each photo.
    ///   - groups: The identifier of the group of each photo.
    /// - Returns: The indices of the photos in each fold; empty if each label has only one group.
    static func folds(labels: [[Int]], groups: [Int], seed: UInt64) -> [[Int]] {
        let members = Dictionary(grouping: labels.indices) { groups[$0] }.values.sorted { $0[0] < $1[0] }
        let groupCounts = members.reduce(into: [Int: Int]()) { counts, group in
            for label in Set(group.flatMap { labels[$0] }) { counts[label, default: 0] += 1 }
        }
        guard groupCounts.values.contains(where: { $0 > 1 }) else { return [] }
        let heldOut = members.filter { group in
            group.allSatisfy { labels[$0].allSatisfy { groupCounts[$0, default: 0] > 1 } }
        }
        guard !heldOut.isEmpty else { return [] }
        return PhotoGroups.folds(of: heldOut, labels: labels, count: min(count, heldOut.count), seed: seed)
            .filter { !$0.isEmpty }
    }
}
