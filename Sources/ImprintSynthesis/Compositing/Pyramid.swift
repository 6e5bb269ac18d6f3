/// A picture with alpha at halving sizes, colours premultiplied, to be drawn at any scale without false patterns.
struct Pyramid: Equatable {
    private struct Level: Equatable {
        let width: Int
        let height: Int
        let texels: [SIMD4<UInt8>]
    }

    private let levels: [Level]
    /// Where the upper left corner of the levels lies, in units of the artwork.
    private let origin: Point
    /// The side of a texel of the first level.
    private let texelSide: Float

    /// How often the size is halved: from 256 to 8.
    private static let halvings = 5

    /// Makes the levels of a picture of `width` columns whose upper left corner lies at `origin`.
    init(_ texels: [SIMD4<UInt8>], width: Int, origin: Point, texelSide: Float) {
        let height = texels.count / width
        // Around every level there is at least one transparent texel, so that edges fade out.
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

    /// Calls `body` with the level to draw at, where neighbouring samples are `spacing` apart.
    @inline(__always) func withSampler<Result>(spacing: Float, _ body: (Sampler) -> Result) -> Result {
        var index = 0
        var side = texelSide
        // Texels of 0.7 to 1.4 spacings: sharp, and hardly any is skipped.
        while index + 1 < levels.count && side * 1.4 < spacing {
            index += 1
            side *= 2
        }
        let level = levels[index]
        return level.texels.withUnsafeBufferPointer {
            body(Sampler(texels: $0, width: level.width, height: level.height, origin: origin, scale: 1 / side))
        }
    }

    /// Reads one level between its texels.
    struct Sampler {
        fileprivate let texels: UnsafeBufferPointer<SIMD4<UInt8>>
        fileprivate let width: Int
        fileprivate let height: Int
        fileprivate let origin: Point
        fileprivate let scale: Float

        /// The premultiplied colour and the alpha at a point of the artwork, each 0…255.
        @inline(__always) func value(at point: Point) -> SIMD4<Float> {
            let place = (point - origin) * scale - 0.5
            guard place.x > 0, place.y > 0, place.x < Float(width - 1), place.y < Float(height - 1) else {
                return .zero
            }
            let (column, row) = (Int(place.x), Int(place.y))
            let share = place - Point(Float(column), Float(row))
            let first = row * width + column
            let top = blend(texel(first), texel(first + 1), share.x)
            return blend(top, blend(texel(first + width), texel(first + width + 1), share.x), share.y)
        }

        @inline(__always) private func texel(_ index: Int) -> SIMD4<Float> { SIMD4<Float>(texels[index]) }

        @inline(__always) private func blend(_ a: SIMD4<Float>, _ b: SIMD4<Float>, _ share: Float) -> SIMD4<Float> {
            a + (b - a) * share
        }
    }
}
