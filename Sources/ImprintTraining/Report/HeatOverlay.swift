internal import Imprint
internal import ImprintImages
internal import ImprintModel

/// A saliency map laid upon its image.
///
/// The image turns grey, and what matters glows from violet through orange to yellow: a ramp that only gets lighter, so that it
/// is read without telling colours apart (anchors of inferno, by Smith and van der Walt).
enum HeatOverlay {
    /// From where nothing happens to the greatest drop.
    private static let ramp: [[Float]] = [
        [34, 12, 74], [106, 23, 110], [188, 55, 84], [249, 142, 9], [252, 230, 120],
    ]
    /// The least drop of the confidence that glows fully; where all are smaller, noise would glow else.
    private static let leastGreatest: Float = 0.05

    /// The ramp upon a medium grey, for a legend.
    static var gradient: String {
        let colors = (0...8).map { step in
            "rgb(\(color(Float(step) / 8, on: 128).map { "\(Int($0))" }.joined(separator: " ")))"
        }
        return "linear-gradient(to right, \(colors.joined(separator: ", ")))"
    }

    /// The image with the map upon it.
    static func draw(_ map: SaliencyMap, on image: RasterImage) -> RasterImage {
        let greatest = max(map.greatest, leastGreatest)
        var result = RasterImage(width: image.width, height: image.height)
        let columns = (0..<image.width).map { place(of: $0, in: image.width, along: map.width) }
        for y in 0..<image.height {
            let row = place(of: y, in: image.height, along: map.height)
            for x in 0..<image.width {
                let value = value(of: map, columns[x], row) / greatest
                let grey = grey(image, at: y * image.width + x)
                for (channel, sample) in color(value, on: grey).enumerated() {
                    result.samples[(y * image.width + x) * 3 + channel] = UInt8(min(max(sample, 0), 255))
                }
            }
        }
        return result
    }

    private typealias Place = (before: Int, after: Int, share: Float)

    /// Between which pixels of a map, and how far from the first, the middle of a pixel of the image lies.
    private static func place(of pixel: Int, in length: Int, along mapLength: Int) -> Place {
        let position = (Float(pixel) + 0.5) * Float(mapLength) / Float(length) - 0.5
        let inside = min(max(position, 0), Float(mapLength - 1))
        return (Int(inside), min(Int(inside) + 1, mapLength - 1), inside - inside.rounded(.down))
    }

    private static func value(of map: SaliencyMap, _ column: Place, _ row: Place) -> Float {
        func between(_ first: Float, _ second: Float, _ share: Float) -> Float { first + (second - first) * share }
        func inRow(_ y: Int) -> Float {
            between(map.values[y * map.width + column.before], map.values[y * map.width + column.after], column.share)
        }
        return between(inRow(row.before), inRow(row.after), row.share)
    }

    /// The colour of a value in 0…1 upon a grey, which stays to be seen, also where most happens.
    private static func color(_ value: Float, on grey: Float) -> [Float] {
        let place = min(max(value, 0), 1) * Float(ramp.count - 1)
        let index = min(Int(place), ramp.count - 2)
        return zip(ramp[index], ramp[index + 1]).map { before, after in
            let color = before + (after - before) * (place - Float(index))
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
