internal import ImprintCore
internal import ImprintImages

/// A square image in floating point; 1 is full brightness.
struct Canvas {
    /// The number of rows and of columns.
    let size: Int
    private(set) var pixels: [Color]

    init(size: Int) {
        self.size = size
        pixels = [Color](repeating: .zero, count: size * size)
    }

    /// Creates a canvas from a square image of 3 channels.
    init(_ image: RasterImage) {
        precondition(image.width == image.height && image.channels == 3, "a canvas needs a square image of 3 channels")
        size = image.width
        pixels = [Color](unsafeUninitializedCapacity: image.width * image.height) { pixels, count in
            image.samples.withUnsafeBufferPointer { samples in
                for index in 0..<(image.width * image.height) {
                    let red = Float(samples[3 * index])
                    pixels[index] = Color(red, Float(samples[3 * index + 1]), Float(samples[3 * index + 2])) * (1 / 255)
                }
            }
            count = image.width * image.height
        }
    }

    /// Replaces every colour by `change(colour, position)`; the position is −1…1 from left to right and from top to bottom.
    @inline(__always) mutating func update(_ change: (Color, Point) -> Color) {
        let step = 2 / Float(size)
        pixels.withUnsafeMutableBufferPointer { pixels in
            for row in 0..<size {
                let y = (Float(row) + 0.5) * step - 1
                for column in 0..<size {
                    let position = Point((Float(column) + 0.5) * step - 1, y)
                    pixels[row * size + column] = change(pixels[row * size + column], position)
                }
            }
        }
    }

    /// Replaces every colour by `change(colour, value, position)`, with one of `values` for every pixel.
    @inline(__always) mutating func update<Value>(_ values: [Value], _ change: (Color, Value, Point) -> Color) {
        values.withUnsafeBufferPointer { values in
            var index = 0
            update { color, position in
                defer { index += 1 }
                return change(color, values[index], position)
            }
        }
    }

    /// Returns the mean colour and the standard deviation of luminance in the bounding square of a disc, inside the canvas.
    func average(around center: Point, radius: Float) -> (color: Color, standardDeviation: Float) {
        func range(_ middle: Float) -> StrideThrough<Int> {
            let first = Int(min(max(middle - radius, 0), Float(size - 1)))
            let last = Int(min(max(middle + radius, 0), Float(size - 1)))
            // A sample of a few hundred pixels is sufficient.
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

    /// The canvas mirrored left to right.
    var mirrored: Canvas {
        var mirrored = self
        for row in 0..<size { mirrored.pixels[(row * size)..<((row + 1) * size)].reverse() }
        return mirrored
    }

    /// Paints the area of the artwork in which `distance` is negative, as seen through `view`.
    ///
    /// A pixel's coverage is ½ − distance / pixel side, clamped to 0…1: the fraction of the pixel on the inner side of a straight
    /// edge. With `softness` (in units of the artwork), the edge fades over that width instead, like a shadow.
    @inline(__always) mutating func paint(
        _ color: Color, opacity: Float = 1, softness: Float = 0, through view: View, distance: (Point) -> Float
    ) {
        let half = Float(size) / 2
        update { ground, position in
            let (point, pixelSide) = view.artwork(at: (position + 1) * half)
            let coverage = (0.5 - distance(point) / max(pixelSide, softness)).clampedToUnit
            return ground + (color - ground) * (coverage * opacity)
        }
    }

    /// Blurs with a standard deviation of `sigma` pixels, by passes of the kernel (*k*, 1 − 2*k*, *k*) in both directions.
    ///
    /// A pass has the variance 2*k*, and variances add up, so that several passes with *k* ≤ ¼ give any standard deviation.
    /// Border pixels are repeated.
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

    /// The image with 8 bits per sample.
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

    /// Returns the image with 8 bits per sample, after adding noise of the given standard deviation to every sample.
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
    /// Returns an approximately normal value with mean 0 and standard deviation 1.
    ///
    /// It is the scaled sum of the four 16-bit parts of one random word. This takes a twelfth of the work of `normal()`, and is
    /// accurate enough for sensor noise; its tails end at ±3.5.
    @inline(__always) mutating func roughlyNormal() -> Float {
        let word = next()
        let sum = (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48)
        return (Float(sum) - 131_070) * 2.642_93e-5
    }
}
