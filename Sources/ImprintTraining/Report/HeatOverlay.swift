internal import Imprint
internal import ImprintImages
internal import ImprintModel

/// A saliency map as a colour overlay on its image.
///
/// The image becomes grey, and the map runs from violet through orange to yellow. The lightness of this colour map increases throughout, so
/// it is readable without colour vision (anchors of inferno, by Smith and van der Walt).
enum HeatOverlay {
    /// The anchors of the colour map, from no drop to the largest drop.
    private static let ramp: [[Float]] = [
        [34, 12, 74], [106, 23, 110], [188, 55, 84], [249, 142, 9], [252, 230, 120],
    ]
    /// The minimum drop that has the brightest colour; without it, noise would be bright in a map of small drops.
    private static let minimumScale: Float = 0.05

    /// The colour map on a medium grey, for a legend.
    static var gradient: String {
        let colors = (0...8).map { step in
            "rgb(\(color(Float(step) / 8, on: 128).map { "\(Int($0))" }.joined(separator: " ")))"
        }
        return "linear-gradient(to right, \(colors.joined(separator: ", ")))"
    }

    /// Returns the image with the map as an overlay.
    static func draw(_ map: SaliencyMap, on image: RasterImage) -> RasterImage {
        let maximum = max(map.maximum, minimumScale)
        var result = RasterImage(width: image.width, height: image.height)
        let columns = (0..<image.width).map { position(of: $0, in: image.width, along: map.width) }
        for y in 0..<image.height {
            let row = position(of: y, in: image.height, along: map.height)
            for x in 0..<image.width {
                let value = value(of: map, columns[x], row) / maximum
                let grey = grey(image, at: y * image.width + x)
                for (channel, sample) in color(value, on: grey).enumerated() {
                    result.samples[(y * image.width + x) * 3 + channel] = UInt8(min(max(sample, 0), 255))
                }
            }
        }
        return result
    }

    /// A position between two pixels of a map, as a fraction of their distance.
    private typealias Position = (before: Int, after: Int, fraction: Float)

    /// Returns the position of the centre of an image's pixel in the map.
    private static func position(of pixel: Int, in length: Int, along mapLength: Int) -> Position {
        let position = (Float(pixel) + 0.5) * Float(mapLength) / Float(length) - 0.5
        let inside = min(max(position, 0), Float(mapLength - 1))
        return (Int(inside), min(Int(inside) + 1, mapLength - 1), inside - inside.rounded(.down))
    }

    /// Returns the bilinearly interpolated value of a map.
    private static func value(of map: SaliencyMap, _ column: Position, _ row: Position) -> Float {
        func interpolate(_ first: Float, _ second: Float, _ fraction: Float) -> Float {
            first + (second - first) * fraction
        }
        func inRow(_ y: Int) -> Float {
            interpolate(
                map.values[y * map.width + column.before], map.values[y * map.width + column.after], column.fraction)
        }
        return interpolate(inRow(row.before), inRow(row.after), row.fraction)
    }

    /// Returns the colour of a value in 0…1 on a grey, which remains visible at every value.
    private static func color(_ value: Float, on grey: Float) -> [Float] {
        let position = min(max(value, 0), 1) * Float(ramp.count - 1)
        let index = min(Int(position), ramp.count - 2)
        return zip(ramp[index], ramp[index + 1]).map { before, after in
            let color = before + (after - before) * (position - Float(index))
            return grey + (color - grey) * (0.12 + 0.58 * value)
        }
    }

    private static func grey(_ image: RasterImage, at pixel: Int) -> Float {
        let start = pixel * image.channels
        guard image.channels >= 3 else { return Float(image.samples[start]) }
        let (red, green, blue) = (image.samples[start], image.samples[start + 1], image.samples[start + 2])
        return 0.299 * Float(red) + 0.587 * Float(green) + 0.114 * Float(blue)
    }
}
