internal import ImprintCore

/// How the shapes of a part are put on the ground: their signed distance, changed in steps.
struct Inking {
    /// What of a shape is inked.
    enum Style: Equatable {
        case filled
        /// A band of the given width along the inside of the outline.
        case outlined(width: Float)
        /// An outline, and strokes in one direction inside.
        case hatched(width: Float, direction: Point, period: Float)
        /// Filled, with the ink missing where a noise of the given grain is above the threshold.
        case worn(grain: Float, threshold: Float)
    }

    let style: Style
    /// By how much the outline wanders at most, as a drawn line does, in units of the artwork; 0 for a printed one.
    let wobble: Float
    /// How much of the ground the ink hides: 1 is all.
    let opacity: Float
    let noise: ValueNoise

    /// Plain, complete ink.
    init(noise: ValueNoise) {
        self.init(style: .filled, wobble: 0, opacity: 1, noise: noise)
    }

    init(style: Style, wobble: Float, opacity: Float, noise: ValueNoise) {
        self.style = style
        self.wobble = wobble
        self.opacity = opacity
        self.noise = noise
    }

    /// Whether ink covers just what is within the outline.
    var isPlain: Bool { style == .filled && wobble == 0 }

    /// The signed distance from `point` to the inked part of `shapes`.
    @inline(__always) func distance(from point: Point, to shapes: [DrawnShape]) -> Float {
        distance(at: point, edge: ImprintSynthesis.distance(from: point, to: shapes))
    }

    /// The signed distance from `point` to the inked part of a figure, `edge` being that to its outline.
    @inline(__always) func distance(at point: Point, edge: Float) -> Float {
        var edge = edge
        // Far away nothing below could bring the ink here.
        if edge > 0.3 { return edge }
        if wobble > 0 { edge += wobble * (2 * noise.value(at: point * 3.1) - 1) }
        switch style {
        case .filled:
            return edge
        case .outlined(let width):
            return max(edge, -edge - width)
        case .hatched(let width, let direction, let period):
            let across = point.turnedBack(by: direction).y + wobble * noise.value(at: point * 2.3)
            let stroke = (abs((across / period).fraction - 0.5) - 0.27) * period
            return max(edge, min(-edge - width, stroke))
        case .worn(let grain, let threshold):
            // Noise climbs by about 1 over its grain, which makes its level sets a distance.
            return max(edge, (noise.fractal(at: point / grain) - threshold) * grain)
        }
    }
}
