internal import Foundation

/// A perceptual image hash of less than a kilobyte, to find near-duplicates.
///
/// It is computed from the whole image scaled to 32 x 32 pixels, so size, compression and a slightly different crop have
/// little effect:
/// - a *layout* of 16 x 16 pixels in colour, compared by Pearson's correlation, which is invariant to exposure and contrast;
/// - a *colour histogram* of 64 colours (4 levels per channel), compared by the Bhattacharyya coefficient, which hardly changes
///   as the camera moves over a scene;
/// - a *hash* of 63 bits, the signs of the lowest frequencies of the layout's discrete cosine transform (a perceptual hash). A
///   comparison takes a few instructions for each of the eight rotations and mirror images.
package struct ImageHash: Sendable, Hashable {
    /// The side of the layout, in pixels.
    static let side = 16
    private static let sampleCount = 3 * side * side

    /// The layout: row by row, channels interleaved.
    let layout: [UInt8]
    private let mean: Float
    /// 1 over the norm of the layout after subtracting its mean; 0 for a uniform image.
    private let scale: Float
    /// The square roots of the colour histogram.
    private let colors: [Float]
    /// Bit 8v + u is set if the coefficient with u half-waves across and v down is positive; the mean is omitted.
    let hash: UInt64
    /// The hash of the image with rows and columns swapped.
    let transposedHash: UInt64

    /// Creates the hash of an upright image; transparency is flattened on white.
    package init(_ image: RasterImage) {
        let small = CropAndScale.scaleFill.apply(image.flattenedOnWhite(), width: 2 * Self.side, height: 2 * Self.side)
        var (sums, shares) = ([Int](repeating: 0, count: Self.sampleCount), [Float](repeating: 0, count: 64))
        for pixel in 0..<(small.width * small.height) {
            let cell = (pixel / small.width / 2 * Self.side + pixel % small.width / 2) * 3
            var color = 0
            for channel in 0..<3 {
                let sample = Int(small.samples[pixel * small.channels + min(channel, small.channels - 1)])
                sums[cell + channel] += sample
                color = color << 2 | sample >> 6
            }
            shares[color] += 1 / Float(small.width * small.height)
        }
        layout = sums.map { UInt8(($0 + 2) / 4) }
        colors = shares.map { $0.squareRoot() }
        mean = Float(layout.reduce(0) { $0 + Int($1) }) / Float(Self.sampleCount)
        let (average, count) = (mean, Float(Self.sampleCount))
        let variance = layout.reduce(Float(0)) { $0 + (Float($1) - average) * (Float($1) - average) } / count
        // A uniform image contains only noise, whose correlation is meaningless.
        let minimumVariance: Float = 2 * 2
        scale = variance < minimumVariance ? 0 : 1 / (variance * count).squareRoot()
        (hash, transposedHash) = Self.hashes(of: layout)
    }

    /// Whether the image is so uniform that its layout cannot be compared.
    var isEven: Bool { scale == 0 }

    /// Returns 1 minus the correlation of the layouts, 0 (equal) to 2, with the other image in one of its eight `turns`.
    func layoutDistance(to other: ImageHash, turn: Int = 0) -> Float {
        let sum = layout.withUnsafeBufferPointer { here in
            other.layout.withUnsafeBufferPointer { there -> Int32 in
                guard turn != 0 else {
                    return (0..<Self.sampleCount).reduce(Int32(0)) { $0 &+ Int32(here[$1]) &* Int32(there[$1]) }
                }
                var sum: Int32 = 0
                for pixel in 0..<(Self.side * Self.side) {
                    let turned = Self.sourceIndex(of: pixel, turn: turn)
                    for channel in 0..<3 {
                        sum &+= Int32(here[3 * pixel + channel]) &* Int32(there[3 * turned + channel])
                    }
                }
                return sum
            }
        }
        return 1 - (Float(sum) - Float(Self.sampleCount) * mean * other.mean) * scale * other.scale
    }

    /// Returns the difference in appearance of two images, 0 (equal) to about 1; colours have twice the weight of the layout.
    func appearanceDistance(to other: ImageHash) -> Float {
        let likeness = zip(colors, other.colors).reduce(0) { $0 + $1.0 * $1.1 }
        return (2 * (1 - likeness) + layoutDistance(to: other)) / 3
    }
}

extension ImageHash {
    /// The eight combinations of rotation and mirroring.
    ///
    /// Bit 0 mirrors left and right, bit 1 mirrors top and bottom, and bit 2 then swaps rows and columns.
    static let turns = 0..<8

    /// The hash of the image in each of its turns.
    var turnedHashes: [UInt64] {
        // Mirroring changes the sign of the waves that are odd along its axis.
        let (oddAcross, oddDown): (UInt64, UInt64) = (0xAAAA_AAAA_AAAA_AAAA, 0xFF00_FF00_FF00_FF00)
        return Self.turns.map { turn in
            let swaps = turn & 4 != 0
            let mask = (turn & 1 != 0 ? oddAcross : 0) ^ (turn & 2 != 0 ? oddDown : 0)
            // Rows and columns are swapped last, so the axes of the masks are swapped too.
            let transposedMask = (turn & 1 != 0 ? oddDown : 0) ^ (turn & 2 != 0 ? oddAcross : 0)
            return swaps ? transposedHash ^ transposedMask : hash ^ mask
        }
    }

    /// Returns the index of the pixel that a turn moves to the index `pixel`.
    private static func sourceIndex(of pixel: Int, turn: Int) -> Int {
        var (x, y) = (pixel % side, pixel / side)
        if turn & 4 != 0 { (x, y) = (y, x) }
        if turn & 1 != 0 { x = side - 1 - x }
        if turn & 2 != 0 { y = side - 1 - y }
        return y * side + x
    }

    /// Returns the hash of a layout and the hash of its transpose.
    private static func hashes(of layout: [UInt8]) -> (UInt64, UInt64) {
        // An approximate luma is sufficient, and integers give the same result on every processor.
        let grey = stride(from: 0, to: layout.count, by: 3).map { pixel -> Int in
            let (red, green, blue) = (Int(layout[pixel]), Int(layout[pixel + 1]), Int(layout[pixel + 2]))
            return red + 2 * green + blue
        }
        func product(_ values: [Int], wave: Int) -> Int {
            zip(values, cosines[wave]).reduce(0) { $0 + $1.0 * $1.1 }
        }
        let rows = (0..<side).map { y in
            let row = Array(grey[(y * side)..<((y + 1) * side)])
            return (0..<8).map { product(row, wave: $0) }
        }
        var (hash, transposed): (UInt64, UInt64) = (0, 0)
        for u in 0..<8 {
            let column = rows.map { $0[u] }
            for v in 0..<8 where u + v > 0 && product(column, wave: v) > 0 {
                hash |= 1 << UInt64(8 * v + u)
                transposed |= 1 << UInt64(8 * u + v)
            }
        }
        return (hash, transposed)
    }

    /// 1024 times the cosine with `wave` half-waves, at each position.
    private static let cosines: [[Int]] = (0..<8).map { wave in
        (0..<side).map { position in
            let angle: Double = .pi * (Double(position) + 0.5) * Double(wave) / Double(side)
            return Int((1024 * cos(angle)).rounded())
        }
    }
}
