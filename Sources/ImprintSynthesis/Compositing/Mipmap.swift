/// A mipmap of a part of the artwork: an RGBA image (premultiplied) and its halved copies, to draw it at any scale without aliasing.
struct Mipmap: Equatable {
    private struct Level: Equatable {
        let width: Int
        let height: Int
        let texels: [SIMD4<UInt8>]
    }

    private let levels: [Level]
    /// The upper left corner of all levels, in units of the artwork.
    private let origin: Point
    /// The side of a texel of the first level, in units of the artwork.
    private let texelSide: Float

    /// The number of levels below the first; five halvings reduce 256 texels to 8.
    private static let halvings = 5

    /// Creates the mipmap of an image of `width` columns whose upper left corner lies at `origin`.
    init(_ texels: [SIMD4<UInt8>], width: Int, origin: Point, texelSide: Float) {
        let height = texels.count / width
        // Every level has a border of at least one transparent texel, so that edges fade out.
        let margin = 1 << Self.halvings
        func padded(_ length: Int) -> Int { (length + 3 * margin - 1) / margin * margin }
        var base = [SIMD4<UInt8>](repeating: .zero, count: padded(width) * padded(height))
        for row in 0..<height {
            let start = (row + margin) * padded(width) + margin
            base.replaceSubrange(start..<(start + width), with: texels[(row * width)..<((row + 1) * width)])
        }
        var levels = [Level(width: padded(width), height: padded(height), texels: base)]
        for _ in 0..<Self.halvings { levels.append(Self.halved(levels[levels.count - 1])) }
        self.levels = levels
        self.origin = origin - Float(margin) * texelSide
        self.texelSide = texelSide
    }

    private static func halved(_ level: Level) -> Level {
        let (width, height) = (level.width / 2, level.height / 2)
        var texels: [SIMD4<UInt8>] = []
        texels.reserveCapacity(width * height)
        level.texels.withUnsafeBufferPointer { source in
            for row in 0..<height {
                for column in 0..<width {
                    let first = 2 * row * level.width + 2 * column
                    var sum = SIMD4<UInt16>(truncatingIfNeeded: source[first])
                    sum &+= SIMD4<UInt16>(truncatingIfNeeded: source[first + 1])
                    sum &+= SIMD4<UInt16>(truncatingIfNeeded: source[first + level.width])
                    sum &+= SIMD4<UInt16>(truncatingIfNeeded: source[first + level.width + 1])
                    texels.append(SIMD4<UInt8>(truncatingIfNeeded: (sum &+ 2) &>> 2))
                }
            }
        }
        return Level(width: width, height: height, texels: texels)
    }

    /// Calls `body` with a sampler of the level that fits samples at a distance of `spacing`.
    @inline(__always) func withSampler<Result>(spacing: Float, _ body: (Sampler) -> Result) -> Result {
        var index = 0
        var side = texelSide
        // Texels of 0.7 to 1.4 spacings are sharp, and few of them are skipped.
        while index + 1 < levels.count && side * 1.4 < spacing {
            index += 1
            side *= 2
        }
        let level = levels[index]
        return level.texels.withUnsafeBufferPointer {
            body(Sampler(texels: $0, width: level.width, height: level.height, origin: origin, scale: 1 / side))
        }
    }

    /// Samples one level with bilinear interpolation.
    struct Sampler {
        fileprivate let texels: UnsafeBufferPointer<SIMD4<UInt8>>
        fileprivate let width: Int
        fileprivate let height: Int
        fileprivate let origin: Point
        fileprivate let scale: Float

        /// Returns the premultiplied colour and the alpha at a point of the artwork, each 0…255.
        @inline(__always) func value(at point: Point) -> SIMD4<Float> {
            let position = (point - origin) * scale - 0.5
            guard position.x > 0, position.y > 0, position.x < Float(width - 1), position.y < Float(height - 1) else {
                return .zero
            }
            let (column, row) = (Int(position.x), Int(position.y))
            let fraction = position - Point(Float(column), Float(row))
            let first = row * width + column
            let top = blend(texel(first), texel(first + 1), fraction.x)
            return blend(top, blend(texel(first + width), texel(first + width + 1), fraction.x), fraction.y)
        }

        @inline(__always) private func texel(_ index: Int) -> SIMD4<Float> { SIMD4<Float>(texels[index]) }

        @inline(__always) private func blend(_ a: SIMD4<Float>, _ b: SIMD4<Float>, _ fraction: Float) -> SIMD4<Float> {
            a + (b - a) * fraction
        }
    }
}
