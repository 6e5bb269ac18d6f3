/// The signed distance to a figure, sampled on a grid and interpolated bilinearly.
///
/// It is used for parts of images, and for figures of many shapes, for which computing all distances per pixel would be slow.
struct DistanceField: Equatable {
    private let width: Int
    private let height: Int
    /// The point of the sample in the first row and column.
    private let origin: Point
    /// The distance between adjacent samples.
    private let step: Float
    private let distances: [Float]

    /// Creates the field of a union of shapes, with `side` samples along the longer side of its bounds and a margin.
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

    /// Creates the field of a mask, given row by row, whose first pixel is at `origin` and whose pixels are `step` apart.
    ///
    /// This is the exact Euclidean distance transform of Felzenszwalb and Huttenlocher ("Distance transforms of sampled
    /// functions", 2012), applied inside and outside; the outline is half-way between pixels.
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

    /// Returns the distance from `point`; outside of the grid, the distance at its border plus the distance to the border.
    @inline(__always) func distance(to point: Point) -> Float {
        let position = (point - origin) / step
        let inGrid = Point(
            min(max(position.x, 0), Float(width - 1) - 0.001), min(max(position.y, 0), Float(height - 1) - 0.001))
        let (column, row) = (Int(inGrid.x), Int(inGrid.y))
        let fraction = inGrid - Point(Float(column), Float(row))
        let first = row * width + column
        let interpolated = distances.withUnsafeBufferPointer { distances in
            let top = distances[first] + (distances[first + 1] - distances[first]) * fraction.x
            let (left, right) = (distances[first + width], distances[first + width + 1])
            return top + (left + (right - left) * fraction.x - top) * fraction.y
        }
        let outside = position - inGrid
        return outside.x == 0 && outside.y == 0 ? interpolated : interpolated + outside.length * step
    }
}

/// Returns the squared distance from every pixel to the nearest pixel of a mask, in pixels; large if the mask is empty.
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

    /// Replaces a line of samples by its lower envelope.
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
