internal import ImprintCore

extension DrawnLogo {
    /// Returns a logo of one to five random figures, side by side or overlapping, in one to three parts.
    static func invented(_ random: inout RandomStream) -> DrawnLogo {
        let count = 1 + random.index(below: 5)
        var parts: [[DrawnShape]] = []
        for index in 0..<count {
            let center =
                index == 0 ? Point.zero : random.direction() * random.uniform(in: 0.3...1.5)
            let radius = index == 0 ? 1 : random.uniform(in: 0.25...1)
            let figure = figure(center, radius, isPlain: count > 1, &random)
            if parts.count == 3 || (index > 0 && random.chance(0.4)) {
                parts[parts.count - 1] += figure
            } else {
                parts.append(figure)
            }
        }
        return DrawnLogo(fitting: parts)
    }

    /// Returns a random figure.
    /// - Parameter isPlain: Whether plain shapes are allowed; if not, the figure is a glyph or a star.
    private static func figure(
        _ center: Point, _ radius: Float, isPlain: Bool, _ random: inout RandomStream
    ) -> [DrawnShape] {
        let direction = random.direction()
        switch random.index(below: isPlain ? 8 : 2) {
        case 0:
            return Glyph.random(&random).map { $0.moved(by: center / radius, scaled: radius) }
        case 1:
            // The rays of a star.
            let rays = 3 + random.index(below: 6)
            let halfWidth = random.uniform(in: 0.07...0.2) * radius
            let start = random.uniform(in: 0...360)
            return (0..<rays).map { ray in
                let tip = Point.direction(degrees: start + 360 * Float(ray) / Float(rays)) * radius
                return .segment(from: center, to: center + tip, halfWidth: halfWidth)
            }
        case 2: return [.disc(center: center, radius: radius)]
        case 3:
            return [.ring(center: center, radius: radius, halfWidth: random.uniform(in: 0.08...0.3) * radius)]
        case 4:
            let radii = Point(radius, radius * random.uniform(in: 0.35...0.7))
            return [.ellipse(center: center, radii: radii, direction: direction)]
        case 5:
            let halfSides = Point(radius, radius * random.uniform(in: 0.2...1))
            let rounding = random.uniform(in: 0...0.2) * radius
            return [.box(center: center, halfSides: halfSides, direction: direction, rounding: rounding)]
        case 6: return [.triangle(center: center, inradius: radius * 0.6, direction: direction)]
        default:
            return [
                .segment(
                    from: center - direction * radius, to: center + direction * radius,
                    halfWidth: random.uniform(in: 0.1...0.35) * radius)
            ]
        }
    }
}
