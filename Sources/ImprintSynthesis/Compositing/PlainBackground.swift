internal import ImprintImages

/// The plain background of an artwork image: one colour, or a slight gradient from one side to another.
///
/// The colour of channel *c* at column *x* of row *y* is `color[c] + slopeX[c] · (x − center.x) + slopeY[c] · (y − center.y)`, fitted to the
/// border of the image. Part of the border may show the logo.
struct PlainBackground {
    /// The colour in the middle of the image, 0…255.
    private let color: SIMD3<Float>
    /// The change of the colour from one column to the next.
    private let slopeX: SIMD3<Float>
    /// The change of the colour from one row to the next.
    private let slopeY: SIMD3<Float>
    private let center: SIMD2<Float>
    /// The fraction of the border that shows the logo, 0…0.25.
    let coveredBorder: Float

    /// The largest difference between a pixel of the background and the fitted colour, 14…28.
    let tolerance: Float

    /// JPEG artefacts change a plain colour by up to this much.
    private static let smallestTolerance: Float = 14
    /// The largest noise of a background.
    private static let largestTolerance: Float = 28
    /// The largest fraction of the border that the logo may cover.
    private static let coveredLimit: Float = 0.25
    /// The largest change of the colour from corner to corner; a stronger gradient is part of a scene rather than a background.
    private static let gradientLimit: Float = 72

    /// Fits the background to the border of an RGB image; nil if the border has several colours.
    init?(_ image: RasterImage) {
        let (width, height) = (image.width, image.height)
        let center = SIMD2(Float(width - 1), Float(height - 1)) / 2
        self.center = center
        let border = Self.border(of: image)
        let mean = border.reduce(SIMD3<Float>.zero) { $0 + $1.color } / Float(border.count)
        if border.allSatisfy({ ($0.color - mean).largestMagnitude <= Self.smallestTolerance }) {
            (color, slopeX, slopeY, coveredBorder, tolerance) = (mean, .zero, .zero, 0, Self.smallestTolerance)
            return
        }
        // Iteratively trimmed least squares: pixels of the logo are left out. The limit exceeds the noise, and half of a strong gradient.
        var plane = Plane(color: Self.median(border.map(\.color)), slopeX: .zero, slopeY: .zero)
        var residuals: [Float] = []
        for limit: Float in [36, 28, 28, 20, 20, 28] {
            let kept = border.filter { ($0.color - plane.color(at: $0.position - center)).largestMagnitude <= limit }
            guard let fitted = Plane(fitting: kept.map { ($0.position - center, $0.color) }) else { return nil }
            plane = fitted
            residuals = border.map { ($0.color - plane.color(at: $0.position - center)).largestMagnitude }.sorted()
        }
        let noise = residuals.prefix { $0 <= Self.largestTolerance }
        guard !noise.isEmpty else { return nil }
        let tolerance = max(noise[noise.count * 49 / 50], Self.smallestTolerance)
        self.tolerance = tolerance
        let covered = residuals.count { $0 > 1.25 * tolerance }
        let change = plane.slopeX.largestMagnitude * Float(width) + plane.slopeY.largestMagnitude * Float(height)
        coveredBorder = Float(covered) / Float(border.count)
        guard coveredBorder <= Self.coveredLimit, change <= Self.gradientLimit else { return nil }
        (color, slopeX, slopeY) = (plane.color, plane.slopeX, plane.slopeY)
    }

    /// Returns the colour at a position.
    @inline(__always) func color(x: Int, y: Int) -> SIMD3<Float> {
        color + slopeX * (Float(x) - center.x) + slopeY * (Float(y) - center.y)
    }

    /// The pixels of the first and last row and column; each corner is included twice.
    private static func border(of image: RasterImage) -> [(position: SIMD2<Float>, color: SIMD3<Float>)] {
        var positions: [(x: Int, y: Int)] = []
        for x in 0..<image.width { positions += [(x, 0), (x, image.height - 1)] }
        for y in 0..<image.height { positions += [(0, y), (image.width - 1, y)] }
        return positions.map { (SIMD2(Float($0.x), Float($0.y)), image.rgb(x: $0.x, y: $0.y)) }
    }

    /// Returns the median of each channel.
    private static func median(_ colors: [SIMD3<Float>]) -> SIMD3<Float> {
        var median = SIMD3<Float>.zero
        for channel in 0..<3 { median[channel] = colors.map { $0[channel] }.sorted()[colors.count / 2] }
        return median
    }
}

/// A colour that depends linearly on the position.
private struct Plane {
    var color: SIMD3<Float>
    var slopeX: SIMD3<Float>
    var slopeY: SIMD3<Float>

    init(color: SIMD3<Float>, slopeX: SIMD3<Float>, slopeY: SIMD3<Float>) {
        (self.color, self.slopeX, self.slopeY) = (color, slopeX, slopeY)
    }

    /// Fits a plane by least squares; nil if the positions are on one line or too few.
    init?(fitting samples: [(position: SIMD2<Float>, color: SIMD3<Float>)]) {
        guard samples.count >= 8 else { return nil }
        let count = Float(samples.count)
        let middle = samples.reduce(SIMD2<Float>.zero) { $0 + $1.position } / count
        let mean = samples.reduce(SIMD3<Float>.zero) { $0 + $1.color } / count
        var (xx, xy, yy) = (Float.zero, Float.zero, Float.zero)
        var (xColor, yColor) = (SIMD3<Float>.zero, SIMD3<Float>.zero)
        for (position, color) in samples {
            let (offset, difference) = (position - middle, color - mean)
            xx += offset.x * offset.x
            xy += offset.x * offset.y
            yy += offset.y * offset.y
            xColor += difference * offset.x
            yColor += difference * offset.y
        }
        let determinant = xx * yy - xy * xy
        guard determinant > 1e-3 * max(xx * yy, 1) else { return nil }
        slopeX = (xColor * yy - yColor * xy) / determinant
        slopeY = (yColor * xx - xColor * xy) / determinant
        color = mean - slopeX * middle.x - slopeY * middle.y
    }

    func color(at position: SIMD2<Float>) -> SIMD3<Float> { color + slopeX * position.x + slopeY * position.y }
}

extension SIMD3<Float> {
    /// The largest absolute value of a channel.
    @inline(__always) var largestMagnitude: Float { Swift.max(self.max(), -self.min()) }
}

extension RasterImage {
    /// Returns the colour of a pixel of an RGB image, 0…255.
    @inline(__always) func rgb(x: Int, y: Int) -> SIMD3<Float> {
        let index = 3 * (y * width + x)
        return SIMD3(Float(samples[index]), Float(samples[index + 1]), Float(samples[index + 2]))
    }

    /// Makes a plain background of an RGB image transparent everywhere, also inside the logo.
    ///
    /// Every pixel is treated as a mixture of the background and another colour, so that edges stay soft.
    func cutOut(from background: PlainBackground) -> CutOut {
        let tolerance = background.tolerance
        var distances: [Float] = []
        distances.reserveCapacity(width * height)
        for y in 0..<height {
            for x in 0..<width { distances.append((rgb(x: x, y: y) - background.color(x: x, y: y)).largestMagnitude) }
        }
        // The largest difference, without a few pixels of dust.
        let visible = distances.filter { $0 > tolerance }.sorted()
        let contrast = visible.isEmpty ? 0 : visible[(visible.count - 1) * 999 / 1000]
        // The minimum distance at which a pixel is opaque; smaller for a pale logo.
        let opaqueDistance = max(min(contrast * 0.6, 80), tolerance + 1)
        var result = RasterImage(width: width, height: height, channels: 4)
        for y in 0..<height {
            for x in 0..<width {
                let index = y * width + x
                let alpha = ((distances[index] - tolerance) / (opaqueDistance - tolerance)).clampedToUnit
                guard alpha > 0 else { continue }
                let color = (rgb(x: x, y: y) - background.color(x: x, y: y) * (1 - alpha)) / alpha
                for channel in 0..<3 {
                    result.samples[4 * index + channel] = UInt8(min(max(color[channel], 0), 255) + 0.5)
                }
                result.samples[4 * index + 3] = UInt8(alpha * 255 + 0.5)
            }
        }
        return CutOut(image: result, contrast: contrast)
    }
}

/// A logo without its background.
struct CutOut {
    /// The logo, with alpha, not premultiplied.
    let image: RasterImage
    /// The difference to the background that only 0.1 % of the visible pixels exceed, 0…255.
    let contrast: Float

    /// Whether a rectangle fills the image up to a thin margin.
    ///
    /// The margin may be a frame around the background rather than the background.
    var mayHaveFrame: Bool {
        func isVisible(_ x: Int, _ y: Int) -> Bool { image.samples[4 * (y * image.width + x) + 3] > 8 }
        let thickest = min(8, (min(image.width, image.height) - 1) / 4)
        return (1...max(thickest, 1)).contains { inset in
            let (right, bottom) = (image.width - 1 - inset, image.height - 1 - inset)
            guard right > inset, bottom > inset else { return false }
            return (inset...right).allSatisfy { isVisible($0, inset) && isVisible($0, bottom) }
                && (inset...bottom).allSatisfy { isVisible(inset, $0) && isVisible(right, $0) }
        }
    }
}
