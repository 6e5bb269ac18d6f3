internal import Foundation
internal import ImprintImages

/// Bounding boxes that a page draws over a picture.
enum BoxOverlay {
    /// Returns boxes as SVG, each with a dark and a bright line for contrast with any photo.
    /// - Parameters:
    ///   - boxes: The boxes in pixels, with their styles: "mistake", "detection", or empty for an annotated object.
    ///   - size: The size of the picture in pixels.
    static func svg(
        _ boxes: [(box: NormalizedRectangle, style: String)], _ size: (width: Float, height: Float)
    ) -> String {
        func text(_ value: Float) -> String { String(format: "%.1f", value) }
        let rectangles = boxes.map { box, style in
            let edges =
                "x=\"\(text(box.x))\" y=\"\(text(box.y))\" width=\"\(text(box.width))\" height=\"\(text(box.height))\""
            return "<rect class=\"under \(style)\" \(edges)/><rect class=\"\(style)\" \(edges)/>"
        }
        return
            "<svg viewBox=\"0 0 \(text(size.width)) \(text(size.height))\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
            + rectangles.joined() + "</svg>"
    }
}

extension NormalizedRectangle {
    /// Returns the rectangle in pixels of an image.
    func scaled(_ columns: Float, _ rows: Float) -> NormalizedRectangle {
        NormalizedRectangle(x: x * columns, y: y * rows, width: width * columns, height: height * rows)
    }

    /// Returns the rectangle at another position.
    func moved(_ right: Float, _ down: Float) -> NormalizedRectangle {
        NormalizedRectangle(x: x + right, y: y + down, width: width, height: height)
    }
}
