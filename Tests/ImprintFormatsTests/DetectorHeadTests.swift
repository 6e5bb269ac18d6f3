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

    private func rules(_ marks: [DetectorHead.Mark]) -> DetectorHead {
        DetectorHead(levels: [96, 136], stride: 16, span: 44, marks: marks)
    }

    private var twoLogos: DetectorHead {
        rules([.init(label: "crest", slope: 0.5, offset: -1), .init(label: "leaf", slope: 2, offset: 0.25)])
    }

    /// A model that has learnt nothing.
    private func weights(
        _ detector: DetectorHead, labels: [String] = labels, maps: Int = 2
    ) throws -> ModelFile {
        let network = try Network.logoDetector(marks: maps)
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: labels,
            preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill), detector: detector)
    }

    @Test("Confidences are the multinomial logistic of the marks' curves, by label")
    func confidences() {
        let found = twoLogos.confidences([3, -0.5], in: Self.labels)
        let (crest, leaf) = (exp(0.5 * 3 - 1), exp(2 * -0.5 + 0.25))
        for (confidence, odds) in zip(found, [leaf, crest, 1]) {
            #expect(abs(Double(confidence) - odds / (1 + crest + leaf)) < 1e-7)
        }
    }

    @Test("Of one mark it is the logistic curve", arguments: [-300, -40, -3, 0, 0.1, 7, 300] as [Float])
    func oneMark(score: Float) {
        let found = rules([.init(label: "leaf", slope: 0.5, offset: -1)]).confidences([score], in: ["leaf", "other"])
        let odds = exp(0.5 * Double(score) - 1)
        #expect(abs(Double(found[0]) - odds / (1 + odds)) < 1e-7)
        #expect(abs(Double(found[1]) - 1 / (1 + odds)) < 1e-7)
    }

    @Test(
        "Confidences lie within 0…1 and add up to 1, however large the logits",
        arguments: [[0, 0], [1e6, -1e6], [3e38, 3e38], [-3e38, -3e38], [-3e38, 3e38], [80, 81]] as [[Float]])
    func sum(scores: [Float]) {
        let found = twoLogos.confidences(scores, in: Self.labels)
        #expect(found.allSatisfy { (0...1).contains($0) })
        #expect(abs(found.reduce(0, +) - 1) < 1e-6)
    }

    @Test("A file with several marks comes back as it was") func roundTrip() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try weights(twoLogos).write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.detector == twoLogos && read.labels == Self.labels)
        }
    }

    private static func text(_ marks: String, levels: String = "[96]", stride: Int = 16, span: String = "44") -> String
    {
        "{\"levels\":\(levels),\"marks\":[\(marks)],\"span\":\(span),\"stride\":\(stride)}"
    }

    private static func mark(_ label: String, slope: String = "1", offset: String = "0") -> String {
        "{\"label\":\"\(label)\",\"offset\":\(offset),\"slope\":\(slope)}"
    }

    private static let both = mark("crest") + "," + mark("leaf")

    @Test(
        "A file whose rules cannot be is refused in words",
        arguments: [
            (text(mark("leaf")), "1 marks for a network with 2 maps"),
            (text(""), "0 marks for a network with 2 maps"),
            (text(both + "," + mark("other")), "3 marks for a network with 2 maps"),
            (text(mark("leaf") + "," + mark("leaf")), "the mark \"leaf\" is no label, or there twice"),
            (text(mark("leaf") + "," + mark("tree")), "the mark \"tree\" is no label, or there twice"),
            (text(mark("leaf") + "," + mark("crest", slope: "-1")), "a slope of -1"),
            (text(mark("leaf") + "," + mark("crest", slope: "\"NaN\"")), "a slope of nan"),
            (text(mark("leaf") + "," + mark("crest", offset: "\"Infinity\"")), "an offset of inf"),
            (text(both, levels: "[]"), "the levels []"),
            (text(both, levels: "[96, 1000000]"), "each 16 to 4096"),
            (text(both, stride: 0), "a stride of 0"), (text(both, span: "-1"), "a span of -1"),
            (text("7"), "imprint.spotting"), ("{}", "imprint.spotting"),
            (text(both).replacing("marks", with: "mark"), "imprint.spotting"),
        ])
    func refused(detector: String, text: String) throws {
        try withChanged(try weights(twoLogos), metadata: ["imprint.spotting": detector]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test(
        "Exactly one label is no mark",
        arguments: [
            (["crest", "leaf"], "0 labels beside the marks, expected one"),
            (["crest", "leaf", "other", "more"], "2 labels beside the marks, expected one"),
            (["crest", "leaf", "leaf"], "the label \"leaf\" twice"),
        ])
    func oneOther(labels: [String], text: String) throws {
        try withChanged(try weights(twoLogos), metadata: ["imprint.labels": json(labels)]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("No file with rules that cannot be is written") func notWritten() throws {
        try withTemporaryFolder { folder in
            for (labels, maps) in [
                (["leaf", "other"], 2), (["leaf", "crest"], 2), (Self.labels, 1), (Self.labels, 3),
            ] {
                let weights = try weights(twoLogos, labels: labels, maps: maps)
                #expect(throws: ModelFileError.self) { try weights.write(to: folder.appending(path: "m.imprint")) }
            }
        }
    }

    @Test("A network with a fixed input size cannot be a detector") func oneSize() throws {
        var builder = NetworkBuilder(name: "flat", input: TensorShape(height: 32, width: 32, channels: 3))
        builder.add(Flatten())
        builder.add(Dense(outputChannels: 1), named: "head")
        let network = try builder.network()
        let weights = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark", "logo"],
            preprocessing: Preprocessing(width: 32, height: 32), detector: rules([.init(label: "logo")]))
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try weights.write(to: folder.appending(path: "m.imprint"))
            }
            #expect(error.map { "\($0)".contains("pictures of any size") } == true)
        }
    }
}
