internal import CImprintKernels
package import Foundation
internal import ImprintCore

/// The square window of a photo that a patch shows.
package struct PatchWindow: Codable, Hashable, Sendable {
    /// The centre, in pixels of the photo; (0, 0) is the centre of the first pixel.
    package var x: Float
    package var y: Float
    /// The side, in pixels of the photo; more than 0.
    package var side: Float
    /// The rotation, in radians.
    package var angle: Float
    /// Whether the patch is mirrored left to right.
    package var isMirrored: Bool

    /// Creates a window.
    package init(x: Float, y: Float, side: Float, angle: Float = 0, isMirrored: Bool = false) {
        (self.x, self.y, self.side, self.angle, self.isMirrored) = (x, y, side, angle, isMirrored)
    }

    /// Maps a point of the photo to the patch, in pixels of the patch from its centre.
    /// - Parameter patch: The side of the patch, in pixels.
    package func position(ofX pointX: Float, y pointY: Float, patch: Float) -> (x: Float, y: Float) {
        let scale = patch / side
        let (dx, dy) = ((pointX - x) * scale, (pointY - y) * scale)
        let (cosine, sine) = (cosf(angle), sinf(angle))
        let across = cosine * dx + sine * dy
        return (isMirrored ? -across : across, -sine * dx + cosine * dy)
    }
}

/// An image from which patches of any scale are sampled without aliasing.
///
/// The image is in memory, or is a photo that is read again for each patch.
package struct PatchSource: Sendable {
    private enum Origin {
        case memory(RasterImage)
        case photo(TrainingPhoto)
    }

    package let width: Int
    package let height: Int
    private let origin: Origin

    /// Creates a source from an image in memory.
    package init(_ image: RasterImage) {
        (width, height, origin) = (image.width, image.height, .memory(image))
    }

    /// Creates a source from a photo that `PatchSource.decode(_:)` decodes again for each patch.
    package init(_ photo: TrainingPhoto, width: Int, height: Int) {
        (self.width, self.height, origin) = (width, height, .photo(photo))
    }

    /// The location of the photo; nil for an image in memory.
    package var photo: URL? {
        if case .photo(let photo) = origin { photo.url } else { nil }
    }

    /// Returns the whole image.
    /// - Throws: `ImageError` if the photo is unreadable or its size has changed.
    package func image() throws(ImageError) -> RasterImage {
        switch origin {
        case .memory(let image): return image
        case .photo(let photo):
            let image = Self.shrunk(try Self.decode(photo))
            guard (image.width, image.height) == (width, height) else {
                let (before, now) = ("\(width)x\(height)", "\(image.width)x\(image.height)")
                throw .unreadable(
                    file: photo.url, reason: "its size has changed from \(before) to \(now) pixels")
            }
            return image
        }
    }

    /// Reads a window into a patch of 3 channels.
    ///
    /// If the window has more than 1.5 pixels per pixel of the patch, the image is halved first, as often as necessary.
    /// - Throws: The errors of `image()`.
    package func read(
        _ window: PatchWindow, side: Int, into patch: UnsafeMutableBufferPointer<UInt8>
    ) throws(ImageError) {
        var image = try image()
        var step = window.side / Float(side)
        var shrink: Float = 1
        while step > 1.5 && min(image.width, image.height) >= 48 {
            // Not cached: halving takes less time than sampling the patch, and a cache would take a third more memory.
            image = image.halved()
            step /= 2
            shrink /= 2
        }
        let (cosine, sine) = (cosf(window.angle) * step, sinf(window.angle) * step)
        let middle = Float(side - 1) / 2
        let mirror: Float = window.isMirrored ? -1 : 1
        let (centerX, centerY) = ((window.x + 0.5) * shrink - 0.5, (window.y + 0.5) * shrink - 0.5)
        let (a, b, c, d) = (mirror * cosine, -sine, mirror * sine, cosine)
        let map = [a, b, centerX - (a + b) * middle, c, d, centerY - (c + d) * middle]
        image.samples.withUnsafeBufferPointer {
            imprint_sample_patch(
                $0.baseAddress, Int32(image.width), Int32(image.height), map, patch.baseAddress, Int32(side))
        }
    }
}

extension RasterImage {
    /// Returns the image at half the size; each pixel is the mean of four.
    fileprivate func halved() -> RasterImage {
        let (columns, rows) = (width / 2, height / 2)
        let half = [UInt8](unsafeUninitializedCapacity: rows * columns * 3) { half, count in
            samples.withUnsafeBufferPointer {
                imprint_halve($0.baseAddress, Int32(width), Int32(height), half.baseAddress)
            }
            count = rows * columns * 3
        }
        return RasterImage(width: columns, height: rows, channels: 3, samples: half)
    }
}

extension PatchSource {
    /// The side of a square with the maximum number of pixels that the detector analyses.
    package static let maximumSide = 400

    /// Reads a photo, upright and in sRGB, at the size that the detector analyses.
    package static func read(_ url: URL) throws(ImageError) -> RasterImage {
        shrunk(try ImageFile.decode(url, coveringShortSide: shortSideToDecode))
    }

    /// Decodes a photo at its full size, or at a smaller size that is sufficient for `shrunk(_:)`.
    package static func decode(_ photo: TrainingPhoto) throws(ImageError) -> RasterImage {
        try photo.stored(coveringShortSide: shortSideToDecode).upright.flattenedOnWhite()
    }

    /// The minimum short side of a photo to decode; of all images with that many pixels, a square has the longest.
    package static var shortSideToDecode: Int { ImageFile.shortSideToDecode(covering: maximumSide) }

    /// Converts an image to colour without transparency, at the size that the detector analyses in training and prediction.
    package static func shrunk(_ image: RasterImage) -> RasterImage {
        let image = image.flattenedOnWhite().converted(toChannels: 3)
        let factor = Double(maximumSide) / Double(image.width * image.height).squareRoot()
        guard factor < 1 else { return image }
        return CropAndScale.scaleFill.apply(
            image, width: max(Int((Double(image.width) * factor).rounded()), 1),
            height: max(Int((Double(image.height) * factor).rounded()), 1))
    }
}
