internal import ImprintCore

/// The blocks of rows in which a pass records moments.
///
/// A block belongs to one unit of the batch (`BatchPart.units`), so the blocks do not depend on the number of processes.
struct RowBlocks {
    /// The number of blocks of this process; some may be empty.
    let count: Int
    /// The index of the first block of this process.
    let first: Int
    /// The number of blocks of all processes.
    let total: Int
    private let part: BatchPart
    private let units: Int
    private let rowsPerImage: Int
    private let perUnit: Int

    /// Creates the blocks of a part of a batch.
    /// - Parameters:
    ///   - rowsPerImage: The number of rows of an image.
    ///   - blockRows: The maximum number of rows of a block.
    ///   - rounding: Changes the number of blocks; must not make it smaller.
    init(_ part: BatchPart, rowsPerImage: Int, blockRows: Int, rounding: (Int) -> Int = { $0 }) {
        (self.part, self.rowsPerImage) = (part, rowsPerImage)
        units = BatchPart.units(of: part.total)
        perUnit = Self.perUnit(
            units, batch: part.total, rowsPerImage: rowsPerImage, blockRows: blockRows, rounding: rounding)
        total = units * perUnit
        count = total / part.count
        first = part.index * count
    }

    private static func perUnit(
        _ units: Int, batch: Int, rowsPerImage: Int, blockRows: Int, rounding: (Int) -> Int
    ) -> Int {
        let rows = (batch + units - 1) / units * rowsPerImage
        return (rounding(units * ((rows + blockRows - 1) / blockRows)) + units - 1) / units
    }

    /// Returns the maximum number of blocks of a batch and of smaller batches.
    static func maximumCount(
        batch: Int, rowsPerImage: Int, blockRows: Int, rounding: (Int) -> Int = { $0 }
    ) -> Int {
        let units = BatchPart.units(of: batch)
        return units
            * perUnit(units, batch: batch, rowsPerImage: rowsPerImage, blockRows: blockRows, rounding: rounding)
    }

    /// The number of rows of the largest unit.
    var rowsPerUnit: Int { (part.total + units - 1) / units * rowsPerImage }

    /// The rows of a block, counted from the first row of this process.
    subscript(block: Int) -> Range<Int> {
        let (unit, inside) = (first + block).quotientAndRemainder(dividingBy: perUnit)
        let images = chunkRange(unit, of: units, total: part.total)
        let start = (images.lowerBound - part.images.lowerBound) * rowsPerImage
        let rows = chunkRange(inside, of: perUnit, total: images.count * rowsPerImage)
        return (start + rows.lowerBound)..<(start + rows.upperBound)
    }
}
