package import ImprintCore
public import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// How much each part of an image matters for a label: how far hiding it takes the label's confidence down.
public struct SaliencyMap: Sendable, Hashable {
    /// The number of columns, that of the network's input.
    public let width: Int
    /// The number of rows, that of the network's input.
    public let height: Int
    /// The drop of the confidence at each pixel, row by row: `height * width` numbers in 0…1; 0 also where hiding the
    /// pixel takes the confidence up.
    public let values: [Float]
    /// The label.
    public let label: String
    /// The confidence in the label while nothing is hidden, 0…1.
    public let confidence: Float
    /// The drop while the square that matters most is hidden, 0…1; no value is above it.
    public let greatest: Float
}

extension ImageClassifier {
    /// Finds what in an image speaks for a label, by occlusion.
    ///
    /// A grey square (of the preprocessing's mean, a fifth of the shorter side of the network's input) slides over the
    /// prepared image in steps of half its side; the drop of the label's confidence counts at the square's middle, and
    /// between the middles the map is interpolated linearly. Source: Zeiler and Fergus, "Visualizing and understanding
    /// convolutional networks", 2014, section 4.2. It takes 81 predictions for a square input.
    /// - Parameters:
    ///   - image: Upright, sRGB.
    ///   - label: One of `labels`; the one with the highest confidence if nil.
    /// - Throws: `ImprintError.noConfidence` if the model cannot be used, `ImprintError.noSaliency` for a logo detector,
    ///   `NetworkError` where memory is short.
    public func saliency(of image: RasterImage, for label: String? = nil) throws -> SaliencyMap {
        guard weights.head.seesWholeImage else { throw ImprintError.noSaliency(network: weights.network.name) }
        let place = label.map { label in
            guard let place = labels.firstIndex(of: label) else {
                preconditionFailure("\(label.debugDescription) is none of the labels \(labels)")
            }
            return place
        }
        return try Occlusion(weights, workers: workers).map(of: weights.preprocessing.prepare(image), label: place)
    }
}

/// Makes the maps of several images with one plan.
package struct Occlusion {
    private let weights: ModelFile
    private let plan: ExecutionPlan
    /// The hidden squares along each direction.
    private let columns: [Range<Int>]
    private let rows: [Range<Int>]

    package init(_ weights: ModelFile, workers: Workers) throws(NetworkError) {
        self.weights = weights
        let input = weights.preprocessing
        let side = max(min(input.width, input.height) / 5, 1)
        columns = Self.squares(side, along: input.width)
        rows = Self.squares(side, along: input.height)
        // A row of squares at a time: enough to share among threads, and little memory.
        plan = try ExecutionPlan(
            weights.network, parameters: weights.parameters,
            options: ExecutionPlan.Options(batchSize: columns.count, workers: workers).limitingThreads(
                for: weights.network))
    }

    /// Ranges of `side` from the first to the last pixel, half overlapping, evenly spread.
    private static func squares(_ side: Int, along length: Int) -> [Range<Int>] {
        let steps = max((2 * (length - side) + side - 1) / side, 1)
        return (0...steps).map { step in
            let start = (length - side) * step / steps
            return start..<(start + side)
        }
    }

    /// The map of a prepared image for the label at a place, or for the best one.
    package func map(of image: RasterImage, label: Int?) throws(ImprintError) -> SaliencyMap {
        let input = weights.preprocessing
        let count = input.width * input.height * input.channels
        input.normalize(image, into: plan.input)
        let pixels = Array(plan.input[..<count])
        let whole = try confidences(of: 1)[0]
        let label = label ?? whole.indices.max { whole[$0] < whole[$1] } ?? 0
        var drops: [[Float]] = []
        for row in rows {
            for (place, column) in columns.enumerated() {
                let target = UnsafeMutableBufferPointer(rebasing: plan.input[(place * count)..<((place + 1) * count)])
                _ = target.update(from: pixels)
                for y in row {
                    let start = (y * input.width + column.lowerBound) * input.channels
                    // The mean, once it is normalized.
                    target[start..<(start + column.count * input.channels)].update(repeating: 0)
                }
            }
            drops.append(try confidences(of: columns.count).map { min(max(whole[label] - $0[label], 0), 1) })
        }
        return SaliencyMap(
            width: input.width, height: input.height, values: interpolated(drops), label: weights.labels[label],
            confidence: whole[label], greatest: drops.joined().max() ?? 0)
    }

    /// The confidences in all labels for the first `count` images of the plan's input.
    private func confidences(of count: Int) throws(ImprintError) -> [[Float]] {
        plan.forward(count: count)
        let labels = weights.labels.count
        guard plan.output[..<(count * labels)].allSatisfy(\.isFinite) else {
            throw .noConfidence(network: weights.network.name)
        }
        return (0..<count).map { Array(plan.output[($0 * labels)..<(($0 + 1) * labels)]) }
    }

    /// The drops at the squares' middles, spread over all pixels; beyond the outermost middles they stay the same.
    private func interpolated(_ drops: [[Float]]) -> [Float] {
        let input = weights.preprocessing
        let across = (0..<input.width).map { Self.place(of: $0, among: columns) }
        return (0..<input.height).flatMap { y -> [Float] in
            let (row, down) = Self.place(of: y, among: rows)
            return across.map { column, right in
                let upper = drops[row][column] * (1 - right) + drops[row][column + 1] * right
                let lower = drops[row + 1][column] * (1 - right) + drops[row + 1][column + 1] * right
                return upper * (1 - down) + lower * down
            }
        }
    }

    /// The square whose middle is the last before a pixel, and how far the pixel is on the way to the next one's, 0…1.
    private static func place(of pixel: Int, among squares: [Range<Int>]) -> (square: Int, share: Float) {
        func middle(_ square: Range<Int>) -> Float { Float(square.lowerBound + square.upperBound - 1) / 2 }
        let before = (squares.lastIndex { middle($0) <= Float(pixel) }) ?? 0
        let square = min(before, squares.count - 2)
        let (start, end) = (middle(squares[square]), middle(squares[square + 1]))
        return (square, end > start ? min(max((Float(pixel) - start) / (end - start), 0), 1) : 0)
    }
}
