internal import ImprintCore

/// Letters, digits and signs of strokes and arcs, including those that look most like a logo of discs.
///
/// A glyph spans about −1…1 vertically and is narrower than it is tall; its shapes form one part.
enum Glyph: CaseIterable {
    case o, i, eight, six, nine, b, d, e, p, capitalQ, colon, percent, capitalB, exclamation

    static func random(_ random: inout RandomStream) -> [DrawnShape] {
        let glyph = random.element(of: allCases)
        return glyph.shapes(Pen(halfWidth: random.uniform(in: 0.1...0.2), narrowness: random.uniform(in: 0.75...1)))
    }

    func shapes(_ pen: Pen) -> [DrawnShape] {
        switch self {
        case .o: pen.bow(0, 0, radius: 1)
        case .i: pen.line(0, -0.35, 0, 1) + pen.dot(0, -0.85)
        case .eight: pen.bow(0, -0.5, radius: 0.46) + pen.bow(0, 0.48, radius: 0.52)
        case .six: pen.bow(0, 0.4, radius: 0.6) + pen.bow(0.5, 0.3, radius: 1.1, from: 110, to: 185)
        case .nine: pen.bow(0, -0.4, radius: 0.6) + pen.bow(-0.5, -0.3, radius: 1.1, from: -70, to: 5)
        case .b: pen.line(-0.6, -1, -0.6, 1) + pen.bow(0, 0.4, radius: 0.6)
        case .d: pen.line(0.6, -1, 0.6, 1) + pen.bow(0, 0.4, radius: 0.6)
        case .e: pen.line(-0.75, 0, 0.75, 0) + pen.bow(0, 0, radius: 0.75, from: 0, to: 315)
        case .p: pen.line(-0.6, -1, -0.6, 1) + pen.bow(0, -0.4, radius: 0.6)
        case .capitalQ: pen.bow(0, 0, radius: 0.9) + pen.line(0.4, 0.4, 0.95, 1)
        case .colon: pen.dot(0, -0.6) + pen.dot(0, 0.6)
        case .percent:
            pen.bow(-0.55, -0.55, radius: 0.35) + pen.bow(0.55, 0.55, radius: 0.35) + pen.line(0.6, -0.9, -0.6, 0.9)
        case .capitalB:
            pen.line(-0.6, -0.95, -0.6, 0.95) + pen.line(-0.6, -0.95, 0, -0.95) + pen.line(-0.6, 0, 0, 0)
                + pen.line(-0.6, 0.95, 0, 0.95) + pen.bow(0, -0.475, radius: 0.475, from: -90, to: 90)
                + pen.bow(0, 0.475, radius: 0.475, from: -90, to: 90)
        case .exclamation: pen.line(0, -1, 0, 0.4) + pen.dot(0, 0.9)
        }
    }
}

/// The pen that draws glyphs.
struct Pen {
    /// Half the width of a stroke.
    let halfWidth: Float
    /// The ratio of width to height of the glyphs.
    let narrowness: Float

    func line(_ x1: Float, _ y1: Float, _ x2: Float, _ y2: Float) -> [DrawnShape] {
        [.segment(from: Point(x1 * narrowness, y1), to: Point(x2 * narrowness, y2), halfWidth: halfWidth)]
    }

    func dot(_ x: Float, _ y: Float) -> [DrawnShape] {
        [.disc(center: Point(x * narrowness, y), radius: halfWidth * 1.4)]
    }

    /// Returns an arc of an ellipse as twenty chords, from one angle to another in degrees (0 is to the right, 90 is up).
    func bow(_ x: Float, _ y: Float, radius: Float, from: Float = 0, to: Float = 360) -> [DrawnShape] {
        let points = (0...20).map { step -> Point in
            let onCircle = Point.direction(degrees: from + (to - from) * Float(step) / 20) * radius
            return Point((x + onCircle.x) * narrowness, y + onCircle.y)
        }
        return zip(points, points.dropFirst()).map { .segment(from: $0, to: $1, halfWidth: halfWidth) }
    }
}
