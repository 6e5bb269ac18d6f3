internal import ImprintCore

/// The fill of a logo's shapes: the ink pattern, and the wobble of hand-drawn outlines.
///
/// It modifies the signed distance to the shapes.
struct FillStyle {
    /// The inked part of a shape.
    enum Pattern: Equatable {
        /// The whole shape.
        case filled
        /// A band of the given width along the inside of the outline.
        case outlined(width: Float)
        /// An outline, with parallel strokes inside.
        case hatched(width: Float, direction: Point, period: Float)
        /// The whole shape, without the areas in which noise of the given grain exceeds the threshold.
        case worn(grain: Float, threshold: Float)
    }

    let pattern: Pattern
    /// The maximum displacement of a hand-drawn outline, in units of the artwork; 0 for a printed outline.
    let wobble: Float
    /// The opacity of the ink, 0…1.
    let opacity: Float
    let noise: ValueNoise

    /// Creates plain, opaque ink.
    init(noise: ValueNoise) {
        self.init(pattern: .filled, wobble: 0, opacity: 1, noise: noise)
    }

    init(pattern: Pattern, wobble: Float, opacity: Float, noise: ValueNoise) {
        self.pattern = pattern
        self.wobble = wobble
        self.opacity = opacity
        self.noise = noise
    }

    /// Whether the ink covers exactly the inside of the outline.
    var isPlain: Bool { pattern == .filled && wobble == 0 }

    /// Returns the signed distance from `point` to the inked part of `shapes`.
    @inline(__always) func distance(from point: Point, to shapes: [DrawnShape]) -> Float {
        distance(at: point, edge: ImprintSynthesis.distance(from: point, to: shapes))
    }

    /// Returns the signed distance from `point` to the inked part of a figure.
    /// - Parameter edge: The signed distance from `point` to the outline of the figure.
    @inline(__always) func distance(at point: Point, edge: Float) -> Float {
        var edge = edge
        // Far from the outline, none of the changes below can add ink.
        if edge > 0.3 { return edge }
        if wobble > 0 { edge += wobble * (2 * noise.value(at: point * 3.1) - 1) }
        switch pattern {
        case .filled:
            return edge
        case .outlined(let width):
            return max(edge, -edge - width)
        case .hatched(let width, let direction, let period):
            let across = point.rotatedBack(by: direction).y + wobble * noise.value(at: point * 2.3)
            let stroke = (abs((across / period).fraction - 0.5) - 0.27) * period
            return max(edge, min(-edge - width, stroke))
        case .worn(let grain, let threshold):
            // The noise changes by about 1 over its grain, so the scaled difference approximates a distance.
            return max(edge, (noise.fractal(at: point / grain) - threshold) * grain)
        }
    }
}
