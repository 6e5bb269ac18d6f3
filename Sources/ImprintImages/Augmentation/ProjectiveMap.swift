internal import Foundation

/// The map M from each position in a warped image to the position in the source image that it shows.
///
/// Positions are in pixels from the centre of the image: source = (A · position) / (1 + tilt · position) + shift.
///
/// M maps from the output to the source, so a further step S, such as a rotation of the output, is appended as M ← M · S⁻¹.
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

    /// Appends a linear step S, given by its inverse S⁻¹ = [[e, f], [g, h]]: M ← M · S⁻¹.
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

    /// Returns the map between pixels counted from the upper left corner, as homogeneous coordinates, row by row.
    func matrix(in image: RasterImage) -> [Float] {
        let (centreX, centreY) = (Float(image.width - 1) / 2, Float(image.height - 1) / 2)
        let (fromX, fromY) = (shiftX + centreX, shiftY + centreY)
        func row(_ x: Float, _ y: Float, _ constant: Float) -> [Float] { [x, y, constant - x * centreX - y * centreY] }
        return row(a + fromX * tiltX, b + fromX * tiltY, fromX) + row(c + fromY * tiltX, d + fromY * tiltY, fromY)
            + row(tiltX, tiltY, 1)
    }
}

extension ProjectiveMap {
    /// Creates a map with perspective: 1 + tilt.x times as large at the right edge, and 1 − tilt.x times as large at the left edge.
    ///
    /// Likewise, `tilt.y` enlarges the image at its lower edge and shrinks it at its upper edge. Perspective is always the first step, because
    /// `tilt` refers to the edges of the source image.
    init(tilt: (x: Float, y: Float), in image: RasterImage) {
        self.init()
        tiltX += tilt.x / (Float(image.width) / 2)
        tiltY += tilt.y / (Float(image.height) / 2)
    }
}
