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
        package var score: Float
        /// The horizontal centre, in pixels of the image; 0 is the centre of the first pixel.
        package var x: Float
        /// The vertical centre, in pixels of the image; 0 is the centre of the first pixel.
        package var y: Float
        /// The side of the network's window around the centre, in pixels of the image.
        package var side: Float
        /// The bounding box that the network predicts; nil without box regression.
        package var box: Box?

        /// A bounding box, in pixels of the image.
        package struct Box: BoundingBox, Hashable, Codable, Sendable {
            /// The left edge; 0 is the left edge of the image.
            package var x: Float
            /// The upper edge; 0 is the upper edge of the image.
            package var y: Float
            package var width: Float
            package var height: Float
        }
    }

    /// The detections of one logo in an image.
    package struct Scan: Hashable, Codable, Sendable {
        /// The maximum logit over all positions and pyramid levels.
        package var score: Float
        /// The peaks: by descending score after non-maximum suppression, otherwise in any order.
        package var peaks: [Peak]
    }

    private let network: AnySizeNetwork
    private let detector: DetectorHead

    /// - Parameters:
    ///   - shapes: The number of image shapes whose plans are cached for all pyramid levels; each shape takes a few dozen megabytes.
    ///   - threads: The maximum number of threads; the results do not depend on it.
    package init(
        _ network: Network, parameters: Parameters, preprocessing: Preprocessing, detector: DetectorHead,
        shapes: Int = 4, threads: Int = 1, precision: Precision = .automatic
    ) {
        self.network = AnySizeNetwork(
            network, parameters: parameters, preprocessing: preprocessing, plans: shapes * detector.levels.count,
            threads: threads, precision: precision)
        self.detector = detector
    }

    /// The cached execution plans, by the input shape.
    var plans: [TensorShape: ExecutionPlan] { network.plans }

    /// Detects all logos in an image.
    /// - Parameters:
    ///   - image: The image.
    ///   - count: The maximum number of peaks per logo.
    /// - Returns: The detections of each logo, in the order of the network's heat maps.
    /// - Throws: `ImprintError.unsupportedImageSize` if the network does not accept a pyramid level, `ImprintError.outOfMemory`.
    package func scan(_ image: RasterImage, peaks count: Int) throws(ImprintError) -> [Scan] {
        var scans = try allPeaks(image, keepsPeaks: count > 0)
        for logo in scans.indices { scans[logo].peaks = Self.nonMaximumSuppression(scans[logo].peaks, count) }
        return scans
    }

    /// Returns all peaks of each logo, without non-maximum suppression.
    /// - Parameter keepsPeaks: Whether to return peaks, or only the maximum score of each logo.
    func allPeaks(_ image: RasterImage, keepsPeaks: Bool = true) throws(ImprintError) -> [Scan] {
        let outputs = network.network.output.channels
        let logos = detector.regressesBoxes ? outputs - BoxCode.count : outputs
        var scans = Array(repeating: Scan(score: -.infinity, peaks: []), count: logos)
        let stride = Float(detector.stride)
        try forEachLevel(of: image) { map, level in
            let scaleX = Float(image.width) / Float(level.width)
            let scaleY = Float(image.height) / Float(level.height)
            for logo in scans.indices {
                for row in 0..<map.shape.height {
                    for column in 0..<map.shape.width {
                        let score = map[row, column, logo]
                        scans[logo].score = max(scans[logo].score, score)
                        guard keepsPeaks, map.isPeak(row, column, logo) else { continue }
                        var peak = Peak(
                            score: score, x: (Float(column) * stride + 0.5) * scaleX - 0.5,
                            y: (Float(row) * stride + 0.5) * scaleY - 0.5,
                            side: Float(DetectorHead.patchSide) * (scaleX + scaleY) / 2)
                        if detector.regressesBoxes {
                            let box = BoxCode.box(
                                (logos..<outputs).map { map[row, column, $0] }, row: row, column: column,
                                size: detector.span / stride)
                            let (width, height) = (box.width * stride * scaleX, box.height * stride * scaleY)
                            peak.box = Peak.Box(
                                x: (box.column * stride + 0.5) * scaleX - width / 2,
                                y: (box.row * stride + 0.5) * scaleY - height / 2, width: width, height: height)
                        }
                        scans[logo].peaks.append(peak)
                    }
                }
            }
        }
        return scans
    }

    /// Runs the network on each pyramid level of an image.
    /// - Parameters:
    ///   - image: The image.
    ///   - body: A closure that receives the output of the network, which is valid only during the call, and the scaled image.
    /// - Throws: The errors of `scan(_:peaks:)`.
    func forEachLevel(
        of image: RasterImage, _ body: (_ map: AnySizeNetwork.Map, _ level: RasterImage) throws(ImprintError) -> Void
    ) throws(ImprintError) {
        try network.forEachLevel(of: image, levels: detector.levels, stride: detector.stride, body)
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
}

extension AnySizeNetwork.Map {
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
