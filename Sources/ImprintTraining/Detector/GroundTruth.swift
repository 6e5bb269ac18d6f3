internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// An image with the ground truth of all its logos: a photo without a logo, or an annotated photo.
struct GroundTruthImage {
    let source: PatchSource
    var objects: [GroundTruthObject] = []

    /// Returns whether the centre of a detection lies in the box of an object, or close to it.
    /// - Parameter logo: The logo of the objects; nil for the objects of all logos.
    func hasObject(at peak: PyramidScanner.Peak, logo: Int? = nil) -> Bool {
        objects.contains { object in
            (logo == nil || object.logo == logo) && abs(peak.x - object.x) < 0.75 * object.width
                && abs(peak.y - object.y) < 0.75 * object.height
        }
    }

    /// Returns the targets of all objects in a window of the image.
    ///
    /// An object counts if most of it is in the window at a size that the network detects there. The others are ignored, unless the window
    /// shows little of them. The part of a crowd in the window is ignored.
    func targets(in window: PatchWindow) -> [HeatMapLoss.Target] {
        objects.compactMap { object in
            let box = object.box(in: window)
            let visible = Self.visibleShare(of: box)
            if object.isCrowd {
                // A small part of a large crowd can fill the window.
                return visible > 0
                    ? HeatMapLoss.Target(
                        logo: object.logo, row: box.row, column: box.column, box: box, isCrowd: true) : nil
            }
            guard visible > 0.2 else { return nil }
            let fraction = object.span / window.side
            let counts = visible > 0.75 && Self.detectedFractions.contains(fraction)
            return HeatMapLoss.Target(
                logo: object.logo, row: box.row, column: box.column, box: box, isIgnored: !counts)
        }
    }

    /// The sizes of objects that the network detects, as fractions of the side of its window.
    private static let detectedFractions: ClosedRange<Float> = 0.25...0.72

    /// Returns the share of a box that lies in the patch.
    private static func visibleShare(of box: BoxCode.Box) -> Float {
        // The patch extends by half of the stride beyond its outer positions.
        let end = Float(DetectorHead.patchSide / DetectorHead.heatMapStride) - 0.5
        func overlap(_ center: Float, _ size: Float) -> Float {
            max(min(center + size / 2, end) - max(center - size / 2, -0.5), 0) / max(size, 1e-6)
        }
        return overlap(box.row, box.height) * overlap(box.column, box.width)
    }
}

/// The ground truth of a logo or other object: its bounding box, in pixels of its image.
struct GroundTruthObject: Hashable {
    let logo: Int
    /// The centre of the box.
    let x: Float
    let y: Float
    let width: Float
    let height: Float
    /// Whether the box is around a crowd, which is neither an object nor background.
    let isCrowd: Bool

    /// Creates an object from a box that is relative to its image.
    init(logo: Int, _ box: NormalizedRectangle, in source: PatchSource, isCrowd: Bool = false) {
        (self.logo, self.isCrowd) = (logo, isCrowd)
        (width, height) = (box.width * Float(source.width), box.height * Float(source.height))
        // The centre of the first pixel is (0, 0) in a patch window.
        x = (box.x + box.width / 2) * Float(source.width) - 0.5
        y = (box.y + box.height / 2) * Float(source.height) - 0.5
    }

    /// Returns the box relative to the image of the object.
    func box(in source: PatchSource) -> NormalizedRectangle {
        let (columns, rows) = (Float(source.width), Float(source.height))
        return NormalizedRectangle(
            x: (x + 0.5 - width / 2) / columns, y: (y + 0.5 - height / 2) / rows, width: width / columns,
            height: height / rows)
    }

    /// The size of the object, as composites define it: the diameter of a circle around it.
    ///
    /// Few objects fill the corners of their box, so the diameter is less than the diagonal.
    var span: Float { max(width, height, 0.85 * hypotf(width, height)) }

    /// Returns the box in positions of the heat map of a window.
    ///
    /// The exact box of a rotated object is unknown, so the method rotates the ellipse inscribed in the box, and returns the ellipse's box.
    /// A crowd can fill the corners of its box.
    func box(in window: PatchWindow) -> BoxCode.Box {
        let corners = [(-1, -1), (-1, 1), (1, -1), (1, 1)] as [(Float, Float)]
        let points =
            isCrowd
            ? corners.map { SIMD2(x + width / 2 * $0, y + height / 2 * $1) }
            : (0..<16).map { index in
                let angle = Float(index) * .pi / 8
                return SIMD2(x + width / 2 * cosf(angle), y + height / 2 * sinf(angle))
            }
        let center = window.heatMapPosition(of: SIMD2(x, y))
        let fallback = BoxCode.Box(row: center.y, column: center.x, height: 1e-3, width: 1e-3)
        return window.box(around: points) ?? fallback
    }
}

extension PatchWindow {
    /// Returns the position of a point of the image in the heat map, (column, row).
    func heatMapPosition(of point: SIMD2<Float>) -> SIMD2<Float> {
        let position = position(ofX: point.x, y: point.y, patch: Float(DetectorHead.patchSide))
        let middle = Float(DetectorHead.patchSide - 1) / 2
        return (SIMD2(position.x, position.y) + middle) / Float(DetectorHead.heatMapStride)
    }

    /// Returns the bounding box of points, in positions of the heat map; nil if it has no area.
    func box(around points: [SIMD2<Float>]) -> BoxCode.Box? {
        var (low, high) = (SIMD2<Float>(repeating: .infinity), SIMD2<Float>(repeating: -.infinity))
        for point in points {
            let position = heatMapPosition(of: point)
            (low, high) = (pointwiseMin(low, position), pointwiseMax(high, position))
        }
        guard low.x < high.x, low.y < high.y else { return nil }
        let (center, size) = ((low + high) / 2, high - low)
        return BoxCode.Box(row: center.y, column: center.x, height: size.y, width: size.x)
    }
}
