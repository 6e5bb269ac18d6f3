/// The supervision of a photo: a label that it has, or one that it does not have.
enum Supervision: Hashable, Sendable {
    /// The photo has the label.
    case isLabel(String)
    /// The photo does not have the label.
    case isNot(String)

    /// The label.
    var label: String {
        switch self {
        case .isLabel(let label), .isNot(let label): label
        }
    }

    /// Whether the photo has the label.
    var isPositive: Bool {
        if case .isLabel = self { true } else { false }
    }
}

/// A training example of a personalization: the features of a photo and its label.
///
/// The photo itself is not stored.
struct Example: Sendable {
    let supervision: Supervision
    /// The features of each view, [positions, channels].
    let views: [[Float]]

    var byteCount: Int { views.reduce(0) { $0 + $1.count * MemoryLayout<Float>.stride } }
}

extension [Supervision] {
    /// The labels that photos have, in the order of their first photos.
    var positiveLabels: [String] {
        var seen: Set<String> = []
        return filter { $0.isPositive && seen.insert($0.label).inserted }.map(\.label)
    }
}
