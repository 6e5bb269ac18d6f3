/// What a photo is known to show.
public enum Evidence: Hashable, Sendable, Codable {
    /// It bears the label.
    case isLabel(String)
    /// It does not bear the label.
    case isNot(String)

    /// The label that it is about.
    var label: String {
        switch self {
        case .isLabel(let label), .isNot(let label): label
        }
    }

    /// Whether it bears the label.
    var isPositive: Bool {
        if case .isLabel = self { true } else { false }
    }
}

/// A photo that was shown: its features, and what it is known to show.
///
/// The photo itself is not kept.
struct Example: Sendable {
    let evidence: Evidence
    /// For each view the features, [places, channels].
    let views: [[Float]]

    var byteCount: Int { views.reduce(0) { $0 + $1.count * MemoryLayout<Float>.stride } }
}
