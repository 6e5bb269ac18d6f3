internal import ImprintCore

/// How many of the images are kept back from training, to measure progress on.
public enum ValidationRule: Sendable, Hashable {
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
    /// Each class gives the same fraction, rounded; where anything is kept back at all, a class of two or more images
    /// has at least one on either side, and a class of one image is trained on. What a class gives does not depend on
    /// the other classes. Both lists keep the order of `items`.
    ///
    /// Photos taken in one burst may end up on either side, which makes validation look better than it is.
    public func split(_ rule: ValidationRule, seed: UInt64) -> (training: [Item], validation: [Item]) {
        let fraction = rule.fraction(ofImages: items.count)
        guard fraction > 0 else { return (items, []) }
        var (training, validation): ([Item], [Item]) = ([], [])
        for label in labels.indices {
            let members = items.filter { $0.label == label }
            let wanted = Int((Double(members.count) * fraction).rounded())
            let keptBack = members.count < 2 ? 0 : min(max(wanted, 1), members.count - 1)
            var stream = RandomStream(seed: seed, "split", label)
            let chosen = Set(stream.permutation(of: members.count).prefix(keptBack))
            for (index, item) in members.enumerated() {
                if chosen.contains(index) { validation.append(item) } else { training.append(item) }
            }
        }
        return (training, validation)
    }
}
