/// The projection of flat artwork onto the frame: rotation in its plane, tilt, and a pinhole camera.
///
/// Drawing needs the inverse: the point of the artwork that is visible at a pixel. Let *τ* be the tilt about an axis through
/// the artwork's centre, *D* the distance of the camera and *e* = tan *τ* / *D*. The frame point (*X*, *Y*), with *Y* measured
/// across the axis, shows (*X* / *w*, *Y* / (*w* cos *τ*)) with *w* = 1 − *e Y*.
struct View {
    /// The position of the artwork's origin in the frame, in pixels.
    let center: Point
    /// The number of pixels per unit of the artwork at the centre, before the tilt.
    let scale: Float
    /// The rotation in the plane of the artwork, as a unit vector; (1, 0) is upright.
    let rotation: Point
    /// The direction of the axis of the tilt.
    let axis: Point
    /// The cosine and sine of the tilt angle.
    let tilt: Point

    /// The distance of the camera, in units of the artwork; most artwork is within 1 unit of its centre.
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

    /// Returns the point of the artwork that is visible at `pixel`, and the side of a pixel there in units of the artwork.
    ///
    /// The side is the geometric mean over both directions, which differ because of foreshortening.
    @inline(__always) func artwork(at pixel: Point) -> (point: Point, pixelSide: Float) {
        let frame = ((pixel - center) / scale).rotatedBack(by: axis)
        let cosine = tilt.x
        let depth = 1 - frame.y * abs(tilt.y) / (cosine * Self.cameraDistance)
        // Pixels beyond the horizon show no artwork; a small depth maps them to points far outside of any artwork.
        let w = max(depth, 0.05)
        let point = Point(frame.x / w, frame.y / (w * cosine)).rotated(by: axis).rotatedBack(by: rotation)
        return (point, (1 / (cosine * w * w * w)).squareRoot() / scale)
    }

    /// Returns the position of a point of the artwork in the frame, in pixels; points behind the camera are mapped far away.
    func pixel(of point: Point) -> Point {
        let tilted = point.rotated(by: rotation).rotatedBack(by: axis)
        // From Y = y cos τ · w and w = 1 − e Y.
        let across = tilted.y * tilt.x
        let steepness = abs(tilt.y) / (tilt.x * Self.cameraDistance)
        let w = 1 / max(1 + steepness * across, 0.05)
        return center + Point(tilted.x * w, across * w).rotated(by: axis) * scale
    }
}
