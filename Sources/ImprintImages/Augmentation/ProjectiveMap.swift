internal import Foundation

/// The map from each pixel of a warped image to its source position.
///
/// Positions are in pixels from the centre of the image: source = (A · position) / (1 + tilt · position) + shift.
struct ProjectiveMap: Equatable {
    var a: Float = 1
    var b: Float = 0
    var c: Float = 0
    var d: Float = 1
    var shiftX: Float = 0
    var shiftY: Float = 0
    var tiltX: Float = 0
    var tiltY: Float = 0

    var isIdentity: Bool { self == ProjectiveMap() }

    /// Appends a linear step, given by its inverse, which comes first on the way from the result to the source.
    private func followed(_ e: Float, _ f: Float, _ g: Float, _ h: Float) -> ProjectiveMap {
        ProjectiveMap(
            a: a * e + b * g, b: a * f + b * h, c: c * e + d * g, d: c * f + d * h, shiftX: shiftX, shiftY: shiftY,
            tiltX: tiltX * e + tiltY * g, tiltY: tiltX * f + tiltY * h)
    }

    /// Rotates the image counter-clockwise by `angle` radians.
    func rotated(by angle: Float) -> ProjectiveMap {
        followed(cosf(angle), -sinf(angle), sinf(angle), cosf(angle))
    }

    /// Mirrors the image left to right, or top to bottom.
    func flipped(horizontally: Bool) -> ProjectiveMap { horizontally ? followed(-1, 0, 0, 1) : followed(1, 0, 0, -1) }

    /// Enlarges the image and moves it by a fraction of its sides.
    func zoomed(by factor: Float, movedBy shift: (x: Float, y: Float), in image: RasterImage) -> ProjectiveMap {
        var map = followed(1 / factor, 0, 0, 1 / factor)
        map.shiftX += shift.x * Float(image.width)
        map.shiftY += shift.y * Float(image.height)
        return map
    }

    /// Adds perspective: shrinks the image by 1 / (1 − tilt) at one end and enlarges it by 1 / (1 + tilt) at the other.
    ///
    /// This must be the first step.
    func tilted(by tilt: (x: Float, y: Float), in image: RasterImage) -> ProjectiveMap {
        var map = self
        map.tiltX += tilt.x / (Float(image.width) / 2)
        map.tiltY += tilt.y / (Float(image.height) / 2)
        return map
    }

    /// Returns the map between pixels counted from the upper left corner, as homogeneous coordinates, row by row.
    func matrix(in image: RasterImage) -> [Float] {
        let (centreX, centreY) = (Float(image.width - 1) / 2, Float(image.height - 1) / 2)
        let (fromX, fromY) = (shiftX + centreX, shiftY + centreY)
        func row(_ x: Float, _ y: Float, _ constant: Float) -> [Float] { [x, y, constant - x * centreX - y * centreY] }
        return row(a + fromX * tiltX, b + fromX * tiltY, fromX) + row(c + fromY * tiltX, d + fromY * tiltY, fromY)
            + row(tiltX, tiltY, 1)
    }
}
