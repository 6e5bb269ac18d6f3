import Foundation
import ImprintImages
import ImprintNetwork
import ImprintSynthesis
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The detector head of a model file: its confidences, and invalid heads.
@Suite struct DetectorHeadTests {
    private static let labels = ["leaf", "crest", "other"]

    private func head(_ logos: [DetectorHead.Logo]) -> DetectorHead {
        DetectorHead(levels: [96, 136], stride: 16, span: 44, logos: logos)
    }

    private var twoLogos: DetectorHead {
        head([.init(label: "crest", slope: 0.5, offset: -1), .init(label: "leaf", slope: 2, offset: 0.25)])
    }

    /// Returns a detector with random parameters.
    private func model(
        _ detector: DetectorHead, labels: [String] = labels, maps: Int = 2
    ) throws -> ModelFile {
        let network = try Network.logoDetector(logos: maps)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: labels,
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill), detector: detector)
    }

    @Test("Confidences are a softmax over the calibrated logo scores and a constant for other images")
    func confidences() {
        let found = twoLogos.confidences([3, -0.5], in: Self.labels)
        let (crest, leaf) = (exp(0.5 * 3 - 1), exp(2 * -0.5 + 0.25))
        #expect(found.count == Self.labels.count)
        for (confidence, odds) in zip(found, [leaf, crest, 1]) {
            #expect(abs(Double(confidence) - odds / (1 + crest + leaf)) < 1e-7)
        }
    }

    @Test(
        "The confidence of a single logo is a logistic function of its score",
        arguments: [-300, -40, -3, 0, 0.1, 7, 300] as [Float])
    func oneLogo(score: Float) {
        let found = head([.init(label: "leaf", slope: 0.5, offset: -1)]).confidences([score], in: ["leaf", "other"])
        let odds = exp(0.5 * Double(score) - 1)
        #expect(abs(Double(found[0]) - odds / (1 + odds)) < 1e-7)
        #expect(abs(Double(found[1]) - 1 / (1 + odds)) < 1e-7)
    }

    @Test(
        "Confidences are between 0 and 1 and add up to 1, even for very large scores",
        arguments: [[0, 0], [1e6, -1e6], [3e38, 3e38], [-3e38, -3e38], [-3e38, 3e38], [80, 81]] as [[Float]])
    func sum(scores: [Float]) {
        let found = twoLogos.confidences(scores, in: Self.labels)
        #expect(found.allSatisfy { (0...1).contains($0) })
        #expect(abs(found.reduce(0, +) - 1) < 1e-6)
    }

    @Test("A detector with several logos survives a round trip") func roundTrip() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model(twoLogos).write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.detector == twoLogos && read.labels == Self.labels)
        }
    }

    private static func headJSON(
        _ logos: String, levels: String = "[96]", stride: Int = 16, span: String = "44"
    ) -> String {
        "{\"levels\":\(levels),\"marks\":[\(logos)],\"span\":\(span),\"stride\":\(stride)}"
    }

    private static func logo(_ label: String, slope: String = "1", offset: String = "0") -> String {
        "{\"label\":\"\(label)\",\"offset\":\(offset),\"slope\":\(slope)}"
    }

    @Test("The confidence of a peak does not depend on other logos")
    func peakConfidence() {
        for (logo, expected) in [(0, 1 / (1 + exp(-(0.5 * 3 - 1)))), (1, 1 / (1 + exp(-(2.0 * 3 + 0.25))))] {
            #expect(abs(Double(twoLogos.logos[logo].confidence(3)) - expected) < 1e-6)
        }
    }

    @Test("Box regression needs four more channels, and is stored only if it is there")
    func boxRegression() throws {
        var withBoxes = twoLogos
        withBoxes.regressesBoxes = true
        #expect(withBoxes.problem(maps: 6, labels: Self.labels) == nil)
        #expect(withBoxes.problem(maps: 2, labels: Self.labels)?.contains("2 logos and boxes") == true)
        #expect(twoLogos.problem(maps: 6, labels: Self.labels) != nil)
        for head in [twoLogos, withBoxes] {
            let data = try JSONEncoder().encode(head)
            #expect(try JSONDecoder().decode(DetectorHead.self, from: data) == head)
            #expect(String(decoding: data, as: UTF8.self).contains("\"boxes\"") == head.regressesBoxes)
        }
    }

    @Test("A logo stores its threshold if it has one") func thresholds() throws {
        var head = twoLogos
        head.logos[1].threshold = 0.625
        let data = try JSONEncoder().encode(head)
        #expect(try JSONDecoder().decode(DetectorHead.self, from: data) == head)
        #expect(String(decoding: data, as: UTF8.self).components(separatedBy: "\"threshold\":").count == 2)
    }

    @Test(
        "The training record has the thresholds of a head of version 1, which has no box regression",
        arguments: [(false, 0.3), (true, 0.5)])
    func recordedThreshold(regressesBoxes: Bool, expected: Double) throws {
        var rules = twoLogos
        rules.regressesBoxes = regressesBoxes
        rules.logos[1].threshold = 0.625
        let record = TrainingRecord(
            .detector(DetectorHyperparameters()), thresholds: ["crest": 0.3, "leaf": 0.3, "other": 0.3])
        let network = try Network.logoDetector(logos: 2, regressesBoxes: regressesBoxes)
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: Self.labels,
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill), detector: rules,
            training: record)
        #expect(model.detectionThreshold(of: "crest") == expected)
        #expect(model.detectionThreshold(of: "leaf") == 0.625)
    }

    private static let both = logo("crest") + "," + logo("leaf")

    @Test(
        "An invalid detector head is rejected with its reason",
        arguments: [
            (headJSON(logo("leaf")), "1 logo for a network with 2 output channels"),
            (headJSON(""), "0 logos for a network with 2 output channels"),
            (headJSON(both + "," + logo("other")), "3 logos for a network with 2 output channels"),
            (headJSON(logo("leaf") + "," + logo("leaf")), "the logo \"leaf\" is not a label, or appears twice"),
            (headJSON(logo("leaf") + "," + logo("tree")), "the logo \"tree\" is not a label, or appears twice"),
            (headJSON(logo("leaf") + "," + logo("crest", slope: "-1")), "a slope of -1"),
            (headJSON(logo("leaf") + "," + logo("crest", slope: "\"NaN\"")), "a slope of nan"),
            (headJSON(logo("leaf") + "," + logo("crest", offset: "\"Infinity\"")), "an offset of inf"),
            (headJSON(both.replacing("\"slope\":1", with: "\"slope\":1,\"threshold\":1.5")), "a threshold of 1.5"),
            (headJSON(both, levels: "[]"), "the levels []"),
            (headJSON(both, levels: "[96, 1000000]"), "each 16 to 4096"),
            (headJSON(both, stride: 0), "a stride of 0"),
            (headJSON(both, stride: 8), "heat maps of 6x6 from 96x96 pixels, expected 12x12"),
            (headJSON(both, stride: 20), "expected 5x5"),
            // From 96 pixels, strides of 16 to 19 give 6 positions.
            (headJSON(both, stride: 17), "heat maps of 20x6 from 306x96 pixels, expected 18x6"),
            (headJSON(both, stride: 19), "expected 20x6"),
            (headJSON(both, span: "-1"), "a span of -1"),
            (headJSON("7"), "imprint.spotting"), ("{}", "imprint.spotting"),
            (headJSON(both).replacing("marks", with: "mark"), "imprint.spotting"),
        ])
    func refused(detector: String, text: String) throws {
        try withChanged(try model(twoLogos), metadata: ["imprint.spotting": detector]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A long stride is checked in each dimension, although the tensors of a large square image are too large")
    func longStrides() throws {
        func problem(stride: Int, height: Int, width: Int, channels: Int = 1) throws -> String? {
            let network = try Network(
                name: "long", input: TensorShape(height: 100, width: 100, channels: 3),
                nodes: [
                    Network.Node(
                        name: "features", layer: Convolution(outputChannels: channels, kernelSize: 1),
                        inputs: ["input"]),
                    Network.Node(
                        name: "head",
                        layer: Convolution(
                            outputChannels: 1, kernelSize: Size2D(height: height, width: width),
                            stride: Size2D(height: height, width: width)),
                        inputs: ["features"]),
                ])
            return DetectorHead(levels: [96], stride: stride, span: 44, logos: [.init(label: "leaf")])
                .strideProblem(network)
        }
        #expect(try problem(stride: 100, height: 100, width: 100) == nil)
        let found = try problem(stride: 199, height: 100, width: 100)
        #expect(found?.contains("heat maps of 398x1 from 39800x100 pixels, expected 200x1") == true, "\(found ?? "")")
        let wide = try problem(stride: 100, height: 100, width: 80)
        #expect(wide?.contains("expected 1x101") == true, "\(wide ?? "")")
        let large = try problem(stride: 199, height: 100, width: 100, channels: 1000)
        #expect(large?.contains("a network that does not accept 39800x100 pixels") == true, "\(large ?? "")")
    }

    @Test(
        "A head that does not have one output per logo, and a detector without logos, are rejected",
        arguments: [(5, ["crest"], "a head with 5 outputs for 1 logo"), (4, [], "no logo, expected at least one")]
            as [(Int, [String], String)])
    func outputsOfHead(maps: Int, logos: [String], text: String) throws {
        // The rules claim that the last four heat maps are boxes, but a layer of its own computes boxes.
        let names = (0..<maps).map { "logo \($0)" }
        let model = try model(head(names.map { .init(label: $0) }), labels: names + ["other"], maps: maps)
        let rules = Self.headJSON(logos.map { Self.logo($0) }.joined(separator: ","))
            .replacing("{\"levels\"", with: "{\"boxes\":true,\"levels\"")
        try withChanged(
            model, metadata: ["imprint.spotting": rules, "imprint.labels": json(logos + ["other"])]
        ) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("Detectors with boxes and added logos can be read", arguments: [false, true])
    func addedLogo(regressesBoxes: Bool) throws {
        var rules = twoLogos
        rules.regressesBoxes = regressesBoxes
        let network = try Network.logoDetector(logos: 2, regressesBoxes: regressesBoxes)
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: Self.labels,
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill), detector: rules)
        let personalization = Personalization(
            baseDigest: try model.identity, addedLabels: ["new"], columns: [.sample("new", 128)],
            record: .init(examples: [:]))
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            for detector in [model, try model.personalized(with: personalization)] {
                try detector.write(to: file)
                #expect(try ModelFile(contentsOf: file).labels == detector.labels)
            }
        }
    }

    @Test(
        "Exactly one label is not a logo",
        arguments: [
            (["crest", "leaf"], "0 labels besides the logos, expected one"),
            (["crest", "leaf", "other", "more"], "2 labels besides the logos, expected one"),
            (["crest", "leaf", "leaf"], "the label \"leaf\" twice"),
        ])
    func oneOther(labels: [String], text: String) throws {
        try withChanged(try model(twoLogos), metadata: ["imprint.labels": json(labels)]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A head with many logos is checked in linear time", .timeLimit(.minutes(1))) func manyLogos() {
        let labels = (0..<200_000).map { "logo \($0)" }
        let manyLogos = head(labels.reversed().map { DetectorHead.Logo(label: $0) })
        #expect(manyLogos.problem(maps: labels.count, labels: labels + ["other"]) == nil)
    }

    @Test("An invalid detector head is not written") func notWritten() throws {
        try withTemporaryFolder { folder in
            for (labels, maps) in [
                (["leaf", "other"], 2), (["leaf", "crest"], 2), (Self.labels, 1), (Self.labels, 3),
            ] {
                let model = try model(twoLogos, labels: labels, maps: maps)
                #expect(throws: ModelFileError.self) { try model.write(to: folder.appending(path: "m.imprint")) }
            }
        }
    }

    @Test("A network with a fixed input size cannot be a detector") func oneSize() throws {
        var builder = NetworkBuilder(name: "flat", input: TensorShape(height: 32, width: 32, channels: 3))
        builder.add(Flatten())
        builder.add(Dense(outputChannels: 1), named: "head")
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark", "logo"],
            preprocessing: Preprocessing(width: 32, height: 32), detector: head([.init(label: "logo")]))
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try model.write(to: folder.appending(path: "m.imprint"))
            }
            #expect(error.map { "\($0)".contains("colour images of any size") } == true)
        }
    }
}
