internal import Foundation
internal import ImprintCore
package import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// Looks for marks in whole pictures: the network runs over the picture at several sizes.
///
/// One thread at a time uses it.
package final class PyramidScanner {
    /// A place of a picture where a mark may be.
    package struct Peak: Hashable, Codable, Sendable {
        var score: Float
        /// The middle, in pixels of the picture, and the side of the window that the network saw.
        package var x: Float
        package var y: Float
        package var side: Float
    }

    /// What a picture shows of a mark.
    package struct Scan: Hashable, Sendable {
        /// The highest logit of all places and sizes.
        package var score: Float
        /// The places of the highest peaks, the highest first.
        package var peaks: [Peak]
    }

    private let network: Network
    private let parameters: Parameters
    private let preprocessing: Preprocessing
    private let detector: DetectorHead
    /// The plans of the sizes that were met last.
    private(set) var plans: [TensorShape: ExecutionPlan] = [:]
    /// How many are kept.
    private let planLimit: Int

    /// - Parameter shapes: How many shapes of pictures are kept in mind, with a plan for every size; a few dozen MB each.
    package init(
        _ network: Network, parameters: Parameters, preprocessing: Preprocessing, detector: DetectorHead,
        shapes: Int = 4
    ) {
        planLimit = shapes * detector.levels.count
        self.preprocessing = preprocessing
        self.network = network
        self.parameters = parameters
        self.detector = detector
    }

    /// Looks at a picture once, for all marks.
    /// - Parameter count: How many peaks of each mark are wanted at most; none is near a higher one.
    /// - Returns: What it shows of each mark, in the order of the network's maps.
    package func scan(_ picture: RasterImage, peaks count: Int) throws -> [Scan] {
        var scans = Array(repeating: Scan(score: -.infinity, peaks: []), count: network.output.channels)
        let stride = detector.stride
        try forEachLevel(of: picture) { map, image in
            let scaleX = Float(picture.width) / Float(image.width)
            let scaleY = Float(picture.height) / Float(image.height)
            for mark in scans.indices {
                for row in 0..<map.shape.height {
                    for column in 0..<map.shape.width {
                        let score = map[row, column, mark]
                        scans[mark].score = max(scans[mark].score, score)
                        guard count > 0, map.isPeak(row, column, mark) else { continue }
                        scans[mark].peaks.append(
                            Peak(
                                score: score, x: (Float(column * stride) + 0.5) * scaleX - 0.5,
                                y: (Float(row * stride) + 0.5) * scaleY - 0.5,
                                side: Float(DetectorHead.patchSide) * (scaleX + scaleY) / 2))
                    }
                }
            }
        }
        for mark in scans.indices { scans[mark].peaks = Self.distinct(scans[mark].peaks, count) }
        return scans
    }

    /// Runs the network over a picture in each size; the map is valid only inside the closure, which is also given the picture in that
    /// size.
    func forEachLevel(of picture: RasterImage, _ body: (_ map: Map, _ image: RasterImage) -> Void) throws {
        let stride = detector.stride
        for level in detector.levels {
            let factor = Float(level) / Float(picture.width * picture.height).squareRoot()
            func size(_ side: Int) -> Int { max(Int((Float(side) * factor / Float(stride)).rounded()), 2) * stride }
            let plan = try plan(height: size(picture.height), width: size(picture.width))
            let image = CropAndScale.scaleFill.apply(
                picture, width: plan.network.input.width, height: plan.network.input.height)
            image.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: plan.input) }
            plan.forward(count: 1)
            body(Map(values: plan.output, shape: plan.network.output), image)
        }
    }

    /// What the network makes of a picture, [rows, columns, channels]: logits of marks, or features.
    struct Map {
        let values: UnsafeMutableBufferPointer<Float>
        let shape: TensorShape

        subscript(row: Int, column: Int, mark: Int) -> Float {
            values[(row * shape.width + column) * shape.channels + mark]
        }

        /// Whether no neighbour is higher.
        func isPeak(_ row: Int, _ column: Int, _ mark: Int) -> Bool {
            let score = self[row, column, mark]
            for (dy, dx) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
                let (y, x) = (row + dy, column + dx)
                guard (0..<shape.height).contains(y), (0..<shape.width).contains(x) else { continue }
                if self[y, x, mark] > score { return false }
            }
            return true
        }
    }

    /// The highest peaks, the highest first, none of which is near a higher one.
    package static func distinct(_ peaks: [Peak], _ count: Int) -> [Peak] {
        var kept: [Peak] = []
        for peak in peaks.sorted(by: { $0.score > $1.score }) where kept.count < count {
            let isNear = kept.contains {
                hypotf($0.x - peak.x, $0.y - peak.y) < 0.3 * min($0.side, peak.side)
                    && max($0.side, peak.side) < 2 * min($0.side, peak.side)
            }
            if !isNear { kept.append(peak) }
        }
        return kept
    }

    private func plan(height: Int, width: Int) throws -> ExecutionPlan {
        let shape = TensorShape(height: height, width: width, channels: 3)
        if let plan = plans[shape] { return plan }
        let network = try Network(name: network.name, input: shape, nodes: network.nodes)
        guard ParameterLayout(network) == parameters.layout else {
            throw ImprintError.noConfidence(network: network.name)
        }
        // Pictures of ever new shapes must not take ever more memory.
        if plans.count >= planLimit { plans.removeAll() }
        let plan = try ExecutionPlan(network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1))
        plans[shape] = plan
        return plan
    }
}
