internal import Foundation
package import ImprintImages
internal import ImprintNetwork

/// The scores of all templates at all positions and levels of an image pyramid.
package struct TemplateScores: Sendable {
    /// The scores of one template at one level: at each position, the highest over its views.
    struct Map: Sendable {
        /// The scores, [rows, columns].
        var values: [Float]
        let rows: Int
        let columns: Int
        /// The correlation, which determines the position of each window.
        let window: Size2D
        let padding: Size2D
        /// The width and height of the level, in pixels.
        let level: SIMD2<Float>
        /// The width and height of the template in its views, in pixels.
        let size: SIMD2<Float>
    }

    /// The maps of each template, one per level.
    private var maps: [[Map]]

    init(templates: Int) { maps = Array(repeating: [], count: templates) }

    mutating func append(_ map: Map, template: Int) { maps[template].append(map) }

    /// Returns the best match of a template; its score is −1 if the image is smaller than the template at every level.
    package func best(_ template: Int) -> TemplateMatcher.Match {
        var best = TemplateMatcher.Match(score: -1, box: .all)
        for map in maps[template] {
            var position: Int?
            for (index, score) in map.values.enumerated() where score > best.score {
                (best.score, position) = (score, index)
            }
            if let position { best.box = map.box(at: position).clippedToImage }
        }
        return best
    }

    /// Returns the local maxima of a template at all levels, by descending score; their boxes can overlap, and extend beyond the image.
    package func peaks(_ template: Int) -> [TemplateMatcher.Match] {
        maps[template].flatMap { map in
            map.values.indices.filter(map.isPeak).map {
                TemplateMatcher.Match(score: map.values[$0], box: map.box(at: $0))
            }
        }.sorted { $0.score > $1.score }
    }

    /// Returns the highest score of a part near its position in a logo, at the levels that show the part at about its size in the logo.
    /// - Parameters:
    ///   - template: The template of the part.
    ///   - region: The part, relative to the logo.
    ///   - logo: The box of the logo.
    /// - Returns: −1 if the image has no such window.
    package func highest(_ template: Int, at region: NormalizedRectangle, of logo: NormalizedRectangle) -> Float {
        let box = region.mapped(from: logo)
        let center = SIMD2(box.x + box.width / 2, box.y + box.height / 2)
        let ratios = maps[template].map { map in
            let size = map.size / map.level
            return abs(log(size.x * size.y / (box.width * box.height))) / 2
        }
        guard let nearest = ratios.min() else { return -1 }
        var highest: Float = -1
        for (map, ratio) in zip(maps[template], ratios) where ratio == nearest || ratio <= Self.similarSize {
            let side = max(logo.width * map.level.x, logo.height * map.level.y)
            let reach = SIMD2<Float>(repeating: Self.partReach * side / Float(LocalFeatures.stride))
            let position = map.position(of: center)
            let (first, last) = (position - reach, position + reach)
            func range(_ first: Float, _ last: Float, _ count: Int) -> Range<Int> {
                let start = min(max(Int(first.rounded(.up)), 0), count)
                return start..<max(min(Int(last.rounded(.down)) + 1, count), start)
            }
            for row in range(first.y, last.y, map.rows) {
                for column in range(first.x, last.x, map.columns) {
                    highest = max(highest, map.values[row * map.columns + column])
                }
            }
        }
        return highest
    }

    /// The maximum distance of a part from its position in a logo, relative to the longer side of the logo.
    ///
    /// The centre of a part moves by less than a tenth if the logo is rotated by 15°; the rest is for curved surfaces and perspective.
    private static let partReach: Float = 0.15
    /// The largest ratio of similar sizes, as a logarithm.
    private static let similarSize: Float = log(1.5)
}

extension TemplateScores.Map {
    /// Returns the part of the image that a window matches; it can extend beyond the image.
    func box(at position: Int) -> NormalizedRectangle {
        func center(_ first: Int, _ padding: Int, _ window: Int) -> Float {
            (Float(first - padding) + Float(window) / 2) * Float(LocalFeatures.stride)
        }
        let x = center(position % columns, padding.width, window.width)
        let y = center(position / columns, padding.height, window.height)
        return NormalizedRectangle(
            x: (x - size.x / 2) / level.x, y: (y - size.y / 2) / level.y, width: size.x / level.x,
            height: size.y / level.y)
    }

    /// Returns the column and row of the window whose centre is at a point of the image, as real numbers.
    func position(of center: SIMD2<Float>) -> SIMD2<Float> {
        center * level / Float(LocalFeatures.stride)
            + SIMD2(Float(padding.width), Float(padding.height)) - SIMD2(Float(window.width), Float(window.height)) / 2
    }

    /// Returns whether no neighbour of a position has a higher score.
    func isPeak(_ position: Int) -> Bool {
        let (row, column) = (position / columns, position % columns)
        for (dy, dx) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            let (y, x) = (row + dy, column + dx)
            guard (0..<rows).contains(y), (0..<columns).contains(x) else { continue }
            if values[y * columns + x] > values[position] { return false }
        }
        return true
    }
}
