/// A rectangle whose sides are parallel to those of the image.
package protocol BoundingBox {
    /// The type of coordinates.
    associatedtype Length: BinaryFloatingPoint

    /// The left edge.
    var x: Length { get }
    /// The upper edge.
    var y: Length { get }
    var width: Length { get }
    var height: Length { get }
}

extension BoundingBox {
    /// Returns the area of the intersection with another box; 0 if they do not overlap, or if a coordinate is NaN.
    @inlinable
    package func intersection(with other: Self) -> Length {
        let columns = min(x + width, other.x + other.width) - max(x, other.x)
        let rows = min(y + height, other.y + other.height) - max(y, other.y)
        // Comparisons with NaN are false.
        guard columns > 0, rows > 0 else { return 0 }
        return columns * rows
    }

    /// Returns the intersection over union (IoU) with another box, 0…1; 0 if either has no area.
    @inlinable
    package func iou(with other: Self) -> Length {
        let common = intersection(with: other)
        return common > 0 ? common / (width * height + other.width * other.height - common) : 0
    }
}

extension NormalizedRectangle: BoundingBox {}
