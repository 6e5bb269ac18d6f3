internal import Foundation
internal import ImprintCore

/// The random transform of one image: geometry and colour in one pass, then blur, noise and JPEG compression if drawn.
struct AugmentationTransform {
    private var map = ProjectiveMap()
    private var colors = ColorMap()
    private var blurStandardDeviation: Float = 0
    private var noise: (standardDeviation: Float, key: UInt64)?
    private var quality: Int?

    /// Creates a random transform for `image`.
    ///
    /// It draws all random values even if a kind is disabled, so that enabling one kind does not change the others. Draw new values
    /// last, so that existing seeds keep their results.
    init(_ kinds: Set<Augmentation.Kind>, for image: RasterImage, using stream: inout RandomStream) {
        let flips = stream.chance(0.5)
        let flipsVertically = stream.chance(0.5)
        let angle = stream.uniform(in: -15...15) * .pi / 180
        let zoom = stream.uniform(in: 1...1.25)
        let shift = (x: stream.uniform(in: -0.08...0.08), y: stream.uniform(in: -0.08...0.08))
        let stops = stream.uniform(in: -0.4...0.4)
        let blurs = stream.chance(1 / 3)
        let blur = stream.uniform(in: 0.003...0.015) * Float(min(image.width, image.height))
        let tilt = (x: stream.uniform(in: -0.2...0.2), y: stream.uniform(in: -0.2...0.2))
        let hue = stream.uniform(in: -18...18) * .pi / 180
        let saturation = stream.uniform(in: 0.6...1.4)
        let contrast = exp2f(stream.uniform(in: -0.4...0.4))
        let isNoisy = stream.chance(1 / 3)
        let noise = (standardDeviation: stream.uniform(in: 2...12), key: stream.next())
        let isCompressed = stream.chance(0.5)
        let quality = 25 + stream.index(below: 66)

        if kinds.contains(.perspective) { map = ProjectiveMap(tilt: tilt, in: image) }
        if kinds.contains(.crop) { map = map.zoomed(by: zoom, movedBy: shift, in: image) }
        if kinds.contains(.rotate) { map = map.rotated(by: angle) }
        if kinds.contains(.flip) && flips { map = map.flipped(horizontally: true) }
        if kinds.contains(.flipVertical) && flipsVertically { map = map.flipped(horizontally: false) }
        if kinds.contains(.exposure) { colors = colors.multiplied(by: exp2f(stops)) }
        if kinds.contains(.color) {
            colors = colors.hueRotated(by: hue).saturated(by: saturation).contrasted(by: contrast)
        }
        if kinds.contains(.blur) && blurs { blurStandardDeviation = blur }
        if kinds.contains(.noise) && isNoisy { self.noise = noise }
        if kinds.contains(.jpeg) && isCompressed { self.quality = quality }
    }

    /// Applies the steps in the order in which they occur in a camera.
    ///
    /// 1. geometry: perspective, crop, rotation, flips (`map`), in the same pass as colour: exposure, hue, saturation, contrast (`colors`)
    /// 2. blur, as by the lens
    /// 3. noise, as by the sensor
    /// 4. JPEG compression, as by the camera's software
    ///
    /// To add a step, draw its random values last in the initializer. A step that moves pixels belongs in `map`, and one that
    /// changes colours linearly belongs in `colors`. Add any other step as a separate line, in the order of a camera.
    func callAsFunction(_ image: RasterImage) throws(ImageError) -> RasterImage {
        var result = map.isIdentity && colors.isIdentity ? image : image.warped(by: map, colors: colors)
        result = result.blurred(standardDeviation: blurStandardDeviation)
        if let noise { result = result.noisy(standardDeviation: noise.standardDeviation, key: noise.key) }
        if let quality { result = try result.compressed(quality: quality) }
        return result
    }
}
