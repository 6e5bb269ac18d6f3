package import Foundation

/// What one small decoding of a photo tells without keeping its pixels.
package struct ImageSketch: Sendable, Hashable {
    /// What it looks like from afar.
    package let fingerprint: Fingerprint
    /// The share of its contrast that lies outside the square in its middle, 0…1; 0 for a square photo.
    ///
    /// Contrast is the squared difference between neighbouring pixels, added over the channels, of the photo at a short side
    /// of about 64 pixels.
    package let contrastOutsideSquare: Float
    /// The share of its area that lies outside that square, 0…1.
    package let areaOutsideSquare: Float
    /// When it was taken by the camera's clock, in seconds from an arbitrary start; nil where the file does not say.
    package let captureTime: Int?

    /// The short side that a photo is decoded to, at least, if it has as much.
    static let shortSide = 64

    /// Decodes a photo, small where that is faster.
    /// - Throws: `ImageError` if it cannot be read, is no image, or is damaged anywhere.
    package init(_ url: URL) throws(ImageError) {
        self.init(
            try ImageFile.decode(url, coveringShortSide: Self.shortSide), captureTime: CaptureTime.read(url))
    }

    /// Looks at an upright picture.
    package init(_ image: RasterImage, captureTime: Int? = nil) {
        let image = image.laidOnWhite().shrunk(toShortSide: Self.shortSide)
        fingerprint = Fingerprint(image)
        (contrastOutsideSquare, areaOutsideSquare) = image.outsideSquare()
        self.captureTime = captureTime
    }

    /// Whether the subject is likely outside the square that `CropAndScale.centerCrop` leaves of a photo.
    ///
    /// It is where at least half of the contrast lies outside the square, and is at least twice as dense there as inside: what
    /// one looks at is sharp and has edges, and a crop that loses most of these has lost it. It is a hint: empty margins have
    /// little contrast, but a frame or a busy background around an even subject has much.
    package var isSubjectLikelyOutsideSquare: Bool {
        let (contrast, area) = (contrastOutsideSquare, areaOutsideSquare)
        return contrast >= 0.5 && contrast * (1 - area) >= 2 * (1 - contrast) * area
    }
}

extension RasterImage {
    /// The picture with the given short side, or as it is where that is no longer.
    package func shrunk(toShortSide side: Int) -> RasterImage {
        let shortSide = min(width, height)
        guard shortSide > side else { return self }
        func scaled(_ length: Int) -> Int { max((length * side + shortSide / 2) / shortSide, 1) }
        return CropAndScale.scaleFill.apply(self, width: scaled(width), height: scaled(height))
    }

    /// The shares of contrast and area outside the square in the middle.
    fileprivate func outsideSquare() -> (contrast: Float, area: Float) {
        let side = min(width, height)
        let (left, top) = ((width - side) / 2, (height - side) / 2)
        var (inside, outside) = (0, 0)
        samples.withUnsafeBufferPointer { samples in
            for y in 1..<height {
                for x in 1..<width {
                    let pixel = (y * width + x) * channels
                    var contrast = 0
                    for sample in pixel..<(pixel + channels) {
                        let across = Int(samples[sample]) - Int(samples[sample - channels])
                        let down = Int(samples[sample]) - Int(samples[sample - width * channels])
                        contrast += across * across + down * down
                    }
                    if (left..<(left + side)).contains(x) && (top..<(top + side)).contains(y) {
                        inside += contrast
                    } else {
                        outside += contrast
                    }
                }
            }
        }
        let area = 1 - Float(side) / Float(max(width, height))
        return (inside + outside == 0 ? area : Float(outside) / Float(inside + outside), area)
    }
}
