internal import Foundation

extension Image {
    /// The image blurred by a Gaussian of the given standard deviation in pixels, cut off at three deviations; borders
    /// are continued.
    func blurred(deviation: Float) -> Image {
        guard deviation > 0 else { return self }
        let radius = max(1, Int((3 * deviation).rounded(.up)))
        var weights = (-radius...radius).map { expf(-Float($0 * $0) / (2 * deviation * deviation)) }
        let sum = weights.reduce(0, +)
        for i in weights.indices { weights[i] /= sum }

        let rowLength = width * channels
        // Behind each buffer there is room for what the last vector of a row overshoots.
        var rows = [Float](repeating: 0, count: samples.count + Vector.scalarCount)
        var padded = [Float](repeating: 0, count: (width + 2 * radius) * channels + Vector.scalarCount)
        rows.withUnsafeMutableBufferPointer { rows in
            for y in 0..<height {
                pad(y, by: radius, into: &padded)
                padded.withUnsafeBufferPointer { padded in
                    weightedSum(weights, of: padded, at: { $0 * channels }, count: rowLength) { place, sum in
                        rows.store(sum, at: y * rowLength + place)
                    }
                }
            }
        }
        var result = self
        var column = [Float](repeating: 0, count: rowLength + Vector.scalarCount)
        for y in 0..<height {
            rows.withUnsafeBufferPointer { rows in
                column.withUnsafeMutableBufferPointer { column in
                    weightedSum(
                        weights, of: rows, at: { min(max(y + $0 - radius, 0), height - 1) * rowLength },
                        count: rowLength
                    ) { place, sum in
                        column.store(sum, at: place)
                    }
                }
            }
            for i in 0..<rowLength { result.samples[y * rowLength + i] = UInt8(min(column[i] + 0.5, 255)) }
        }
        return result
    }

    /// Writes row `y`, its borders continued, so that a sum over neighbours needs no bounds.
    private func pad(_ y: Int, by radius: Int, into padded: inout [Float]) {
        for x in -radius..<(width + radius) {
            let from = (y * width + min(max(x, 0), width - 1)) * channels
            for channel in 0..<channels { padded[(x + radius) * channels + channel] = Float(samples[from + channel]) }
        }
    }
}

private typealias Vector = SIMD8<Float>

/// Gives Σ weights[tap] · source[start(tap) + place] for each place below `count`, a vector of them at a time.
private func weightedSum(
    _ weights: [Float], of source: UnsafeBufferPointer<Float>, at start: (_ tap: Int) -> Int, count: Int,
    _ body: (_ place: Int, _ sum: Vector) -> Void
) {
    let starts = weights.indices.map(start)
    for place in stride(from: 0, to: count, by: Vector.scalarCount) {
        var sum = Vector.zero
        for (tap, weight) in weights.enumerated() { sum += weight * source.vector(at: starts[tap] + place) }
        body(place, sum)
    }
}

extension UnsafeBufferPointer<Float> {
    fileprivate func vector(at place: Int) -> Vector {
        UnsafeRawBufferPointer(self).loadUnaligned(fromByteOffset: place * MemoryLayout<Float>.stride, as: Vector.self)
    }
}

extension UnsafeMutableBufferPointer<Float> {
    fileprivate func store(_ vector: Vector, at place: Int) {
        UnsafeMutableRawBufferPointer(self)
            .storeBytes(of: vector, toByteOffset: place * MemoryLayout<Float>.stride, as: Vector.self)
    }
}
