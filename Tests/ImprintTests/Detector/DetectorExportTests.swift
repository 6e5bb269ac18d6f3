import Foundation
import ImprintInterop
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintCore
@testable import ImprintImages

/// Exported logo detectors, which other programs run.
@Suite(
    .enabled(
        if: Python.runsExports,
        "IMPRINT_PYTHON is not a Python with numpy, onnx, onnxruntime and coremltools; see ./run"))
struct DetectorExportTests {
    /// A detector with random parameters.
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let logos: Int
        let regressesBoxes: Bool
        var precision = Safetensors.Precision.float32
        /// The minimum confidence of each logo.
        var thresholds: [Double]?
        /// The network of the backbone; nil for the logo detector network.
        var backbone: String?
        var testDescription: String { name }

        /// Returns the model.
        /// - Parameter levels: The pyramid levels; nil for the levels of the logo detector network.
        func model(levels: [Int]? = nil) throws -> ModelFile {
            let side = DetectorHead.patchSide
            let backboneNetwork = try backbone.map { try Network.named($0, labels: 2, width: 0.25) }
            let network =
                try backboneNetwork.map {
                    try #require(try Network.logoDetector(logos: logos, backbone: $0, side: side))
                } ?? Network.logoDetector(logos: logos, regressesBoxes: regressesBoxes)
            let parameters = try Parameters(network, seed: 4)
            if precision == .float16 {
                for entry in parameters.layout.entries where entry.parameter.role == .weight {
                    parameters.withValues(of: entry) { values in
                        for index in values.indices { values[index] = Float(Float16(values[index])) }
                    }
                }
            }
            let names = (0..<logos).map { "logo \($0)" }
            var labels = names
            labels.insert("none", at: logos / 2)
            var detector = DetectorHead.logoDetector(
                // The logits of random parameters are close to each other.
                logos: names.enumerated().map { index, name in
                    .init(
                        label: name, slope: 8 + Float(index), offset: -1, threshold: thresholds.map { $0[index] })
                },
                regressesBoxes: regressesBoxes)
            if let levels { detector.levels = levels }
            return ModelFile(
                network: network, parameters: parameters, labels: labels, preprocessing: .logoDetector,
                detector: detector)
        }
    }

    static let cases = [
        Case(name: "squares", logos: 1, regressesBoxes: false),
        Case(name: "boxes", logos: 1, regressesBoxes: true),
        Case(name: "three logos", logos: 3, regressesBoxes: true),
        Case(name: "three logos in squares", logos: 3, regressesBoxes: false),
        Case(name: "thresholds", logos: 3, regressesBoxes: true, thresholds: [1, 0.02, 0]),
        Case(name: "backbone", logos: 2, regressesBoxes: true, backbone: "mobilenet-v1"),
        Case(name: "float16", logos: 2, regressesBoxes: true, precision: .float16),
    ]

    /// The width and height of the images: of a pyramid level, larger, tall, tiny, and so long that levels are compressed.
    static let sizes = [(96, 96), (150, 90), (640, 481), (61, 97), (17, 9), (500, 20)]

    /// The pyramid levels of the Core ML models, and the side of their input.
    private static let coreMLLevels = [96, 144]

    /// Returns an image of coloured rectangles and gradients.
    static func image(_ width: Int, _ height: Int) -> RasterImage {
        var image = RasterImage(width: width, height: height, channels: 3)
        var stream = RandomStream(seed: 5, "\(width)x\(height)")
        func fill(_ columns: Range<Int>, _ rows: Range<Int>, _ color: (_ x: Int, _ y: Int, _ channel: Int) -> Int) {
            for y in rows {
                for x in columns {
                    for channel in 0..<3 {
                        image.samples[(y * width + x) * 3 + channel] = UInt8(color(x, y, channel))
                    }
                }
            }
        }
        fill(0..<width, 0..<height) { x, y, channel in
            [x * 200 / width, y * 200 / height, (x + y) * 100 / (width + height)][channel]
        }
        for _ in 0..<24 {
            let (left, top) = (stream.index(below: width), stream.index(below: height))
            let right = min(left + 1 + stream.index(below: width / 3 + 1), width)
            let bottom = min(top + 1 + stream.index(below: height / 3 + 1), height)
            let color = (0..<3).map { _ in stream.index(below: 256) }
            fill(left..<right, top..<bottom) { _, _, channel in color[channel] }
        }
        return image
    }

    /// A model and an image for the script.
    private struct Run: Encodable {
        let model, image: String
        let width, height: Int
    }

    /// Writes models and images, and runs them.
    /// - Parameter write: Writes the model of a case to a file.
    private static func outputs<Outputs: Decodable>(
        ending: String, sizes: [(Int, Int)], _ write: (Case, URL) throws -> Void
    ) throws -> [String: [Outputs]] {
        try withTemporaryFolder { folder in
            var runs: [Run] = []
            for item in cases {
                let model = "\(item.name).\(ending)"
                try write(item, folder.appending(path: model))
                for (width, height) in sizes {
                    let name = "\(width)x\(height)"
                    try Data(image(width, height).samples).write(to: folder.appending(path: name))
                    runs.append(Run(model: model, image: name, width: width, height: height))
                }
            }
            try JSONEncoder().encode(runs).write(to: folder.appending(path: "cases.json"))
            let report = try Python.output(of: "FileFormatTests/Fixtures/run_exported_detectors.py", [folder.path])
            let found = try JSONDecoder().decode([Outputs].self, from: report)
            return Dictionary(
                uniqueKeysWithValues: cases.enumerated().map { index, item in
                    (item.name, Array(found[(index * sizes.count)..<((index + 1) * sizes.count)]))
                })
        }
    }

    // MARK: ONNX

    /// The outputs of an ONNX graph.
    private struct ONNXOutputs: Decodable {
        let boxes: [[Float]]
        let confidences: [Float]
        let labels: [Int]
        let imageConfidences: [Float]
        let problems: [String]
    }

    /// The outputs for all images, by case; starting Python takes longest, so it happens only once.
    private static let onnx = Swift.Result {
        try outputs(ending: "onnx", sizes: sizes) { item, url in
            try item.model().writeONNX(to: url, options: ONNXOptions(storagePrecision: item.precision))
        } as [String: [ONNXOutputs]]
    }

    @Test("ONNX Runtime finds the objects that Imprint finds, in images of any size", arguments: cases)
    func objects(_ item: Case) throws {
        let model = try item.model()
        let detector = try ImageClassifier(model)
        for ((width, height), found) in zip(Self.sizes, try #require(try Self.onnx.get()[item.name])) {
            #expect(found.problems == [])
            let image = Self.image(width, height)
            let expected = try detector.detect(image, minimumConfidence: 0)
            #expect(found.confidences == found.confidences.sorted(by: >))
            // Samples of pyramid levels may differ by 1, so a few weak objects differ. If two objects have nearly equal confidences, their
            // order may differ too, and the first one suppresses other boxes inside its own.
            let tolerance = max(expected.count / 20, 1)
            #expect(abs(found.boxes.count - expected.count) <= tolerance, "\(width)x\(height)")
            let missing = expected.filter { object in
                let edges = [
                    object.box.x, object.box.y, object.box.x + object.box.width, object.box.y + object.box.height,
                ]
                return !found.boxes.indices.contains { index in
                    let box = zip(found.boxes[index], [width, height, width, height]).map { $0 / Float($1) }
                    return model.labels[found.labels[index]] == object.label
                        && abs(found.confidences[index] - object.confidence) < 0.01
                        && maximumDifference(box, edges) < 0.01
                }
            }
            #expect(missing.count <= tolerance, "\(width)x\(height): \(missing)")
            #expect(!expected.isEmpty)
            for classification in try detector.classify(image) {
                let index = try #require(model.labels.firstIndex(of: classification.label))
                #expect(abs(found.imageConfidences[index] - classification.confidence) < 0.01)
            }
        }
    }

    // MARK: Core ML

    /// The outputs of the network of a Core ML pipeline.
    private struct CoreMLOutputs: Decodable {
        /// The box at each position: the centre, width and height, relative to the image.
        let boxes: [[Float]]
        /// The confidence of each logo at each position.
        let logoConfidences: [[Float]]
        let labels: [String]
        let problems: [String]
    }

    private static let coreML = Swift.Result {
        try outputs(ending: "mlmodel", sizes: [(coreMLLevels[1], coreMLLevels[1])]) { item, url in
            let model = try item.model(levels: coreMLLevels)
            try model.writeCoreML(to: url, options: CoreMLOptions(storagePrecision: item.precision))
        } as [String: [CoreMLOutputs]]
    }

    @Test("The network of a Core ML pipeline has the peaks and boxes that Imprint has", arguments: cases)
    func peaks(_ item: Case) throws {
        let model = try item.model(levels: Self.coreMLLevels)
        let head = try #require(model.detector)
        let found = try #require(try Self.coreML.get()[item.name]?.first)
        #expect(found.problems == [] && found.labels == head.logos.map(\.label))
        let side = Self.coreMLLevels[1]
        let scanner = PyramidScanner(
            model.network, parameters: model.parameters, preprocessing: model.preprocessing, detector: head)
        let scans = try scanner.allPeaks(Self.image(side, side))
        var expected: [(logo: Int, values: [Float])] = []
        for (logo, scan) in scans.enumerated() {
            for peak in scan.peaks {
                let confidence = head.logos[logo].confidence(peak.score)
                // Only the logo with the highest confidence counts at a position.
                let isBest = scans.indices.allSatisfy { other in
                    scans[other].peaks.allSatisfy {
                        ($0.x, $0.y, $0.side) != (peak.x, peak.y, peak.side)
                            || head.logos[other].confidence($0.score) <= confidence
                    }
                }
                guard isBest else { continue }
                let box = ObjectPeaks.box(of: peak, head)
                let values = [box.x + box.width / 2, box.y + box.height / 2, box.width, box.height]
                expected.append((logo, [confidence] + values.map { $0 / Float(side) }))
            }
        }
        let rows = zip(found.logoConfidences, found.boxes).flatMap { confidences, box in
            confidences.enumerated().filter { $0.element > 0 }.map { (logo: $0.offset, values: [$0.element] + box) }
        }
        #expect(rows.count == expected.count)
        // Samples of the smaller pyramid level may differ by 1, so that a few confidences differ.
        let missing = expected.filter { peak in
            !rows.contains { $0.logo == peak.logo && maximumDifference($0.values, peak.values) < 0.01 }
        }
        #expect(missing.count <= max(expected.count / 50, 1), "\(missing)")
        #expect(!expected.isEmpty)
    }
}

/// Returns the largest absolute difference of two lists.
private func maximumDifference(_ first: [Float], _ second: [Float]) -> Float {
    zip(first, second).map { abs($0 - $1) }.max() ?? 0
}

extension Python {
    /// Whether the packages that run exported models are installed.
    static let runsExports = has("numpy", "onnx", "onnxruntime", "coremltools")
}
