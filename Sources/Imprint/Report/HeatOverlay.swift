internal import ImprintImages

/// A saliency map laid upon its image.
///
/// The image turns grey, and what matters glows from violet through orange to yellow: a ramp that only gets lighter, so that it
/// is read without telling colours apart (anchors of inferno, by Smith and van der Walt).
enum HeatOverlay {
    /// From where nothing happens to the greatest drop.
    private static let ramp: [[Float]] = [
        [34, 12, 74], [106, 23, 110], [188, 55, 84], [249, 142, 9], [252, 230, 120],
    ]
    /// A drop of the confidence that is shown at full strength even where it is the greatest; else noise would glow.
    private static let leastGreatest: Float = 0.05

    /// The ramp, for a legend.
    static var gradient: String {
        let colors = ramp.map { "rgb(\($0.map { compact(Double($0)) }.joined(separator: " ")))" }
        return "linear-gradient(to right, \(colors.joined(separator: ", ")))"
    }

    /// The image with the map upon it.
    static func draw(_ map: SaliencyMap, on image: Image) -> Image {
        let greatest = max(map.greatest, leastGreatest)
        var result = Image(width: image.width, height: image.height)
        for y in 0..<image.height {
            for x in 0..<image.width {
                let value =
                    map.values[(y * map.height / image.height) * map.width + x * map.width / image.width] / greatest
                let grey = grey(image, at: y * image.width + x)
                // The picture stays to be seen, also where most happens.
                let strength = 0.12 + 0.58 * value
                for (channel, color) in color(value).enumerated() {
                    let sample = grey * (1 - strength) + color * strength
                    result.samples[(y * image.width + x) * 3 + channel] = UInt8(min(max(sample, 0), 255))
                }
            }
        }
        return result
    }

    /// The colour of a value in 0…1.
    private static func color(_ value: Float) -> [Float] {
        let place = min(max(value, 0), 1) * Float(ramp.count - 1)
        let index = min(Int(place), ramp.count - 2)
        return zip(ramp[index], ramp[index + 1]).map { $0 + ($1 - $0) * (place - Float(index)) }
    }

    private static func grey(_ image: Image, at pixel: Int) -> Float {
        let start = pixel * image.channels
        guard image.channels >= 3 else { return Float(image.samples[start]) }
        let (red, green, blue) = (image.samples[start], image.samples[start + 1], image.samples[start + 2])
        return 0.299 * Float(red) + 0.587 * Float(green) + 0.114 * Float(blue)
    }
}
