/// The printed part of a scene (plate, halo, wordmark and logo), as premultiplied colours and their coverage.
struct PrintLayer {
    let size: Int
    private(set) var pixels: [SIMD4<Float>]

    init(size: Int) {
        self.size = size
        pixels = [SIMD4<Float>](repeating: .zero, count: size * size)
    }

    /// Paints the area in which `distance` is negative, as `Canvas.paint` does, but only within a box.
    @inline(__always) mutating func paint(
        _ color: Color, through view: View, in box: PixelBox, distance: (Point) -> Float
    ) {
        let color = SIMD4<Float>(color, 1)
        update(in: box) { below, pixel in
            let (point, pixelSide) = view.artwork(at: pixel)
            let coverage = (0.5 - distance(point) / pixelSide).clampedToUnit
            return color * coverage + below * (1 - coverage)
        }
    }

    /// Paints one element of a logo next to those already painted.
    ///
    /// If two elements share a pixel, their coverages are added. The layers below are visible only in the remaining part (Porter
    /// and Duff's *over* for disjoint areas). A blank ink erases the layers below.
    mutating func paint(_ element: Element, _ ink: Inks.Ink, _ fillStyle: FillStyle, through view: View) {
        let color = SIMD4(ink.color ?? .zero, ink.color == nil ? 0 : 1)
        let margin = fillStyle.wobble * view.scale + 2
        let box = PixelBox(around: element.corners, through: view, margin: margin, size: size)
        if fillStyle.isPlain, let mipmap = element.figure.mipmap {
            let hasOriginalColors: Bool = if case .original = ink { true } else { false }
            // Four samples per pixel.
            let spacing = 0.5 / (view.scale * element.enlargement)
            mipmap.withSampler(spacing: spacing) { sampler in
                update(in: box) { below, pixel in
                    var sum = SIMD4<Float>.zero
                    for offset in [Point(-0.25, -0.25), Point(0.25, -0.25), Point(-0.25, 0.25), Point(0.25, 0.25)] {
                        let point = view.artwork(at: pixel + offset).point
                        sum += sampler.value(at: (point - element.offset) / element.scale)
                    }
                    sum *= 0.25 / 255
                    return beside(below, hasOriginalColors ? sum : color * sum.w, coverage: sum.w)
                }
            }
        } else {
            update(in: box) { below, pixel in
                let (point, pixelSide) = view.artwork(at: pixel)
                let edge = fillStyle.distance(at: point, edge: element.distance(to: point))
                let coverage = (0.5 - edge / pixelSide).clampedToUnit
                return beside(below, color * coverage, coverage: coverage)
            }
        }
    }

    /// Composites another layer over this one.
    mutating func composite(_ other: PrintLayer, in box: PixelBox, opacity: Float) {
        other.pixels.withUnsafeBufferPointer { other in
            updateByIndex(in: box) { below, index in
                let above = other[index] * opacity
                return above + below * (1 - above.w)
            }
        }
    }

    @inline(__always) private mutating func update(in box: PixelBox, _ change: (SIMD4<Float>, Point) -> SIMD4<Float>) {
        let size = size
        pixels.withUnsafeMutableBufferPointer { pixels in
            for row in box.rows {
                for column in box.columns {
                    let pixel = Point(Float(column) + 0.5, Float(row) + 0.5)
                    pixels[row * size + column] = change(pixels[row * size + column], pixel)
                }
            }
        }
    }

    @inline(__always) private mutating func updateByIndex(
        in box: PixelBox, _ change: (SIMD4<Float>, Int) -> SIMD4<Float>
    ) {
        let size = size
        pixels.withUnsafeMutableBufferPointer { pixels in
            for row in box.rows {
                for index in (row * size + box.columns.lowerBound)..<(row * size + box.columns.upperBound) {
                    pixels[index] = change(pixels[index], index)
                }
            }
        }
    }
}

/// Adds a colour to the colour below for disjoint areas of a pixel; if both exceed the pixel, the one below is reduced.
@inline(__always) private func beside(
    _ below: SIMD4<Float>, _ above: SIMD4<Float>, coverage: Float
) -> SIMD4<Float> {
    coverage + below.w > 1 ? above + below * ((1 - coverage) / below.w) : below + above
}

/// A rectangle of the frame, in whole pixels.
struct PixelBox {
    let columns: Range<Int>
    let rows: Range<Int>

    static func all(_ size: Int) -> PixelBox { PixelBox(columns: 0..<size, rows: 0..<size) }

    private init(columns: Range<Int>, rows: Range<Int>) {
        self.columns = columns
        self.rows = rows
    }

    /// Creates the bounding box of points of the artwork in the frame; empty if they are outside of the frame.
    init(around points: [Point], through view: View, margin: Float, size: Int) {
        var low = Point(repeating: Float(size))
        var high = Point.zero
        for point in points {
            let pixel = view.pixel(of: point)
            low = Point(min(low.x, pixel.x), min(low.y, pixel.y))
            high = Point(max(high.x, pixel.x), max(high.y, pixel.y))
        }
        func range(_ low: Float, _ high: Float) -> Range<Int> {
            let first = Int(min(max(low - margin, 0), Float(size)))
            return first..<max(Int(min(max(high + margin + 1, 0), Float(size))), first)
        }
        columns = range(low.x, high.x)
        rows = range(low.y, high.y)
    }
}
