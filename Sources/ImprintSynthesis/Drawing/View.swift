/// How a flat piece of artwork is seen: turned in its plane, tilted away, and placed on the frame by a pinhole camera.
///
/// Drawing asks the inverse: which point of the artwork is seen at this pixel? With the tilt *τ* about an axis through
/// the artwork's centre, the camera *D* away and *e* = tan *τ* / *D*, the frame point (*X*, *Y*), *Y* measured across
/// the axis, shows (*X* / *w*, *Y* / (*w* cos *τ*)) with *w* = 1 − *e Y*.
struct View {
    /// Where the artwork's origin appears, in pixels.
    let center: Point
    /// How many pixels a unit of the artwork spans at the centre, where nothing is tilted.
    let scale: Float
    /// By what the artwork is turned in its plane; (1, 0) is upright.
    let rotation: Point
    /// The direction of the axis of the tilt.
    let axis: Point
    /// The angle of the tilt, as (cosine, sine) of it.
    let tilt: Point

    /// The distance of the camera, in units of the artwork, most of which lies within 1 of its centre.
    private static let cameraDistance: Float = 4

    init(
        center: Point, scale: Float, rotationDegrees: Float = 0, axis: Point = Point(1, 0), tiltDegrees: Float = 0
    ) {
        self.center = center
        self.scale = scale
        self.rotation = .direction(degrees: rotationDegrees)
        self.axis = axis
        self.tilt = .direction(degrees: tiltDegrees)
    }

    /// The point of the artwork that is seen at `pixel`, and the side of a pixel there in units of the artwork.
    ///
    /// The side is the geometric mean of the two directions, which differ by the foreshortening.
    @inline(__always) func artwork(at pixel: Point) -> (point: Point, pixelSide: Float) {
        let frame = ((pixel - center) / scale).turnedBack(by: axis)
        let cosine = tilt.x
        let depth = 1 - frame.y * abs(tilt.y) / (cosine * Self.cameraDistance)
        // Behind the horizon nothing is seen; a small depth puts such points far outside of any artwork.
        let w = max(depth, 0.05)
        let point = Point(frame.x / w, frame.y / (w * cosine)).turned(by: axis).turnedBack(by: rotation)
        return (point, (1 / (cosine * w * w * w)).squareRoot() / scale)
    }

    /// Where a point of the artwork appears, in pixels; what would lie behind the camera appears far away.
    func pixel(of point: Point) -> Point {
        let tilted = point.turned(by: rotation).turnedBack(by: axis)
        // From Y = y cos τ · w and w = 1 − e Y.
        let across = tilted.y * tilt.x
        let steepness = abs(tilt.y) / (tilt.x * Self.cameraDistance)
        let w = 1 / max(1 + steepness * across, 0.05)
        return center + Point(tilted.x * w, across * w).turned(by: axis) * scale
    }
}
