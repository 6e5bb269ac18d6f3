/// A contact sheet: many images in one, to review a data set.
package enum ContactSheet {
    /// Arranges `images` in rows of `columns`, in cells of the size of the largest image, 4 pixels apart on mid grey.
    ///
    /// - Parameters:
    ///   - images: At least one image; transparent images are shown on white.
    ///   - columns: At least 1.
    ///   - gapAfterFirstColumn: The additional gap after the first column, in pixels.
    /// - Returns: An image of 3 channels.
    package static func make(_ images: [RasterImage], columns: Int, gapAfterFirstColumn: Int = 0) -> RasterImage {
        precondition(!images.isEmpty, "a contact sheet needs at least one image")
        precondition(columns >= 1, "a contact sheet must have at least one column, not \(columns)")
        let gap = 4
        let cellWidth = (images.map(\.width).max() ?? 0) + gap
        let cellHeight = (images.map(\.height).max() ?? 0) + gap
        let rows = (images.count + columns - 1) / columns
        var sheet = RasterImage(
            width: min(columns, images.count) * cellWidth + gap + gapAfterFirstColumn, height: rows * cellHeight + gap,
            filledWith: 128)
        for (index, image) in images.enumerated() {
            let (row, column) = index.quotientAndRemainder(dividingBy: columns)
            let left = column * cellWidth + gap + (column > 0 ? gapAfterFirstColumn : 0)
            sheet.paste(image, left: left, top: row * cellHeight + gap)
        }
        return sheet
    }
}

extension RasterImage {
    fileprivate mutating func paste(_ image: RasterImage, left: Int, top: Int) {
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
