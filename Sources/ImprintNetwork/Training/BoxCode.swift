#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// The encoding of the bounding box that a detector's network predicts at each position of its heat map.
///
/// All lengths are in positions: 1 is the stride of the heat map. The first two values are the offset of the box's centre from the
/// position. The other two are the logarithms of the box's width and height relative to a typical size:
/// t = (x − column, y − row, ln(width / size), ln(height / size)). This is the parametrization of
/// Ren et al., "Faster R-CNN" (2015), with a single square anchor.
package enum BoxCode {
    /// The number of values.
    package static let count = 4
    /// The bound to which decoded logarithms are clamped, ±4; it prevents an overflow.
    package static let maximumLogarithm: Float = 4

    /// A box, all values in positions.
    package struct Box: Sendable, Hashable {
        /// The row and the column of the centre, 0 at the first position.
        package var row: Float
        package var column: Float
        package var height: Float
        package var width: Float

        /// Creates a box.
        package init(row: Float, column: Float, height: Float, width: Float) {
            (self.row, self.column, self.height, self.width) = (row, column, height, width)
        }

        /// Returns the four values at a position.
        /// - Parameter size: The typical size of a box, in positions.
        package func values(row positionRow: Int, column positionColumn: Int, size: Float) -> [Float] {
            [column - Float(positionColumn), row - Float(positionRow), logf(width / size), logf(height / size)]
        }
    }

    /// Returns the box that the four values at a position describe.
    package static func box(_ values: [Float], row: Int, column: Int, size: Float) -> Box {
        func side(_ logarithm: Float) -> Float {
            size * expf(min(max(logarithm, -maximumLogarithm), maximumLogarithm))
        }
        return Box(
            row: Float(row) + values[1], column: Float(column) + values[0], height: side(values[3]),
            width: side(values[2]))
    }
}
