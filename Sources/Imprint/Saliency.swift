package import ImprintCore
public import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// A map of the contribution of each part of an image to the confidence in a label.
///
/// A value is the drop in confidence if that part of the image is hidden.
public struct SaliencyMap: Sendable, Hashable {
    /// The number of columns: the width of the network's input.
    public let width: Int
    /// The number of rows: the height of the network's input.
    public let height: Int
    /// The drop in confidence at each pixel, 0…1, as `height * width` values row by row.
    ///
    /// The value is 0 if hiding the pixel raises the confidence.
    public let values: [Float]
    /// The label.
    public let label: String
    /// The confidence in the label if nothing is hidden, 0…1.
    public let confidence: Float
    /// The largest drop over all positions of the hidden square, 0…1; no element of `values` is larger.
    public let maximum: Float
}

extension ImageClassifier {
    /// Computes a saliency map by occlusion.
    ///
    /// A grey square of one fifth of the network's shorter input side slides over the preprocessed image in steps of at most half its side,
    /// rounded to pixels. The map assigns the drop in confidence to the centre of the square, and interpolates linearly between the centres
    /// (Zeiler and Fergus, "Visualizing and understanding convolutional networks", 2014, section 4.2). It takes one prediction for each
    /// position of the square and one for the whole image. For a square input, that is 82 predictions if its side is a multiple of 5
    /// pixels, and usually 101 otherwise, for example with 224 pixels. The map explains the model without the personalization and without
    /// test-time augmentation.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - label: One of `model.labels`; nil for the label with the highest confidence.
    /// - Returns: The map, at the size of the network's input.
    /// - Throws: `ImprintError.nonFiniteOutput` if an output of the network is not finite, `ImprintError.noSaliency` for a logo detector,
    ///   `ImprintError.unknownLabel` for another label, `NetworkError` if there is not enough memory.
    public func saliency(of image: RasterImage, for label: String? = nil) throws -> SaliencyMap {
        guard model.head.seesWholeImage else { throw ImprintError.noSaliency(network: model.network.name) }
        let labelIndex = try label.map { label in
            guard let index = model.labels.firstIndex(of: label) else {
                throw ImprintError.unknownLabel(label, known: model.labels)
            }
            return index
        }
        return try Occlusion(model, workers: workers).map(of: model.preprocessing.prepare(image), label: labelIndex)
    }
}

/// Computes saliency maps by occlusion, with one execution plan for several images.
package struct Occlusion {
    private let model: ModelFile
    private let plan: ExecutionPlan
    /// The columns of each square.
    private let columns: [Range<Int>]
    /// The rows of each square.
    private let rows: [Range<Int>]

    package init(_ model: ModelFile, workers: Workers) throws(NetworkError) {
        self.model = model
        let input = model.preprocessing
        let side = max(min(input.width, input.height) / 5, 1)
        columns = Self.squares(side, along: input.width)
        rows = Self.squares(side, along: input.height)
        // A batch of one row of squares keeps all threads busy and takes little memory.
        plan = try ExecutionPlan(
            model.network, parameters: model.parameters,
            options: ExecutionPlan.Options(batchSize: columns.count, workers: workers).limitingThreads(
                for: model.network))
    }

    /// Returns evenly spaced ranges of `side` pixels from the first to the last pixel, in steps of at most half of `side`, rounded to pixels.
    static func squares(_ side: Int, along length: Int) -> [Range<Int>] {
        let steps = max((2 * (length - side) + side - 1) / side, 1)
        return (0...steps).map { step in
            let start = (length - side) * step / steps
            return start..<(start + side)
        }
    }

    /// Computes the map of a preprocessed image.
    /// - Parameter label: The index of the label; nil for the label with the highest confidence.
    package func map(of image: RasterImage, label: Int?) throws(ImprintError) -> SaliencyMap {
        let input = model.preprocessing
        let count = input.width * input.height * input.channels
        input.normalize(image, into: plan.input)
        let pixels = Array(plan.input[..<count])
        let whole = try confidences(of: 1)[0]
        let label = label ?? whole.indices.max { whole[$0] < whole[$1] } ?? 0
        var drops: [[Float]] = []
        for row in rows {
            for (element, column) in columns.enumerated() {
                let target = UnsafeMutableBufferPointer(
                    rebasing: plan.input[(element * count)..<((element + 1) * count)])
                _ = target.update(from: pixels)
                for y in row {
                    let start = (y * input.width + column.lowerBound) * input.channels
                    // A normalized value of 0 is the mean of the preprocessing.
                    target[start..<(start + column.count * input.channels)].update(repeating: 0)
                }
            }
            drops.append(try confidences(of: columns.count).map { min(max(whole[label] - $0[label], 0), 1) })
        }
        return SaliencyMap(
            width: input.width, height: input.height, values: interpolated(drops), label: model.labels[label],
            confidence: whole[label], maximum: drops.joined().max() ?? 0)
    }

    /// Computes the confidences in all labels for the first `count` images of the plan's input.
    private func confidences(of count: Int) throws(ImprintError) -> [[Float]] {
        plan.forward(count: count)
        let labels = model.labels.count
        guard plan.output[..<(count * labels)].allSatisfy(\.isFinite) else {
            throw .nonFiniteOutput(network: model.network.name)
        }
        return (0..<count).map { Array(plan.output[($0 * labels)..<(($0 + 1) * labels)]) }
    }

    /// Interpolates the drops at the centres of the squares bilinearly; pixels beyond the outermost centres take the nearest value.
    private func interpolated(_ drops: [[Float]]) -> [Float] {
        let input = model.preprocessing
        let across = (0..<input.width).map { Self.interpolation(of: $0, among: columns) }
        return (0..<input.height).flatMap { y -> [Float] in
            let (row, down) = Self.interpolation(of: y, among: rows)
            return across.map { column, right in
                let upper = drops[row][column] * (1 - right) + drops[row][column + 1] * right
                let lower = drops[row + 1][column] * (1 - right) + drops[row + 1][column + 1] * right
                return upper * (1 - down) + lower * down
            }
        }
    }

    /// Returns the last square whose centre is not after a pixel, and the fraction of the way from there to the next centre, 0…1.
    private static func interpolation(of pixel: Int, among squares: [Range<Int>]) -> (square: Int, fraction: Float) {
        func center(_ square: Range<Int>) -> Float { Float(square.lowerBound + square.upperBound - 1) / 2 }
        let before = (squares.lastIndex { center($0) <= Float(pixel) }) ?? 0
        let square = min(before, squares.count - 2)
        let (start, end) = (center(squares[square]), center(squares[square + 1]))
        return (square, end > start ? min(max((Float(pixel) - start) / (end - start), 0), 1) : 0)
    }
}
