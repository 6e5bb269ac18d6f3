import ImprintImages
import ImprintNetwork
import Testing

@testable import ImprintModel

@Suite struct ModelHeadTests {
    /// Returns the parts of a small classifier.
    private func parts(isSigmoid: Bool = false) throws -> (Network, Parameters) {
        var net = NetworkBuilder(name: "small", input: TensorShape(height: 4, width: 4, channels: 3))
        net.add(Flatten())
        net.add(Dense(outputChannels: 2))
        if isSigmoid { net.add(Sigmoid()) } else { net.add(Softmax()) }
        let network = try net.network()
        return (network, try Parameters(network, seed: 1))
    }

    @Test("The network of a classifier determines its kind", arguments: [(false, ModelHead.softmax), (true, .sigmoid)])
    func classifier(isSigmoid: Bool, head: ModelHead) throws {
        let (network, parameters) = try parts(isSigmoid: isSigmoid)
        let model = ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"],
            preprocessing: Preprocessing(width: 4, height: 4))
        #expect(model.head == head)
        #expect(model.detector == nil && model.centerPoints == nil && model.anchors == nil)
    }

    @Test("A detector has the rules of its kind, and no others") func detectors() throws {
        let (network, parameters) = try parts()
        let preprocessing = Preprocessing(width: 4, height: 4)
        let rules = DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: "a")])
        let logoDetector = ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"], preprocessing: preprocessing, detector: rules)
        #expect(logoDetector.head == .detector(rules) && logoDetector.detector == rules)
        #expect(logoDetector.centerPoints == nil && logoDetector.anchors == nil)

        let centerRules = CenterPointHead(stride: 4, sideMultiple: 32, iouThreshold: 0.3)
        let centerPoints = ModelFile(
            network: network, parameters: parameters, labels: ["a"], preprocessing: preprocessing,
            centerPoints: centerRules)
        #expect(centerPoints.head == .centerPoints(centerRules) && centerPoints.centerPoints == centerRules)
        #expect(centerPoints.detector == nil && centerPoints.anchors == nil)

        let anchorRules = AnchorHead(
            levels: [.init(stride: 8, anchors: 2)], valuesPerAnchor: 5, iouThreshold: 0.3)
        let anchors = ModelFile(
            network: network, parameters: parameters, labels: ["a"], preprocessing: preprocessing, anchors: anchorRules)
        #expect(anchors.head == .anchors(anchorRules) && anchors.anchors == anchorRules)
        #expect(anchors.detector == nil && anchors.centerPoints == nil)
    }

    @Test("A model with added labels has a logo for each of them") func addedLabels() throws {
        let (network, parameters) = try parts()
        let model = ModelFile(
            network: network, parameters: parameters, labels: ["a", "b"],
            preprocessing: Preprocessing(width: 4, height: 4),
            detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: "a")]))
        let added = model.with(parameters, addedLabels: ["c"], baseDigest: nil, rehearsal: nil)
        #expect(added.labels == ["a", "b", "c"] && added.head.logos.map(\.label) == ["a", "c"])
    }
}
