internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A predictor for center-point detectors, with a thread-safe pool of networks.
final class CenterPointPool: HeadPredictor {
    /// The number of image sizes whose execution plans are cached; a plan of the largest size can take hundreds of MB.
    private static let planCount = 2
    /// The maximum number of objects of one label in an image.
    private static let maximumCount = 1000
    /// The maximum number of positions of one label that become boxes; the limit bounds the time of non-maximum suppression.
    private static let maximumCandidateCount = 5000
    /// Positions below this confidence are never objects.
    private static let minimumConfidence: Float = 0.01

    private let model: ModelFile
    private let head: CenterPointHead
    private let threads: Int
    private let precision: Precision
    private let networks = IdlePool<AnySizeNetwork>()

    init(_ model: ModelFile, _ head: CenterPointHead, threads: Int, precision: Precision) {
        self.model = model
        self.head = head
        self.threads = threads
        self.precision = precision
    }

    /// The longer side of the network's input, so a photo is never decoded at a lower resolution than the network sees.
    var shortSideToDecode: Int { max(model.network.input.width, model.network.input.height) }

    func predict(_ image: StoredImage, cropAndScale: CropAndScale?) throws(ImprintError) -> Prediction {
        let upright = image.upright.flattenedOnWhite().converted(toChannels: 3)
        let size = head.inputSize(width: upright.width, height: upright.height, input: model.network.input)
        let scaled = CropAndScale.scaleFill.apply(upright, width: size.width, height: size.height)
        return try networks.withValue { () throws(ImprintError) in
            AnySizeNetwork(
                model.network, parameters: model.parameters, preprocessing: model.preprocessing, plans: Self.planCount,
                threads: threads, precision: precision)
        } _: { network throws(ImprintError) in
            try prediction(network.run(scaled), of: scaled)
        }
    }

    /// Decodes the output of the network for an image.
    private func prediction(_ map: AnySizeNetwork.Map, of image: RasterImage) throws(ImprintError) -> Prediction {
        // Activations can overflow even though the parameters are finite.
        guard map.values.allSatisfy(\.isFinite) else { throw .nonFiniteOutput(network: model.network.name) }
        return Prediction(
            labels: model.labels.enumerated().map { index, label in
                let highest = (0..<map.shape.pixels).map { map[$0, index] }.max() ?? 0
                return (highest, objects(label, index, in: map, of: image))
            })
    }

    /// Returns the objects of a label by descending confidence, after non-maximum suppression.
    private func objects(
        _ label: String, _ index: Int, in map: AnySizeNetwork.Map, of image: RasterImage
    ) -> [DetectedObject] {
        let candidates = (0..<map.shape.pixels).filter { map[$0, index] >= Self.minimumConfidence }
            .sorted { (map[$1, index], $0) < (map[$0, index], $1) }
        var objects: [DetectedObject] = []
        for position in candidates.prefix(Self.maximumCandidateCount) where objects.count < Self.maximumCount {
            let box = box(at: position, in: map, of: image)
            guard box.isWithinImage, !objects.contains(where: { $0.box.iou(with: box) >= head.iouThreshold })
            else { continue }
            objects.append(DetectedObject(label: label, confidence: map[position, index], box: box))
        }
        return objects
    }

    /// Returns the box at a position, clipped to the image; it may be empty, or have sides that are not finite.
    private func box(at position: Int, in map: AnySizeNetwork.Map, of image: RasterImage) -> NormalizedRectangle {
        let (row, column) = position.quotientAndRemainder(dividingBy: map.shape.width)
        let values = (0..<CenterPointHead.boxValueCount).map { map[position, model.labels.count + $0] }
        func range(_ cell: Int, _ offset: Float, _ logLength: Float, of side: Int) -> (start: Float, length: Float) {
            let scale = Float(head.stride) / Float(side)
            let (center, half) = ((Float(cell) + 0.5 + offset) * scale, expf(logLength) * scale / 2)
            let start = max(center - half, 0)
            return (start, min(center + half, 1) - start)
        }
        let vertical = range(row, values[2], values[0], of: image.height)
        let horizontal = range(column, values[3], values[1], of: image.width)
        return NormalizedRectangle(
            x: horizontal.start, y: vertical.start, width: horizontal.length, height: vertical.length)
    }
}

extension AnySizeNetwork.Map {
    /// Returns the value of a channel at a position, in row-major order.
    fileprivate subscript(position: Int, channel: Int) -> Float { values[position * shape.channels + channel] }
}
