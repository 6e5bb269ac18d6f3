internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A predictor for anchor-based detectors, with a thread-safe pool of networks.
final class AnchorPool: HeadPredictor {
    /// The maximum number of objects of one label in an image.
    private static let maximumCount = 1000
    /// The maximum number of anchors of one label that become boxes; the limit bounds the time of non-maximum suppression.
    private static let maximumCandidateCount = 5000
    /// Anchors below this confidence are never objects.
    private static let minimumConfidence: Float = 0.01
    /// The minimum confidence at which the box of an anchor counts in averages.
    private static let averagedConfidence: Float = 0.5

    private let model: ModelFile
    private let head: AnchorHead
    private let anchors: [(x: Float, y: Float)]
    private let threads: Int
    private let precision: Precision
    private let networks = IdlePool<AnySizeNetwork>()

    init(_ model: ModelFile, _ head: AnchorHead, threads: Int, precision: Precision) {
        self.model = model
        self.head = head
        self.threads = threads
        self.precision = precision
        anchors = head.anchors(for: model.network.input)
    }

    var shortSideToDecode: Int { max(model.network.input.width, model.network.input.height) }

    func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        let upright = image.upright.flattenedOnWhite().converted(toChannels: 3)
        let input = model.network.input
        let scaled = CropAndScale.scaleFit.apply(upright, width: input.width, height: input.height)
        return try networks.withValue { () throws(ImprintError) in
            AnySizeNetwork(
                model.network, parameters: model.parameters, preprocessing: model.preprocessing, plans: 1,
                threads: threads, precision: precision)
        } _: { network throws(ImprintError) in
            try prediction(network.run(scaled).values, Letterbox(upright, in: input))
        }
    }

    /// The part of the network's input that shows the image, in pixels, as `CropAndScale.scaleFit` chooses it.
    private struct Letterbox {
        let left: Float
        let top: Float
        let width: Float
        let height: Float

        init(_ image: RasterImage, in input: TensorShape) {
            let scale = min(Double(input.width) / Double(image.width), Double(input.height) / Double(image.height))
            func fitted(_ length: Int, _ limit: Int) -> Int {
                min(max(Int((Double(length) * scale).rounded()), 1), limit)
            }
            let (columns, rows) = (fitted(image.width, input.width), fitted(image.height, input.height))
            (left, top) = (Float((input.width - columns) / 2), Float((input.height - rows) / 2))
            (width, height) = (Float(columns), Float(rows))
        }

        /// Returns a box in the coordinates of the image; its sides may not be finite.
        func box(x: Float, y: Float, width boxWidth: Float, height boxHeight: Float) -> NormalizedRectangle {
            NormalizedRectangle(
                x: (x - boxWidth / 2 - left) / width, y: (y - boxHeight / 2 - top) / height, width: boxWidth / width,
                height: boxHeight / height)
        }
    }

    /// An anchor with its box, which may exceed the image.
    private struct Candidate {
        let confidence: Float
        let box: NormalizedRectangle
    }

    /// Decodes the output of the network for an image.
    private func prediction(
        _ output: UnsafeMutableBufferPointer<Float>, _ letterbox: Letterbox
    ) throws(ImprintError) -> Prediction {
        // Activations can overflow even though the parameters are finite.
        guard output.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: model.network.name) }
        return Prediction(
            labels: model.labels.enumerated().map { index, label in
                func confidence(_ anchor: Int) -> Float { output[anchor * model.labels.count + index] }
                let strongest = anchors.indices.filter { confidence($0) >= Self.minimumConfidence }
                    .sorted { (confidence($1), $0) < (confidence($0), $1) }
                let candidates = strongest.prefix(Self.maximumCandidateCount).map { anchor in
                    Candidate(confidence: confidence(anchor), box: box(anchor, output, letterbox))
                }
                let objects = suppressed(candidates).map { candidate in
                    DetectedObject(
                        label: label, confidence: candidate.confidence, box: candidate.box.clippedToImage)
                }
                return (anchors.indices.map(confidence).max() ?? 0, objects)
            })
    }

    /// Returns the box of an anchor.
    private func box(
        _ anchor: Int, _ output: UnsafeMutableBufferPointer<Float>, _ letterbox: Letterbox
    ) -> NormalizedRectangle {
        let first = anchors.count * model.labels.count + anchor * head.valuesPerAnchor
        return letterbox.box(
            x: anchors[anchor].x + output[first], y: anchors[anchor].y + output[first + 1], width: output[first + 2],
            height: output[first + 3])
    }

    /// Non-maximum suppression with averages.
    /// - Parameter candidates: The candidates by descending confidence.
    private func suppressed(_ candidates: [Candidate]) -> [Candidate] {
        var rest = candidates.filter { $0.box.width > 0 && $0.box.height > 0 }
        var kept: [Candidate] = []
        while kept.count < Self.maximumCount, let best = rest.first {
            var averaged = [best]
            rest = rest.dropFirst().filter { other in
                guard other.box.iou(with: best.box) >= head.iouThreshold else { return true }
                if other.confidence >= Self.averagedConfidence { averaged.append(other) }
                return false
            }
            let box = mean(of: averaged)
            // Boxes in the padding are not objects of the image.
            if box.clippedToImage.isWithinImage { kept.append(Candidate(confidence: best.confidence, box: box)) }
        }
        return kept
    }

    /// Returns the mean box, weighted by the confidences.
    private func mean(of candidates: [Candidate]) -> NormalizedRectangle {
        guard candidates.count > 1 else { return candidates[0].box }
        let total = candidates.reduce(0) { $0 + $1.confidence }
        func mean(_ value: (NormalizedRectangle) -> Float) -> Float {
            candidates.reduce(0) { $0 + $1.confidence / total * value($1.box) }
        }
        return NormalizedRectangle(x: mean(\.x), y: mean(\.y), width: mean(\.width), height: mean(\.height))
    }
}
