internal import Foundation
internal import ImprintCore
package import ImprintImages
package import ImprintModel
package import ImprintNetwork

/// A scanner that detects logos in whole images: it runs the fully convolutional network on each level of an image pyramid.
///
/// It is not thread-safe.
package final class PyramidScanner {
    /// A local maximum of a heat map: a candidate detection.
    package struct Peak: Hashable, Codable, Sendable {
        /// The logit.
        var score: Float
        /// The horizontal center, in pixels of the image.
        package var x: Float
        /// The vertical center, in pixels of the image.
        package var y: Float
        /// The side of the network's window around the center, in pixels of the image.
        package var side: Float
    }

    /// The detections of one logo in an image.
    package struct Scan: Hashable, Sendable {
        /// The maximum logit over all positions and pyramid levels.
        package var score: Float
        /// The highest peaks after non-maximum suppression, by descending score.
        package var peaks: [Peak]
    }

    private let network: Network
    private let parameters: Parameters
    private let preprocessing: Preprocessing
    private let detector: DetectorHead
    /// The cached execution plans, by the input shape.
    private(set) var plans: [TensorShape: ExecutionPlan] = [:]
    /// The maximum number of cached plans.
    private let planLimit: Int

    /// - Parameter shapes: The number of image shapes for which plans of all pyramid levels are cached; each takes a few dozen MB.
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

    /// Detects all logos in an image.
    /// - Parameters:
    ///   - image: The image.
    ///   - count: The maximum number of peaks per logo.
    /// - Returns: The detections of each logo, in the order of the network's heat maps.
    /// - Throws: `ImprintError.unsupportedImageSize` if the network does not accept a pyramid level, `ImprintError.outOfMemory`.
    package func scan(_ image: RasterImage, peaks count: Int) throws(ImprintError) -> [Scan] {
        var scans = Array(repeating: Scan(score: -.infinity, peaks: []), count: network.output.channels)
        let stride = detector.stride
        try forEachLevel(of: image) { map, level in
            let scaleX = Float(image.width) / Float(level.width)
            let scaleY = Float(image.height) / Float(level.height)
            for logo in scans.indices {
                for row in 0..<map.shape.height {
                    for column in 0..<map.shape.width {
                        let score = map[row, column, logo]
                        scans[logo].score = max(scans[logo].score, score)
                        guard count > 0, map.isPeak(row, column, logo) else { continue }
                        scans[logo].peaks.append(
                            Peak(
                                score: score, x: (Float(column * stride) + 0.5) * scaleX - 0.5,
                                y: (Float(row * stride) + 0.5) * scaleY - 0.5,
                                side: Float(DetectorHead.patchSide) * (scaleX + scaleY) / 2))
                    }
                }
            }
        }
        for logo in scans.indices { scans[logo].peaks = Self.nonMaximumSuppression(scans[logo].peaks, count) }
        return scans
    }

    /// Runs the network on each pyramid level of an image.
    /// - Parameters:
    ///   - image: The image.
    ///   - body: A closure that receives the output of the network, which is valid only during the call, and the scaled image.
    /// - Throws: The errors of `scan(_:peaks:)`.
    func forEachLevel(
        of image: RasterImage, _ body: (_ map: Map, _ level: RasterImage) -> Void
    ) throws(ImprintError) {
        let stride = detector.stride
        for level in detector.levels {
            let factor = Float(level) / Float(image.width * image.height).squareRoot()
            func size(_ side: Int) -> Int { max(Int((Float(side) * factor / Float(stride)).rounded()), 2) * stride }
            let plan = try plan(height: size(image.height), width: size(image.width))
            let scaled = CropAndScale.scaleFill.apply(
                image, width: plan.network.input.width, height: plan.network.input.height)
            scaled.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: plan.input) }
            plan.forward(count: 1)
            body(Map(values: plan.output, shape: plan.network.output), scaled)
        }
    }

    /// The output of the network for one pyramid level, [rows, columns, channels]: a heat map of logits per logo, or features.
    struct Map {
        let values: UnsafeMutableBufferPointer<Float>
        let shape: TensorShape

        subscript(row: Int, column: Int, logo: Int) -> Float {
            values[(row * shape.width + column) * shape.channels + logo]
        }

        /// Returns whether no neighbour of a position has a higher logit.
        func isPeak(_ row: Int, _ column: Int, _ logo: Int) -> Bool {
            let score = self[row, column, logo]
            for (dy, dx) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
                let (y, x) = (row + dy, column + dx)
                guard (0..<shape.height).contains(y), (0..<shape.width).contains(x) else { continue }
                if self[y, x, logo] > score { return false }
            }
            return true
        }
    }

    /// Returns the highest peaks, by descending score, without peaks that are close to a higher peak of similar size.
    package static func nonMaximumSuppression(_ peaks: [Peak], _ count: Int) -> [Peak] {
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

    private func plan(height: Int, width: Int) throws(ImprintError) -> ExecutionPlan {
        let shape = TensorShape(height: height, width: width, channels: 3)
        if let plan = plans[shape] { return plan }
        func unsupported(_ reason: String) -> ImprintError {
            .unsupportedImageSize(network: network.name, width: width, height: height, reason: reason)
        }
        let resized: Network
        do throws(NetworkError) {
            resized = try Network(name: network.name, input: shape, nodes: network.nodes)
        } catch {
            throw unsupported("\(error)")
        }
        guard ParameterLayout(resized) == parameters.layout else {
            throw unsupported("its parameters have other shapes for this size")
        }
        // Bounds memory if every image has another shape.
        if plans.count >= planLimit { plans.removeAll() }
        let plan: ExecutionPlan
        do throws(NetworkError) {
            plan = try ExecutionPlan(resized, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1))
        } catch .outOfMemory(let bytes) {
            throw .outOfMemory(byteCount: bytes)
        } catch {
            throw unsupported("\(error)")
        }
        plans[shape] = plan
        return plan
    }
}
