internal import ImprintCore

/// Value noise: random values at the corners of a grid, interpolated smoothly between them.
///
/// The grid has a spacing of 1 and repeats every 32 units; scale the point to choose the grain.
struct ValueNoise {
    private let corners: [Float]

    init(_ random: inout RandomStream) {
        var corners: [Float] = []
        corners.reserveCapacity(32 * 32)
        for _ in 0..<32 * 32 { corners.append(random.uniform()) }
        self.corners = corners
    }

    /// Returns the value at `point`, in `[0, 1)`.
    @inline(__always) func value(at point: Point) -> Float {
        let column = point.x.floor
        let row = point.y.floor
        let x = smooth(point.x - Float(column))
        let y = smooth(point.y - Float(row))
        let top = blend(corner(column, row), corner(column + 1, row), x)
        let bottom = blend(corner(column, row + 1), corner(column + 1, row + 1), x)
        return blend(top, bottom, y)
    }

    /// Returns the sum of three octaves, each with twice the frequency and half the amplitude of the previous, in `[0, 1)`.
    @inline(__always) func fractal(at point: Point) -> Float {
        (4 * value(at: point) + 2 * value(at: point * 2 + 7.3) + value(at: point * 4 + 13.7)) / 7
    }

    @inline(__always) private func corner(_ column: Int, _ row: Int) -> Float {
        corners[(row & 31) << 5 | (column & 31)]
    }
}

@inline(__always) private func smooth(_ t: Float) -> Float { t * t * (3 - 2 * t) }

@inline(__always) private func blend(_ a: Float, _ b: Float, _ t: Float) -> Float { a + (b - a) * t }
