internal import ImprintCore

/// The size of the validation set, which is held out from training.
public enum ValidationRule: Codable, Sendable, Hashable {
    /// Create ML's rule with a minimum: 0 % of fewer than 50 images, 10 % of 50 to 199 images, otherwise 5 % but at least 50
    /// images.
    case automatic
    /// The given fraction, at least 0 and less than 1.
    case fraction(Double)
    /// No validation set.
    case none

    /// Whether the fraction is at least 0 and less than 1.
    package var isInRange: Bool {
        if case .fraction(let fraction) = self { (0..<1).contains(fraction) } else { true }
    }

    /// Returns the fraction of images to hold out, from 0 to less than 1.
    ///
    /// The automatic fraction is 0 for fewer than 50 images, 0.1 for 50 to 199, and otherwise max(0.05, 50 / count).
    /// - Parameter count: The number of images. The fraction of `fraction(_:)` must be in range; otherwise, the program ends.
    public func fraction(ofImages count: Int) -> Double {
        switch self {
        case .automatic:
            return count < 50 ? 0 : count < 200 ? 0.1 : max(0.05, 50 / Double(count))
        case .fraction(let fraction):
            precondition(isInRange, "the validation fraction must be at least 0 and less than 1")
            return fraction
        case .none:
            return 0
        }
    }
}

extension ValidationRule {
    private enum CodingKeys: String, CodingKey {
        case automatic, fraction, none
    }

    /// The key of the fraction in older files, which the compiler generated.
    private enum OlderKey: String, CodingKey {
        case fraction = "_0"
    }

    /// Reads `{"automatic": {}}`, `{"fraction": 0.1}` or `{"none": {}}`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        guard let key = container.allKeys.first, container.allKeys.count == 1 else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: container.codingPath, debugDescription: "expected automatic, fraction or none"))
        }
        switch key {
        case .automatic: self = .automatic
        case .none: self = .none
        case .fraction:
            if let fraction = try? container.decode(Double.self, forKey: .fraction) {
                self = .fraction(fraction)
            } else {
                let older = try container.nestedContainer(keyedBy: OlderKey.self, forKey: .fraction)
                self = .fraction(try older.decode(Double.self, forKey: .fraction))
            }
        }
    }

    /// Writes the rule as `init(from:)` reads it.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .automatic: _ = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .automatic)
        case .fraction(let fraction): try container.encode(fraction, forKey: .fraction)
        case .none: _ = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .none)
        }
    }
}

extension TrainingSource {
    /// Splits the items at random into a training set and a validation set; the same seed gives the same split.
    ///
    /// The split is stratified: of a class of n ≥ 2 images, the validation set holds min(max(round(fraction · n), 1), n − 1), so each set
    /// has at least one. A class of one image is in the training set. With one label per image, the split of a class does not depend
    /// on the other classes. Images with several labels may leave a class without validation images, for example if each of its images
    /// also has a label of only one image. A fraction of 0 holds out nothing. Both lists keep the order of `items`.
    ///
    /// With `groups` (of this source only), the images of a group stay in one set. A class then holds out at most its fraction, or
    /// one group if it would otherwise hold out nothing; a group that holds all images of a class is in the training set. An image
    /// with several labels counts for each of them, and images without labels count as a separate class.
    ///
    /// Groups larger than a quarter of a class's validation images are chosen last, because one scene is not representative.
    /// Without groups, photos of one burst may be in both sets, and validation results are too optimistic.
    /// - Parameters:
    ///   - rule: The size of the validation set; its fraction must be in range.
    ///   - seed: The random seed.
    ///   - groups: The groups of near-duplicates and bursts of `items`; nil if each image is a group.
    package func split(
        _ rule: ValidationRule, seed: UInt64, groups: ImageGroups? = nil
    ) -> (training: [TrainingPhoto], validation: [TrainingPhoto]) {
        let (training, validation) = splitIndices(rule, seed: seed, groups: groups)
        return (training.map { items[$0] }, validation.map { items[$0] })
    }

    /// Counts the validation images that would have a near-duplicate in the training set if `split` ignored groups.
    ///
    /// Such images measure memorization, not generalization.
    /// - Returns: The number of these images, and the number of all images that this split would hold out.
    package func randomSplitLeaks(_ rule: ValidationRule, seed: UInt64, groups: ImageGroups) -> (images: Int, of: Int) {
        let (training, validation) = splitIndices(rule, seed: seed, groups: nil)
        return (groups.leaks(from: validation, into: training), validation.count)
    }

    private func splitIndices(
        _ rule: ValidationRule, seed: UInt64, groups: ImageGroups?
    ) -> (training: [Int], validation: [Int]) {
        let fraction = rule.fraction(ofImages: items.count)
        guard fraction > 0 else { return (Array(items.indices), []) }
        var selection = Selection(of: self, fraction: fraction, groups: groups)
        for label in selection.labelIndices {
            var stream = RandomStream(seed: seed, "split", label)
            selection.choose(label, using: &stream)
        }
        return (items.indices.filter { !selection.isChosen($0) }, items.indices.filter(selection.isChosen))
    }
}

/// The groups of images that are held out.
private struct Selection {
    /// The group of each image.
    private let groupOfItem: [Int]
    /// The number of images of each class in each group.
    private let counts: [[Int: Int]]
    /// The groups with images of each class, in order.
    private let groupsByClass: [[Int]]
    /// The indices of the classes.
    let labelIndices: Range<Int>
    /// The number of images of each class: in total, to hold out at most, and held out so far.
    private let totalCounts: [Int]
    private let targetCounts: [Int]
    private var heldOutCounts: [Int]
    private var chosen: Set<Int> = []

    init(of source: any TrainingSource, fraction: Double, groups: ImageGroups?) {
        // Images without labels are a class after the last one.
        let labels = source.items.map { $0.labels.isEmpty ? [source.labels.count] : $0.labels }
        labelIndices = 0..<(source.labels.count + (source.items.contains { $0.labels.isEmpty } ? 1 : 0))
        var groupIndices: [Int: Int] = [:]
        groupOfItem = source.items.indices.map { item in
            let root = groups?.group(of: item) ?? item
            let group = groupIndices[root] ?? groupIndices.count
            groupIndices[root] = group
            return group
        }
        var members = Array(repeating: [Int](), count: groupIndices.count)
        for (item, group) in groupOfItem.enumerated() { members[group].append(item) }
        counts = members.map { $0.flatMap { labels[$0] }.reduce(into: [:]) { $0[$1, default: 0] += 1 } }
        // One pass over the groups, because there may be thousands of classes.
        var total = labelIndices.map { _ in 0 }
        var groupsByClass = labelIndices.map { _ in [Int]() }
        for (group, counts) in counts.enumerated() {
            for (label, count) in counts {
                total[label] += count
                groupsByClass[label].append(group)
            }
        }
        self.groupsByClass = groupsByClass
        totalCounts = total
        targetCounts = total.map { $0 < 2 ? 0 : min(max(Int((Double($0) * fraction).rounded()), 1), $0 - 1) }
        heldOutCounts = total.map { _ in 0 }
    }

    /// Whether an image is held out.
    func isChosen(_ item: Int) -> Bool { chosen.contains(groupOfItem[item]) }

    /// Holds out groups of a class, in random order.
    mutating func choose(_ label: Int, using stream: inout RandomStream) {
        let groups = groupsByClass[label]
        let order = stream.permutation(of: groups.count).map { groups[$0] }
        let small = max(targetCounts[label] / 4, 1)
        for isSmall in [true, false] {
            for group in order where isSmall == (counts[group][label, default: 0] <= small) && fits(group) {
                holdOut(group)
            }
        }
        guard heldOutCounts[label] == 0, targetCounts[label] > 0 else { return }
        // If no group fits, hold out the smallest one that leaves every class images to train on.
        let possible = order.filter { group in
            counts[group].allSatisfy { heldOutCounts[$0.key] + $0.value < totalCounts[$0.key] }
        }
        if let group = possible.min(by: { counts[$0][label, default: 0] < counts[$1][label, default: 0] }) {
            holdOut(group)
        }
    }

    /// Whether a group can be held out without more images of any of its classes than the target.
    private func fits(_ group: Int) -> Bool {
        !chosen.contains(group)
            && counts[group].allSatisfy { heldOutCounts[$0.key] + $0.value <= targetCounts[$0.key] }
    }

    private mutating func holdOut(_ group: Int) {
        chosen.insert(group)
        for (label, count) in counts[group] { heldOutCounts[label] += count }
    }
}
