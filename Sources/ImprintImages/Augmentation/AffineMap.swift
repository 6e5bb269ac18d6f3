internal import Foundation

/// Where in the source each pixel of a warped image comes from: source = A · (pixel − centre) + shift + centre.
struct AffineMap: Equatable {
    var a: Float = 1
    var b: Float = 0
    var c: Float = 0
    var d: Float = 1
    var shiftX: Float = 0
    var shiftY: Float = 0

    var isIdentity: Bool { self == AffineMap() }

    /// Applies a further linear step to the result: its inverse is applied first on the way back to the source.
    private func followed(_ e: Float, _ f: Float, _ g: Float, _ h: Float) -> AffineMap {
        AffineMap(
            a: a * e + b * g, b: a * f + b * h, c: c * e + d * g, d: c * f + d * h, shiftX: shiftX, shiftY: shiftY)
    }

    /// Turns the picture counter-clockwise by `angle` radians.
    func rotated(by angle: Float) -> AffineMap {
        followed(cosf(angle), -sinf(angle), sinf(angle), cosf(angle))
    }

    /// Mirrors the picture left to right, or top to bottom.
    func flipped(horizontally: Bool) -> AffineMap { horizontally ? followed(-1, 0, 0, 1) : followed(1, 0, 0, -1) }

    /// Enlarges the picture and moves it by a share of its sides.
    func zoomed(by factor: Float, movedBy shift: (x: Float, y: Float), in image: Image) -> AffineMap {
        var map = followed(1 / factor, 0, 0, 1 / factor)
        map.shiftX += shift.x * Float(image.width)
        map.shiftY += shift.y * Float(image.height)
        return map
    }
}

extension Image {
    /// The image seen through a map, with samples multiplied by `gain`: one pass, bilinear, borders continued.
    func warped(by map: AffineMap, gain: Float = 1) -> Image {
        var result = self
        let (centreX, centreY) = (Float(width - 1) / 2, Float(height - 1) / 2)
        let (lastX, lastY) = (Float(width - 1), Float(height - 1))
        samples.withUnsafeBufferPointer { source in
            result.samples.withUnsafeMutableBufferPointer { target in
                for y in 0..<height {
                    for x in 0..<width {
                        let (dx, dy) = (Float(x) - centreX, Float(y) - centreY)
                        let sourceX = min(max(map.a * dx + map.b * dy + map.shiftX + centreX, 0), lastX)
                        let sourceY = min(max(map.c * dx + map.d * dy + map.shiftY + centreY, 0), lastY)
                        let (left, top) = (Int(sourceX), Int(sourceY))
                        let (shareX, shareY) = (sourceX - Float(left), sourceY - Float(top))
                        let right = left + 1 < width ? channels : 0
                        let below = top + 1 < height ? width * channels : 0
                        let from = (top * width + left) * channels
                        let to = (y * width + x) * channels
                        for channel in 0..<channels {
                            let place = from + channel
                            let (p, q) = (Float(source[place]), Float(source[place + right]))
                            let (r, s) = (Float(source[place + below]), Float(source[place + below + right]))
                            let upper = p + (q - p) * shareX
                            let lower = r + (s - r) * shareX
                            let value = (upper + (lower - upper) * shareY) * gain
                            target[to + channel] = UInt8(min(value + 0.5, 255))
                        }
                    }
                }
            }
        }
        return result
    }
}
