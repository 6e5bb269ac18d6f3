internal import ImprintCore

/// How many of the images are held out from training, to measure progress on.
public enum ValidationRule: Codable, Sendable, Hashable {
    /// As many as Create ML keeps back: none of fewer than 50 images, 10 % of fewer than 200, else 5 %.
    case automatic
    /// The given fraction, at least 0 and less than 1.
    case fraction(Double)
    /// None.
    case none

    /// The fraction to keep back of `count` images.
    public func fraction(ofImages count: Int) -> Double {
        switch self {
        case .automatic:
            return count < 50 ? 0 : count < 200 ? 0.1 : 0.05
        case .fraction(let fraction):
            precondition(fraction >= 0 && fraction < 1, "the fraction for validation is at least 0 and less than 1")
            return fraction
        case .none:
            return 0
        }
    }
}

extension ImageFolder {
    /// Divides the items at random into those to train on and those to validate on, the same for the same seed.
    ///
    /// Each class gives the same fraction, rounded; where anything is held out at all, a class of two or more images
    /// has at least one on either side, and a class of one image is trained on. What a class gives does not depend on
    /// the other classes. Both lists keep the order of `items`.
    ///
    /// With `groups` (those of this folder alone) the images of a group stay on one side, as far as whole groups fit: a class
    /// then gives at most its fraction, or one group more where it would give nothing, and a group that holds all of a class is
    /// trained on. Groups that take over a quarter of a class's validation images come last, since one scene says little of
    /// others. Without groups, photos of one burst may end up on either side, which makes validation look better than it is.
    package func split(
        _ rule: ValidationRule, seed: UInt64, groups: ImageGroups? = nil
    ) -> (training: [Item], validation: [Item]) {
        let (training, validation) = splitPlaces(rule, seed: seed, groups: groups)
        return (training.map { items[$0] }, validation.map { items[$0] })
    }

    /// How many images `split` without groups would keep back, and how many of these would have another image of their group
    /// among those to train on: what they measure is memory.
    package func randomSplitLeaks(_ rule: ValidationRule, seed: UInt64, groups: ImageGroups) -> (images: Int, of: Int) {
        let (training, validation) = splitPlaces(rule, seed: seed, groups: nil)
        return (groups.leaks(from: validation, into: training), validation.count)
    }

    private func splitPlaces(
        _ rule: ValidationRule, seed: UInt64, groups: ImageGroups?
    ) -> (training: [Int], validation: [Int]) {
        let fraction = rule.fraction(ofImages: items.count)
        guard fraction > 0 else { return (Array(items.indices), []) }
        var selection = Selection(of: self, fraction: fraction, groups: groups)
        for label in labels.indices {
            var stream = RandomStream(seed: seed, "split", label)
            selection.choose(label, using: &stream)
        }
        return (items.indices.filter { !selection.isChosen($0) }, items.indices.filter(selection.isChosen))
    }
}

/// Which groups of images are held out.
private struct Selection {
    /// The images of each group, as places in the folder's items, and the group of each image.
    private let members: [[Int]]
    private let groupOfItem: [Int]
    /// How many images of each class a group holds.
    private let counts: [[Int: Int]]
    private let total: [Int]
    private let wanted: [Int]
    private var kept: [Int]
    private var chosen: Set<Int> = []

    init(of folder: ImageFolder, fraction: Double, groups: ImageGroups?) {
        let labels = folder.items.map(\.label)
        var numbers: [Int: Int] = [:]
        groupOfItem = folder.items.indices.map { place in
            let root = groups?.group(of: place) ?? place
            let number = numbers[root] ?? numbers.count
            numbers[root] = number
            return number
        }
        var members = Array(repeating: [Int](), count: numbers.count)
        for (place, group) in groupOfItem.enumerated() { members[group].append(place) }
        self.members = members
        counts = members.map { $0.reduce(into: [:]) { $0[labels[$1], default: 0] += 1 } }
        let total = folder.labels.indices.map { label in labels.count { $0 == label } }
        self.total = total
        wanted = total.map { $0 < 2 ? 0 : min(max(Int((Double($0) * fraction).rounded()), 1), $0 - 1) }
        kept = total.map { _ in 0 }
    }

    func isChosen(_ item: Int) -> Bool { chosen.contains(groupOfItem[item]) }

    /// Keeps back groups of a class, in random order.
    mutating func choose(_ label: Int, using stream: inout RandomStream) {
        let own = members.indices.filter { counts[$0][label] != nil }
        let order = stream.permutation(of: own.count).map { own[$0] }
        let small = max(wanted[label] / 4, 1)
        for isSmall in [true, false] {
            for group in order where isSmall == (counts[group][label, default: 0] <= small) && fits(group) {
                keep(group)
            }
        }
        guard kept[label] == 0, wanted[label] > 0 else { return }
        // No group fits: the one that is the least too large, as long as every class has images left to train on.
        let possible = order.filter { group in
            counts[group].allSatisfy { kept[$0.key] + $0.value < total[$0.key] }
        }
        if let group = possible.min(by: { counts[$0][label, default: 0] < counts[$1][label, default: 0] }) {
            keep(group)
        }
    }

    private func fits(_ group: Int) -> Bool {
        !chosen.contains(group) && counts[group].allSatisfy { kept[$0.key] + $0.value <= wanted[$0.key] }
    }

    private mutating func keep(_ group: Int) {
        chosen.insert(group)
        for (label, count) in counts[group] { kept[label] += count }
    }
}
