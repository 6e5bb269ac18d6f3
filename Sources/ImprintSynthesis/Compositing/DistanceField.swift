/// The signed distance to a figure, sampled on a grid and interpolated between: for figures that are pictures, and for
/// those of so many shapes that asking each of them at every pixel would take too long.
struct DistanceField: Equatable {
    private let width: Int
    private let height: Int
    /// Where the sample of the first row and column lies.
    private let origin: Point
    /// The distance of two samples.
    private let step: Float
    private let distances: [Float]

    /// Samples the distance to `shapes` on `side` rows and columns around their bounds.
    init(_ shapes: [DrawnShape], side: Int = 56) {
        var low = Point(repeating: .infinity)
        var high = -low
        for (center, radius) in shapes.map(\.bounds) {
            low = Point(min(low.x, center.x - radius), min(low.y, center.y - radius))
            high = Point(max(high.x, center.x + radius), max(high.y, center.y + radius))
        }
        let margin = 0.1 * (high - low).max()
        let step = ((high - low).max() + 2 * margin) / Float(side - 1)
        let first = low - margin
        width = Int(((high.x - low.x + 2 * margin) / step).rounded(.up)) + 1
        height = Int(((high.y - low.y + 2 * margin) / step).rounded(.up)) + 1
        self.step = step
        origin = first
        var distances: [Float] = []
        distances.reserveCapacity(width * height)
        for row in 0..<height {
            for column in 0..<width {
                let point = first + Point(Float(column), Float(row)) * step
                distances.append(ImprintSynthesis.distance(from: point, to: shapes))
            }
        }
        self.distances = distances
    }

    /// Measures the distance to the pixels of a mask, by row, whose first pixel lies at `origin` and which are `step` apart.
    ///
    /// The exact Euclidean distance transform of Felzenszwalb and Huttenlocher ("Distance transforms of sampled functions",
    /// 2012), inside and outside; the outline lies half-way between pixels.
    init(mask: [Bool], width: Int, origin: Point, step: Float) {
        self.width = width
        height = mask.count / width
        self.origin = origin
        self.step = step
        let outside = squaredDistances(to: mask, width: width)
        let inside = squaredDistances(to: mask.map { !$0 }, width: width)
        distances = zip(outside, inside).map { outside, inside in
            outside > 0 ? (outside.squareRoot() - 0.5) * step : (0.5 - inside.squareRoot()) * step
        }
    }

    /// The distance from `point`; outside of the grid, that at its border plus the way there.
    @inline(__always) func distance(to point: Point) -> Float {
        let place = (point - origin) / step
        let inGrid = Point(
            min(max(place.x, 0), Float(width - 1) - 0.001), min(max(place.y, 0), Float(height - 1) - 0.001))
        let (column, row) = (Int(inGrid.x), Int(inGrid.y))
        let share = inGrid - Point(Float(column), Float(row))
        let first = row * width + column
        let between = distances.withUnsafeBufferPointer { distances in
            let top = distances[first] + (distances[first + 1] - distances[first]) * share.x
            let (left, right) = (distances[first + width], distances[first + width + 1])
            return top + (left + (right - left) * share.x - top) * share.y
        }
        let away = place - inGrid
        return away.x == 0 && away.y == 0 ? between : between + away.length * step
    }
}

/// The squared distance of every pixel to the nearest one of a mask, in pixels; large if there is none.
private func squaredDistances(to mask: [Bool], width: Int) -> [Float] {
    let height = mask.count / width
    var squares = mask.map { $0 ? 0 : Float(1e9) }
    var line = LowerEnvelope(count: max(width, height))
    for column in 0..<width { line.pass(over: &squares, from: column, by: width, count: height) }
    for row in 0..<height { line.pass(over: &squares, from: row * width, by: 1, count: width) }
    return squares
}

/// The lower envelope of the parabolas (x − i)² + f(i) along a line of samples f.
private struct LowerEnvelope {
    private var values: [Float]
    private var feet: [Int]
    private var starts: [Float]

    init(count: Int) {
        values = Array(repeating: 0, count: count)
        feet = Array(repeating: 0, count: count)
        starts = Array(repeating: 0, count: count + 1)
    }

    /// Replaces f by its envelope.
    mutating func pass(over samples: inout [Float], from first: Int, by stride: Int, count: Int) {
        for index in 0..<count { values[index] = samples[first + index * stride] }
        var last = 0
        feet[0] = 0
        starts[0] = -.infinity
        starts[1] = .infinity
        for index in 1..<max(count, 1) {
            var start: Float
            repeat {
                let foot = feet[last]
                start =
                    ((values[index] + Float(index * index)) - (values[foot] + Float(foot * foot)))
                    / Float(2 * (index - foot))
                last -= 1
            } while start <= starts[last + 1] && last >= 0
            last += 2
            feet[last] = index
            starts[last] = start
            starts[last + 1] = .infinity
        }
        var current = 0
        for index in 0..<count {
            while starts[current + 1] < Float(index) { current += 1 }
            let away = Float(index - feet[current])
            samples[first + index * stride] = away * away + values[feet[current]]
        }
    }
}
