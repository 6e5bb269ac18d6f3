/// Many images on one, to look over a data set.
public enum ContactSheet {
    /// Lays `images` out in rows of `columns`, each in a cell as large as the largest, 4 pixels apart on mid grey.
    ///
    /// - Parameters:
    ///   - images: At least one; grey images are shown as such, transparent ones on white.
    ///   - columns: At least 1.
    ///   - gapAfterFirstColumn: By how much the others stand apart from the first column, in pixels.
    /// - Returns: An image of 3 channels.
    public static func make(_ images: [Image], columns: Int, gapAfterFirstColumn: Int = 0) -> Image {
        precondition(!images.isEmpty, "a contact sheet needs at least one image")
        precondition(columns >= 1, "a contact sheet has at least one column, not \(columns)")
        let gap = 4
        let cellWidth = (images.map(\.width).max() ?? 0) + gap
        let cellHeight = (images.map(\.height).max() ?? 0) + gap
        let rows = (images.count + columns - 1) / columns
        var sheet = Image(
            width: min(columns, images.count) * cellWidth + gap + gapAfterFirstColumn, height: rows * cellHeight + gap,
            filledWith: 128)
        for (index, image) in images.enumerated() {
            let (row, column) = index.quotientAndRemainder(dividingBy: columns)
            let left = column * cellWidth + gap + (column > 0 ? gapAfterFirstColumn : 0)
            sheet.place(image, left: left, top: row * cellHeight + gap)
        }
        return sheet
    }
}

extension Image {
    fileprivate mutating func place(_ image: Image, left: Int, top: Int) {
        for row in 0..<image.height {
            for column in 0..<image.width {
                let source = (row * image.width + column) * image.channels
                let target = ((top + row) * width + left + column) * channels
                let alpha = image.channels == 4 ? Int(image.samples[source + 3]) : 255
                for channel in 0..<3 {
                    let value = Int(image.samples[source + (image.channels == 1 ? 0 : channel)])
                    samples[target + channel] = UInt8((value * alpha + 255 * (255 - alpha) + 127) / 255)
                }
            }
        }
    }
}
