/// What is printed, stuck or painted on the scene, before it is laid upon it: premultiplied colours with their coverage.
struct PrintLayer {
    let size: Int
    private(set) var pixels: [SIMD4<Float>]

    init(size: Int) {
        self.size = size
        pixels = [SIMD4<Float>](repeating: .zero, count: size * size)
    }

    /// Paints what `distance` is negative for, as `Canvas.paint` does, over what is there, within a box alone.
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

    /// Paints one part of a mark beside the others.
    ///
    /// Where two parts meet in a pixel, each covers its share of it: what is below shines through only as far as both
    /// leave it (Porter and Duff's *over* for disjoint areas). A part that is left blank takes away what is below.
    mutating func paint(_ element: Element, _ ink: Inks.Ink, _ inking: Inking, through view: View) {
        let color = SIMD4(ink.color ?? .zero, ink.color == nil ? 0 : 1)
        let margin = inking.wobble * view.scale + 2
        let box = PixelBox(around: element.corners, through: view, margin: margin, size: size)
        if inking.isPlain, let picture = element.figure.picture {
            let own: Bool = if case .own = ink { true } else { false }
            // Four samples a pixel.
            let spacing = 0.5 / (view.scale * element.enlargement)
            picture.withSampler(spacing: spacing) { sampler in
                update(in: box) { below, pixel in
                    var sum = SIMD4<Float>.zero
                    for offset in [Point(-0.25, -0.25), Point(0.25, -0.25), Point(-0.25, 0.25), Point(0.25, 0.25)] {
                        let point = view.artwork(at: pixel + offset).point
                        sum += sampler.value(at: (point - element.offset) / element.scale)
                    }
                    sum *= 0.25 / 255
                    return beside(below, own ? sum : color * sum.w, coverage: sum.w)
                }
            }
        } else {
            update(in: box) { below, pixel in
                let (point, pixelSide) = view.artwork(at: pixel)
                let edge = inking.distance(at: point, edge: element.distance(to: point))
                let coverage = (0.5 - edge / pixelSide).clampedToUnit
                return beside(below, color * coverage, coverage: coverage)
            }
        }
    }

    /// Lays another layer over this one.
    mutating func lay(_ other: PrintLayer, in box: PixelBox, opacity: Float) {
        other.pixels.withUnsafeBufferPointer { other in
            updatePlaces(in: box) { below, place in
                let above = other[place] * opacity
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

    @inline(__always) private mutating func updatePlaces(
        in box: PixelBox, _ change: (SIMD4<Float>, Int) -> SIMD4<Float>
    ) {
        let size = size
        pixels.withUnsafeMutableBufferPointer { pixels in
            for row in box.rows {
                for place in (row * size + box.columns.lowerBound)..<(row * size + box.columns.upperBound) {
                    pixels[place] = change(pixels[place], place)
                }
            }
        }
    }
}

@inline(__always) private func beside(
    _ below: SIMD4<Float>, _ above: SIMD4<Float>, coverage: Float
) -> SIMD4<Float> {
    coverage + below.w > 1 ? above + below * ((1 - coverage) / below.w) : below + above
}

/// A part of the frame, in whole pixels.
struct PixelBox {
    let columns: Range<Int>
    let rows: Range<Int>

    static func all(_ size: Int) -> PixelBox { PixelBox(columns: 0..<size, rows: 0..<size) }

    private init(columns: Range<Int>, rows: Range<Int>) {
        self.columns = columns
        self.rows = rows
    }

    /// The box around points of the artwork as they appear, cut off at the frame; empty if they are outside of it.
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
