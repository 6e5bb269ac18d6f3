/// A rectangle in an image, in fractions of its width and height, from the upper left corner of the upright image.
///
/// Vision measures from the lower left corner; there, `y` is 1 − `y` − `height` of this rectangle.
public struct NormalizedRectangle: Codable, Hashable, Sendable {
    /// The left edge, 0…1.
    public let x: Float
    /// The upper edge, 0…1.
    public let y: Float
    /// The width, 0…1.
    public let width: Float
    /// The height, 0…1.
    public let height: Float

    /// Creates a rectangle.
    public init(x: Float, y: Float, width: Float, height: Float) {
        (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }

    /// The whole image.
    public static let all = NormalizedRectangle(x: 0, y: 0, width: 1, height: 1)

    /// Whether the rectangle is not empty and lies inside the image, except for rounding errors.
    package var isWithinImage: Bool {
        let slack: Float = 1e-5
        // Comparisons with NaN are false.
        return x >= -slack && y >= -slack && width > 0 && height > 0 && x + width <= 1 + slack
            && y + height <= 1 + slack
    }

    /// The rectangle clipped to the image.
    package var clippedToImage: NormalizedRectangle {
        let (left, top) = (min(max(x, 0), 1), min(max(y, 0), 1))
        // A rectangle outside the image does not intersect it.
        return NormalizedRectangle(
            x: left, y: top, width: max(min(x + width, 1) - left, 0), height: max(min(y + height, 1) - top, 0))
    }

    /// Maps a rectangle in the coordinates of `part` to the coordinates of the whole image.
    package func mapped(from part: NormalizedRectangle) -> NormalizedRectangle {
        guard part != .all else { return self }
        return NormalizedRectangle(
            x: part.x + x * part.width, y: part.y + y * part.height, width: width * part.width,
            height: height * part.height)
    }

    /// Returns the columns and rows that the rectangle touches, at least one of each.
    func pixels(width columns: Int, height rows: Int) -> (columns: Range<Int>, rows: Range<Int>) {
        (Self.range(x, width, of: columns), Self.range(y, height, of: rows))
    }

    private static func range(_ start: Float, _ length: Float, of count: Int) -> Range<Int> {
        // A fraction computed from pixels must map back to these pixels. A thousandth of a pixel is a rounding error, and so is 2^-22 of a long
        // side: a mapped rectangle is rounded several times, by up to 2^-25 each.
        let slack = max(1e-3, Double(count) * 0x1p-22)
        let (start, end) = (Double(start) * Double(count), (Double(start) + Double(length)) * Double(count))
        let first = min(max(Int((start + slack).rounded(.down)), 0), count - 1)
        return first..<min(max(Int((end - slack).rounded(.up)), first + 1), count)
    }
}
