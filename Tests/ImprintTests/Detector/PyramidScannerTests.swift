import ImprintImages
import ImprintModel
import Testing

@testable import Imprint
@testable import ImprintNetwork

@Suite("Pyramid scanner") struct PyramidScannerTests {
    /// The only pyramid level of a square image.
    private static let level = TensorShape(height: 48, width: 48, channels: 3)

    /// Scans a square image with a detector of this network.
    private func scan(_ nodes: [Network.Node], level: Int = 48) throws {
        let network = try Network(name: "maps", input: TensorShape(height: 96, width: 96, channels: 3), nodes: nodes)
        let scanner = PyramidScanner(
            network, parameters: try Parameters(network, seed: 1), preprocessing: .logoDetector,
            detector: DetectorHead(levels: [level], stride: 16, span: 44, logos: [.init(label: "logo")]))
        _ = try scanner.scan(RasterImage(width: 60, height: 60), peaks: 1)
    }

    /// The sides of a level are multiples of the stride, so they can differ from those of the scaled image.
    @Test(
        "On some level, a logo has a size that training patches have, and almost its own aspect ratio",
        arguments: [(480, 480), (640, 480), (480, 640), (720, 480), (768, 432)])
    func sizesOfLogos(width: Int, height: Int) {
        let photo = RasterImage(width: width, height: height)
        let levels = DetectorHead.logoDetector(logos: []).levels.map {
            AnySizeNetwork.level($0, of: photo, stride: DetectorHead.heatMapStride)
        }
        /// Returns whether a square logo covers 30 to 62.5 % of both sides of a patch on a level, and is stretched by less than 1.3.
        func isLearnable(_ side: Int, on level: RasterImage) -> Bool {
            let sides = [(level.width, width), (level.height, height)].map { scaled, original in
                Double(side * scaled) / Double(original * DetectorHead.patchSide)
            }
            let (shorter, longer) = (min(sides[0], sides[1]), max(sides[0], sides[1]))
            return shorter >= 0.3 && longer <= 0.625 && longer / shorter < 1.3
        }
        // From 4.5 % of the side of a square with the area of the photo to the shorter side of the photo.
        let smallest = Int((0.045 * Double(width * height).squareRoot()).rounded(.up))
        let missed = (smallest...min(width, height)).filter { side in
            !levels.contains { isLearnable(side, on: $0) }
        }
        #expect(missed.isEmpty)
    }

    @Test("A network that does not accept a pyramid level is reported with the size and the reason")
    func tooSmall() throws {
        let nodes = [
            Network.Node(name: "head", layer: Convolution(outputChannels: 1, kernelSize: 64), inputs: ["input"])
        ]
        let error = #expect(throws: NetworkError.self) {
            try Network(name: "maps", input: Self.level, nodes: nodes)
        }
        let reason = String(try #require(error).description.dropLast())  // without the full stop
        let expected = ImprintError.unsupportedImageSize(network: "maps", width: 48, height: 48, reason: reason)
        #expect(throws: expected) { try scan(nodes) }
        #expect("\(expected)".contains("does not accept an image of 48x48 pixels: node \"head\": "))
    }

    @Test("A pyramid level that needs too much memory is an error with the required size")
    func outOfMemory() {
        let error = #expect(throws: ImprintError.self) { try scan(nodesBeyondMemory(channels: 3), level: 26_000) }
        guard case .outOfMemory(let byteCount) = error else {
            Issue.record("unexpected: \(String(describing: error))")
            return
        }
        #expect(byteCount > 300 * 8_000_000_000)
    }

    @Test("Parameters whose shapes depend on the size of the image are reported, not an output that is not finite")
    func otherLayout() {
        let nodes = [
            Network.Node(name: "flat", layer: Flatten(), inputs: ["input"]),
            Network.Node(name: "head", layer: Dense(outputChannels: 1), inputs: ["flat"]),
        ]
        #expect(
            throws: ImprintError.unsupportedImageSize(
                network: "maps", width: 48, height: 48, reason: "its parameters have other shapes for this size")
        ) {
            try scan(nodes)
        }
    }

    @Test("Large levels of a pyramid use several threads, small ones a single one, with the same results")
    func threads() throws {
        let model = try detectorModel(logos: ["logo"])
        var image = RasterImage(width: 300, height: 200)
        for index in image.samples.indices { image.samples[index] = UInt8(index / 3 * 7919 % 251) }
        var expected: [PyramidScanner.Scan]?
        for threads in 1...3 {
            let scanner = PyramidScanner(
                model.network, parameters: model.parameters, preprocessing: .logoDetector,
                detector: DetectorHead(levels: [32, 384], stride: 16, span: 44, logos: [.init(label: "logo")]),
                threads: threads)
            let scans = try scanner.scan(image, peaks: 10)
            #expect(scans == expected ?? scans)
            expected = scans
            #expect(Set(scanner.plans.values.map(\.threadPool.count)) == [1, threads])
        }
    }

    @Test("The plans of all pyramid levels and image shapes share their threads") func sharedThreads() throws {
        let model = try detectorModel(logos: ["logo"])
        let scanner = PyramidScanner(
            model.network, parameters: model.parameters, preprocessing: .logoDetector,
            detector: DetectorHead(levels: [384, 512], stride: 16, span: 44, logos: [.init(label: "logo")]), threads: 2)
        for width in [300, 400] { _ = try scanner.scan(RasterImage(width: width, height: 300), peaks: 1) }
        #expect(scanner.plans.count == 4)
        #expect(Set(scanner.plans.values.map { ObjectIdentifier($0.threadPool) }).count == 1)
    }

    @Test("The number of cached execution plans is limited for images of many sizes") func sizes() throws {
        let network = try Network.logoDetector()
        let scanner = PyramidScanner(
            network, parameters: try Parameters(network, seed: 1), preprocessing: .logoDetector,
            detector: DetectorHead(levels: [48, 96], stride: 16, span: 44, logos: []))
        for width in stride(from: 20, to: 400, by: 20) {
            #expect(try scanner.scan(RasterImage(width: width, height: 60), peaks: 0).allSatisfy { $0.score.isFinite })
            #expect(scanner.plans.count <= 8)
        }
    }

    @Test("A detector whose scores are not finite cannot be personalized") func overflow() throws {
        let model = try detectorModel(logos: ["logo"])
        let parameters = try model.parameters.copy()
        for name in parameters.layout.entries.map(\.name) where name.hasSuffix(".weight") {
            parameters[name] = parameters[name]?.map { $0 * 1e30 }
        }
        let overflowing = ModelFile(
            network: model.network, parameters: parameters, labels: model.labels, preprocessing: model.preprocessing,
            detector: model.detector)
        let session = try PersonalizationSession(ImageClassifier(overflowing))
        #expect(throws: ImprintError.nonFiniteOutput(network: model.network.name)) {
            try session.teach(stripes(2, count: 1)[0], as: "logo")
        }
    }
}
