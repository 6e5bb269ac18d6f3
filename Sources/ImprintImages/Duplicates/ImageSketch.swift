package import Foundation

/// The features of a photo, computed from one decoding at a small size, without its pixels.
package struct ImageSketch: Sendable, Hashable {
    /// The perceptual image hash.
    package let imageHash: ImageHash
    /// The fraction of the contrast outside the central square, 0…1; 0 for a square photo.
    ///
    /// Contrast is the squared difference between neighbouring pixels, summed over the channels, of the photo at a short side
    /// of about 64 pixels.
    package let contrastOutsideSquare: Float
    /// The fraction of the area outside the central square, 0…1.
    package let areaOutsideSquare: Float
    /// The capture time by the camera's clock, in seconds from an arbitrary start; nil if the file does not have it.
    package let captureTime: Int?

    /// The minimum short side to decode, if the photo has it.
    static let shortSide = 64

    /// Creates the sketch of a photo file, which is decoded at a small size if that is faster.
    /// - Throws: `ImageError` if the file cannot be read, is not an image, or is damaged.
    package init(_ url: URL) throws(ImageError) {
        self.init(
            try ImageFile.decode(url, coveringShortSide: Self.shortSide), captureTime: CaptureTime.read(url))
    }

    /// Creates the sketch of a photo in a file or in memory; a photo in memory has no capture time.
    /// - Throws: `ImageError` if it cannot be read, is not an image, or is damaged.
    package init(_ photo: TrainingPhoto) throws(ImageError) {
        if photo.content == nil {
            try self.init(photo.url)
        } else {
            self.init(try photo.stored(coveringShortSide: Self.shortSide).upright)
        }
    }

    /// Creates the sketch of an upright image.
    package init(_ image: RasterImage, captureTime: Int? = nil) {
        let image = image.flattenedOnWhite().shrunk(toShortSide: Self.shortSide)
        imageHash = ImageHash(image)
        (contrastOutsideSquare, areaOutsideSquare) = image.outsideSquare()
        self.captureTime = captureTime
    }

    /// Whether the subject is likely outside the square that `CropAndScale.centerCrop` keeps.
    ///
    /// This is the case if at least half of the contrast is outside the square and is at least twice as dense there as inside. A
    /// subject is usually sharp and has edges, so a crop that removes most edges removes the subject. This is only a hint: a frame
    /// or a busy background around a uniform subject also has much contrast.
    package var isSubjectLikelyOutsideSquare: Bool {
        let (contrast, area) = (contrastOutsideSquare, areaOutsideSquare)
        return contrast >= 0.5 && contrast * (1 - area) >= 2 * (1 - contrast) * area
    }
}

extension RasterImage {
    /// Returns the image scaled down to the given short side; unchanged if its short side is not longer.
    package func shrunk(toShortSide side: Int) -> RasterImage { shrunk(from: min(width, height), to: side) }

    /// Returns the image scaled down to the given long side; unchanged if its long side is not longer.
    package func shrunk(toLongSide side: Int) -> RasterImage { shrunk(from: max(width, height), to: side) }

    /// Returns the image scaled down so that a side of `length` pixels gets `side` pixels; unchanged if it is not longer.
    private func shrunk(from length: Int, to side: Int) -> RasterImage {
        guard length > side else { return self }
        func scaled(_ other: Int) -> Int { max((other * side + length / 2) / length, 1) }
        return CropAndScale.scaleFill.apply(self, width: scaled(width), height: scaled(height))
    }

    /// Returns the fractions of contrast and area outside the central square.
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
