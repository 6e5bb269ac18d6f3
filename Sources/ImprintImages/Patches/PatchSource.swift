internal import CImprintKernels
package import Foundation
internal import ImprintCore

/// A square part of a photo, as a patch shows it.
package struct PatchWindow: Codable, Hashable, Sendable {
    /// The middle, in pixels of the photo.
    package var x: Float
    package var y: Float
    /// The side, in pixels of the photo.
    package var side: Float
    /// By how much it is turned, in radians.
    package var angle: Float
    /// Whether it is mirrored left to right.
    package var isMirrored: Bool

    /// Makes a window.
    package init(x: Float, y: Float, side: Float, angle: Float = 0, isMirrored: Bool = false) {
        (self.x, self.y, self.side, self.angle, self.isMirrored) = (x, y, side, angle, isMirrored)
    }

    /// Where a point of the photo is in the patch, in pixels of the patch from its middle.
    package func place(ofX pointX: Float, y pointY: Float, patch: Float) -> (x: Float, y: Float) {
        let scale = patch / side
        let (dx, dy) = ((pointX - x) * scale, (pointY - y) * scale)
        let (cosine, sine) = (cosf(angle), sinf(angle))
        let across = cosine * dx + sine * dy
        return (isMirrored ? -across : across, -sine * dx + cosine * dy)
    }
}

/// A picture at its size and halved again and again, so that a part of any size is read without loss and without aliasing.
package struct PatchSource: Sendable {
    private let levels: [Image]
    /// The picture at its size.
    package var image: Image { levels[0] }
    package var width: Int { levels[0].width }
    package var height: Int { levels[0].height }

    package init(_ image: Image) {
        var levels = [image]
        while let last = levels.last, min(last.width, last.height) >= 48 { levels.append(last.halved()) }
        self.levels = levels
    }

    /// Reads a window into a patch of 3 channels.
    package func read(_ window: PatchWindow, side: Int, into patch: UnsafeMutableBufferPointer<UInt8>) {
        var level = 0
        var step = window.side / Float(side)
        while step > 1.5 && level + 1 < levels.count {
            level += 1
            step /= 2
        }
        let shrink = 1 / Float(1 << level)
        let image = levels[level]
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

extension Image {
    /// Half the size, each pixel the mean of four.
    fileprivate func halved() -> Image {
        var half = Image(width: max(width / 2, 1), height: max(height / 2, 1), channels: 3)
        samples.withUnsafeBufferPointer { source in
            half.samples.withUnsafeMutableBufferPointer { target in
                for y in 0..<half.height {
                    for x in 0..<half.width {
                        let first = (2 * y * width + 2 * x) * 3
                        for channel in 0..<3 {
                            let sum =
                                Int(source[first + channel]) + Int(source[first + 3 + channel])
                                + Int(source[first + 3 * width + channel])
                                + Int(source[first + 3 * width + 3 + channel])
                            target[(y * half.width + x) * 3 + channel] = UInt8((sum + 2) / 4)
                        }
                    }
                }
            }
        }
        return half
    }
}

extension PatchSource {
    /// The greatest number of pixels of a photo that is looked at.
    private static let greatestPixelCount = 160_000.0

    /// Reads a photo, upright and in sRGB, at the size at which it is looked at.
    package static func read(_ url: URL) throws(ImageError) -> Image { shrunk(try ImageFile.decode(url)) }

    /// A picture in colour, without transparency, at the size at which it is looked at: the same for training and for predictions.
    package static func shrunk(_ image: Image) -> Image {
        let image = image.laidOnWhite().converted(toChannels: 3)
        let factor = (greatestPixelCount / Double(image.width * image.height)).squareRoot()
        guard factor < 1 else { return image }
        return CropAndScale.scaleFill.apply(
            image, width: max(Int((Double(image.width) * factor).rounded()), 1),
            height: max(Int((Double(image.height) * factor).rounded()), 1))
    }
}
