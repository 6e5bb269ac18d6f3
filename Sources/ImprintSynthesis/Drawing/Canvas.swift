internal import ImprintCore
internal import ImprintImages

/// A square picture being drawn: colours in floating point, 1 is full.
struct Canvas {
    /// The number of rows and of columns.
    let size: Int
    private(set) var pixels: [Color]

    init(size: Int) {
        self.size = size
        pixels = [Color](repeating: .zero, count: size * size)
    }

    /// Shows a square picture of 3 channels.
    init(_ image: RasterImage) {
        precondition(image.width == image.height && image.channels == 3, "a canvas is square and in colour")
        size = image.width
        pixels = [Color](unsafeUninitializedCapacity: image.width * image.height) { pixels, count in
            image.samples.withUnsafeBufferPointer { samples in
                for place in 0..<(image.width * image.height) {
                    let red = Float(samples[3 * place])
                    pixels[place] = Color(red, Float(samples[3 * place + 1]), Float(samples[3 * place + 2])) * (1 / 255)
                }
            }
            count = image.width * image.height
        }
    }

    /// Replaces every colour by `change(colour, where)`; *where* runs from −1 to 1 across the frame and down it.
    @inline(__always) mutating func update(_ change: (Color, Point) -> Color) {
        let step = 2 / Float(size)
        pixels.withUnsafeMutableBufferPointer { pixels in
            for row in 0..<size {
                let y = (Float(row) + 0.5) * step - 1
                for column in 0..<size {
                    let place = Point((Float(column) + 0.5) * step - 1, y)
                    pixels[row * size + column] = change(pixels[row * size + column], place)
                }
            }
        }
    }

    /// The same with one more value for every pixel.
    @inline(__always) mutating func update<Value>(_ values: [Value], _ change: (Color, Value, Point) -> Color) {
        values.withUnsafeBufferPointer { values in
            var index = 0
            update { color, place in
                defer { index += 1 }
                return change(color, values[index], place)
            }
        }
    }

    /// The mean colour of the square around a disc, as far as it lies on the canvas, and the deviation of its luminance.
    func average(around center: Point, radius: Float) -> (color: Color, deviation: Float) {
        func range(_ middle: Float) -> StrideThrough<Int> {
            let first = Int(min(max(middle - radius, 0), Float(size - 1)))
            let last = Int(min(max(middle + radius, 0), Float(size - 1)))
            // A few hundred pixels tell the mean.
            return stride(from: first, through: last, by: max((last - first) / 16, 1))
        }
        var sum = Color.zero
        var squares: Float = 0
        var count: Float = 0
        for row in range(center.y) {
            for column in range(center.x) {
                let color = pixels[row * size + column]
                sum += color
                squares += color.luminance * color.luminance
                count += 1
            }
        }
        let mean = sum / count
        return (mean, max(squares / count - mean.luminance * mean.luminance, 0).squareRoot())
    }

    /// The same, mirrored left to right.
    var mirrored: Canvas {
        var mirrored = self
        for row in 0..<size { mirrored.pixels[(row * size)..<((row + 1) * size)].reverse() }
        return mirrored
    }

    /// Paints what `distance` is negative for, in the artwork that `view` shows.
    ///
    /// A pixel's coverage is ½ − distance / pixel side, within 0…1: the share of it that lies behind a straight edge.
    /// With `softness` (in units of the artwork) the edge fades over that width instead, as a shadow does.
    @inline(__always) mutating func paint(
        _ color: Color, opacity: Float = 1, softness: Float = 0, through view: View, distance: (Point) -> Float
    ) {
        let half = Float(size) / 2
        update { ground, place in
            let (point, pixelSide) = view.artwork(at: (place + 1) * half)
            let coverage = (0.5 - distance(point) / max(pixelSide, softness)).clampedToUnit
            return ground + (color - ground) * (coverage * opacity)
        }
    }

    /// Blurs by passes of the kernel (*k*, 1 − 2*k*, *k*), in both directions; edges repeat.
    ///
    /// A pass has the variance 2*k*, and variances add up, so that passes with *k* ≤ ¼ make any deviation: `sigma`, in
    /// pixels.
    mutating func blur(sigma: Float) {
        let variance = sigma * sigma
        let passes = -((-2 * variance).floor)
        guard passes > 0 else { return }
        let k = variance / Float(2 * passes)
        for _ in 0..<passes {
            for row in 0..<size { blurLine(from: row * size, stride: 1, k) }
            for column in 0..<size { blurLine(from: column, stride: size, k) }
        }
    }

    @inline(__always) private mutating func blurLine(from first: Int, stride: Int, _ k: Float) {
        pixels.withUnsafeMutableBufferPointer { pixels in
            var before = pixels[first]
            var current = before
            for step in 0..<size {
                let position = first + step * stride
                let after = step + 1 < size ? pixels[position + stride] : current
                pixels[position] = current * (1 - 2 * k) + (before + after) * k
                before = current
                current = after
            }
        }
    }

    /// The picture in 8 bits.
    var image: RasterImage {
        let samples = [UInt8](unsafeUninitializedCapacity: size * size * 3) { samples, count in
            for (index, pixel) in pixels.enumerated() {
                let rounded = (pixel * 255 + 0.5).clamped(lowerBound: .zero, upperBound: Color(repeating: 255))
                for channel in 0..<3 { samples[index * 3 + channel] = UInt8(rounded[channel]) }
            }
            count = size * size * 3
        }
        return RasterImage(width: size, height: size, channels: 3, samples: samples)
    }

    /// The picture in 8 bits, with noise of the given deviation added to every sample.
    func image(noise: Float, _ random: inout RandomStream) -> RasterImage {
        let samples = [UInt8](unsafeUninitializedCapacity: size * size * 3) { samples, count in
            for (index, pixel) in pixels.enumerated() {
                for channel in 0..<3 {
                    let value = pixel[channel] + noise * random.roughlyNormal()
                    samples[index * 3 + channel] = UInt8(value.clampedToUnit * 255 + 0.5)
                }
            }
            count = size * size * 3
        }
        return RasterImage(width: size, height: size, channels: 3, samples: samples)
    }
}

extension RandomStream {
    /// A number of mean 0 and deviation 1: the sum of the four 16-bit parts of one random word, scaled.
    ///
    /// A twelfth of the work of `normal()`, and close enough for the noise of a sensor; its tails end at ±3.5.
    @inline(__always) mutating func roughlyNormal() -> Float {
        let word = next()
        let sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48)
        return (Float(sum) - 131_070) * 2.642_93e-5
    }
}
