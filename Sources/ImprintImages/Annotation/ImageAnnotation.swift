package import Foundation
internal import ImprintCore

/// Captions and bounding boxes that are drawn on a copy of a photo.
package struct ImageAnnotation: Sendable {
    /// A bounding box with its caption.
    package struct Box: Sendable {
        /// The box; the part outside of the photo is not drawn.
        package let rectangle: NormalizedRectangle
        /// The caption, which starts with the label.
        package let caption: String

        package init(_ rectangle: NormalizedRectangle, caption: String) {
            (self.rectangle, self.caption) = (rectangle, caption)
        }
    }

    /// The lines of text below the photo.
    package var captions: [String]
    /// The boxes; boxes whose captions are equal up to the first digit have the same colour.
    package var boxes: [Box]

    package init(captions: [String] = [], boxes: [Box] = []) {
        (self.captions, self.boxes) = (captions, boxes)
    }

    /// The maximum short side of an annotated copy, in pixels; larger photos are scaled down.
    package static let shortSide = 1080
    /// The short side to which smaller photos are enlarged, by an integer factor, in pixels; less for long, narrow photos, whose long side
    /// gets at most 8 times as many pixels.
    package static let minimumShortSide = shortSide / 4
    /// The maximum long side of an annotated copy without its captions, which leaves room for ten captions in a JPEG (`ImageFile.jpegSideLimit`).
    private static let longSide = 60 * shortSide

    /// Returns the annotated copy of a photo as a JPEG, upright and in sRGB.
    /// - Parameters:
    ///   - photo: The photo.
    ///   - source: A text that identifies the photo. `isCopy(_:of:)` recognizes the copy by it; the copy contains only its digest.
    /// - Throws: `ImageError` if the photo cannot be decoded, or its copy cannot be encoded.
    package func copy(of photo: URL, source: String) throws(ImageError) -> [UInt8] {
        let image = try ImageFile.decode(photo, coveringShortSide: Self.shortSide).shrunk(toShortSide: Self.shortSide)
            .shrunk(toLongSide: Self.longSide)
        let jpeg = try ImageFile.encodeJPEG(drawn(on: image))
        return jpeg.prefix(2) + Self.comment(source) + jpeg.dropFirst(2)
    }

    /// Whether the file at `url` is the annotated copy of the photo that `source` identifies; false if it cannot be read.
    package static func isCopy(_ url: URL, of source: String) -> Bool {
        let start = [0xFF, 0xD8] + comment(source)
        return firstBytes(start.count, of: url) == start
    }

    /// Returns the comment segment of the copy of a photo.
    private static func comment(_ source: String) -> [UInt8] {
        let text = "Imprint annotated photo \(SHA256.hexadecimal(of: Array(source.utf8)))"
        return JPEGSegments.segment(JPEGSegments.commentMarker, Array(text.utf8))
    }
}

// MARK: Drawing

extension ImageAnnotation {
    private static let dark: [UInt8] = [24, 24, 28]
    private static let light: [UInt8] = [255, 255, 255]
    /// Colours on which white text is readable.
    private static let colors: [[UInt8]] = [
        [200, 30, 45], [20, 100, 200], [0, 125, 60], [150, 50, 170], [180, 85, 0], [0, 115, 130],
    ]

    /// Returns the image with the boxes on it and the captions in a band below it, with 3 channels.
    func drawn(on photo: RasterImage) -> RasterImage {
        let image = photo.flattenedOnWhite().converted(toChannels: 3).enlarged(toShortSide: Self.minimumShortSide)
        // Capitals are 7 units high: about a thirtieth of the short side.
        let unit = max(Float(min(image.width, image.height)) / 220, 1.4)
        let lineHeight = 13 * unit
        let band = captions.isEmpty ? 0 : Int((lineHeight * Float(captions.count) + 4 * unit).rounded(.up))
        var result = RasterImage(
            width: image.width, height: image.height + band, channels: 3,
            samples: image.samples + Array(repeatElement(Self.dark, count: band * image.width).joined()))
        for box in boxes.reversed() {
            result.drawOutline(of: box, photoHeight: image.height, unit, Self.color(of: box))
        }
        for box in boxes.reversed() {
            result.drawCaption(of: box, photoHeight: image.height, unit, Self.color(of: box))
        }
        for (line, caption) in captions.enumerated() {
            let text = Self.fitted(caption, into: Float(image.width) - 8 * unit, unit)
            let top = Float(image.height) + 4 * unit + Float(line) * lineHeight
            result.draw(text, left: 5 * unit, top: top, unit: unit, color: Self.light)
        }
        return result
    }

    private static func color(of box: Box) -> [UInt8] {
        let label = box.caption.prefix { !$0.isNumber }
        return colors[label.utf8.reduce(0) { $0 &* 31 &+ Int($1) } & 0xFFFF % colors.count]
    }

    /// Returns a text in the letters of the font; its end is omitted if it is wider than `width`.
    fileprivate static func fitted(_ text: String, into width: Float, _ unit: Float) -> String {
        let letters = StrokeFont.letters(of: text)
        let room = max(Int(width / (StrokeFont.advance * unit)), 1)
        return letters.count <= room ? letters : letters.prefix(room - 1) + "…"
    }
}

extension RasterImage {
    /// The edges of a box, in pixels.
    private func edges(
        of box: ImageAnnotation.Box, _ photoHeight: Int
    ) -> (left: Float, top: Float, right: Float, bottom: Float) {
        let part = box.rectangle.clippedToImage
        let (columns, rows) = (Float(width), Float(photoHeight))
        return (part.x * columns, part.y * rows, (part.x + part.width) * columns, (part.y + part.height) * rows)
    }

    fileprivate mutating func drawOutline(
        of box: ImageAnnotation.Box, photoHeight: Int, _ unit: Float, _ color: [UInt8]
    ) {
        let (left, top, right, bottom) = edges(of: box, photoHeight)
        let line = max(unit * 0.8, 2).rounded()
        fill(left: left, top: top, right: right, bottom: top + line, color: color)
        fill(left: left, top: bottom - line, right: right, bottom: bottom, color: color)
        fill(left: left, top: top, right: left + line, bottom: bottom, color: color)
        fill(left: right - line, top: top, right: right, bottom: bottom, color: color)
    }

    /// Draws the caption above the box, or inside it if there is no room above.
    fileprivate mutating func drawCaption(
        of box: ImageAnnotation.Box, photoHeight: Int, _ unit: Float, _ color: [UInt8]
    ) {
        let (left, top, _, _) = edges(of: box, photoHeight)
        let text = ImageAnnotation.fitted(box.caption, into: Float(width) - 4 * unit, unit)
        let (tagWidth, tagHeight) = ((Float(text.count) * StrokeFont.advance + 3) * unit, 12 * unit)
        let tagLeft = max(min(left, Float(width) - tagWidth), 0)
        let tagTop = top >= tagHeight ? top - tagHeight : top
        fill(left: tagLeft, top: tagTop, right: tagLeft + tagWidth, bottom: tagTop + tagHeight, color: color)
        draw(text, left: tagLeft + 2 * unit, top: tagTop + 2.5 * unit, unit: unit, color: [255, 255, 255])
    }

    /// Returns the image enlarged by an integer factor, so that its short side has at least `side` pixels.
    ///
    /// For a long, narrow image, the factor is lower: its long side gets at most 8 times `side` pixels.
    fileprivate func enlarged(toShortSide side: Int) -> RasterImage {
        let factor = min((side + min(width, height) - 1) / min(width, height), max(8 * side / max(width, height), 1))
        guard factor > 1 else { return self }
        var large: [UInt8] = []
        large.reserveCapacity(samples.count * factor * factor)
        for row in 0..<height {
            var line: [UInt8] = []
            for start in stride(from: row * width * channels, to: (row + 1) * width * channels, by: channels) {
                for _ in 0..<factor { line += samples[start..<(start + channels)] }
            }
            for _ in 0..<factor { large += line }
        }
        return RasterImage(width: width * factor, height: height * factor, channels: channels, samples: large)
    }
}
