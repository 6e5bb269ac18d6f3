/// An activation that clamps values, fused into another operation: y = min(max(x, floor), ceiling).
enum ClampActivation: Hashable, Sendable {
    /// No activation.
    case none
    /// `ReLU`: y = max(x, 0).
    case relu
    /// `ReLU6`, or a `ClipLayer` whose minimum is 0: y = min(max(x, 0), maximum).
    case clip(maximum: Float)

    /// The lower bound: 0, or −∞ without an activation.
    var floor: Float { self == .none ? -.infinity : 0 }

    /// The upper bound; ∞ without one.
    var ceiling: Float { if case .clip(let maximum) = self { maximum } else { .infinity } }
}
