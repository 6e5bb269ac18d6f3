import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

/// Compares the groups found in real photos with scenes that were labelled by hand.
@Suite("Groups of reference photos", .enabled(if: ReferenceData.has("data/viget-groups.json")))
struct ImageGroupsReferenceTests {
    @Test("Pairs of a group show the same scene, and a split by groups leaks less") func pairs() throws {
        let data = ReferenceData.folder.appending(path: "data")
        let folder = try ImageFolder(at: data.appending(path: "viget-train"))
        let names = folder.items.map { $0.url.pathComponents.suffix(2).joined(separator: "/") }
        let listed = try JSONDecoder().decode(
            [[String]].self, from: Data(contentsOf: data.appending(path: "viget-groups.json")))
        var sceneOfName: [String: Int] = [:]
        for (scene, paths) in listed.enumerated() { for path in paths { sceneOfName[path] = scene } }
        let scenes = try names.map { try #require(sceneOfName[$0]) }
        let groups = try ImageGroups([folder], workers: Workers(2))

        func pairs(_ groups: [[Int]]) -> (count: Int, correct: Int) {
            groups.reduce((0, 0)) { sum, group in
                let sizes = Dictionary(grouping: group) { scenes[$0] }.values.map(\.count)
                func pairs(_ count: Int) -> Int { count * (count - 1) / 2 }
                return (sum.0 + pairs(group.count), sum.1 + sizes.reduce(0) { $0 + pairs($1) })
            }
        }
        let all = pairs(Dictionary(grouping: scenes.indices) { scenes[$0] }.values.map { $0 }).count
        // All near-duplicates are correct. Groups also contain similar photos, which may show different scenes.
        let near = pairs(groups.nearDuplicates)
        #expect(near.count >= 70 && near.correct == near.count, "\(near)")
        let found = pairs(groups.groups)
        #expect(Double(found.correct) >= 0.65 * Double(found.count), "\(found)")
        #expect(Double(found.correct) >= 0.2 * Double(all), "\(found) of \(all)")

        // Returns the number of validation photos whose scene is also in the training set.
        let indices = Dictionary(uniqueKeysWithValues: folder.items.enumerated().map { ($1, $0) })
        func leaks(_ groups: ImageGroups?) -> Int {
            (0..<5 as Range<UInt64>).reduce(0) { sum, seed in
                let (training, validation) = folder.split(.fraction(0.2), seed: seed, groups: groups)
                let trained = Set(training.compactMap { indices[$0].map { scenes[$0] } })
                return sum + validation.count { item in indices[item].map { trained.contains(scenes[$0]) } ?? false }
            }
        }
        let (random, grouped) = (leaks(nil), leaks(groups))  // a random split and a split by groups
        #expect(Double(grouped) < 0.8 * Double(random), "\(grouped), \(random) at random")
    }
}
