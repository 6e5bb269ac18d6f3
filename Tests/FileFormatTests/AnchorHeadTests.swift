import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintModel

/// The rules of an anchor-based detector in a model file.
@Suite struct AnchorHeadTests {
    private static let head = AnchorHead(
        levels: [.init(stride: 8, anchors: 2), .init(stride: 16, anchors: 1)], valuesPerAnchor: 5, iouThreshold: 0.3)

    /// Returns a detector with random parameters for images of 48x32 pixels: 24 · 2 and 6 anchors.
    private func model(_ labels: [String] = ["face"], isSigmoid: Bool = true) throws -> ModelFile {
        var net = NetworkBuilder(name: "anchors", input: TensorShape(height: 32, width: 48, channels: 3))
        let first = net.add(Convolution(outputChannels: 2, kernelSize: 8, stride: 8), named: "first")
        let second = net.add(Convolution(outputChannels: 1, kernelSize: 2, stride: 2), named: "second", to: [first])
        let flat = [first, second].enumerated().map { net.add(Flatten(), named: "flat\($0)", to: [$1]) }
        var scores = net.add(Concat(), named: "scores", to: flat)
        if isSigmoid { scores = net.add(Sigmoid(), named: "probabilities", to: [scores]) }
        let boxes = net.add(Dense(outputChannels: 54 * 5), named: "boxes", to: [flat[0]])
        net.add(Concat(), named: "output", to: [scores, boxes])
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: labels,
            preprocessing: Preprocessing(width: 48, height: 32, cropAndScale: .scaleFit), anchors: Self.head)
    }

    @Test("An anchor-based detector survives a round trip, in format 4", arguments: ModelFile.Storage.allCases)
    func roundTrip(storage: ModelFile.Storage) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model().write(to: file, as: storage)
            let read = try ModelFile(contentsOf: file)
            #expect(read.anchors == Self.head && read.head == .anchors(Self.head) && read.format == 4)
        }
    }

    private static func rules(_ levels: String, _ values: String = "5", _ overlap: String = "0.3") -> String {
        "{\"levels\":\(levels),\"maximumOverlap\":\(overlap),\"valuesPerAnchor\":\(values)}"
    }

    private static let valid = "[{\"stride\":8,\"anchors\":2},{\"stride\":16,\"anchors\":1}]"

    @Test(
        "Invalid rules are rejected with their reason",
        arguments: [
            (rules("[]"), "invalid levels"), (rules("[{\"stride\":0,\"anchors\":2}]"), "invalid levels"),
            (rules("[{\"stride\":8,\"anchors\":9223372036854775807}]"), "invalid levels"),
            (rules("[{\"stride\":-8,\"anchors\":2}]"), "invalid levels"),
            (rules("[{\"stride\":7,\"anchors\":2}]"), "expected multiples of each stride"),
            (rules("[{\"stride\":8,\"anchors\":2}]"), "for 48 anchors and 1 label, expected 288 values"),
            (rules(valid, "3"), "3 values for each anchor"), (rules(valid, "6"), "expected 378 values"),
            (rules(valid, "9223372036854775807"), "values for each anchor"),
            (rules(valid, "5", "0"), "a maximumOverlap of 0,"), (rules(valid, "5", "2"), "a maximumOverlap of 2,"),
            ("{}", "imprint.anchors"), ("[]", "imprint.anchors"), ("", "imprint.anchors"),
        ])
    func refused(rules: String, text: String) throws {
        try withChanged(try model(), metadata: ["imprint.anchors": rules]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test(
        "A network that does not fit the rules is not written",
        arguments: [(0, "expected 378"), (1, "a sigmoid of 54")])
    func unfit(number: Int, text: String) throws {
        let model = number == 0 ? try model(["face", "hand"]) : try model(isSigmoid: false)
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) { try model.write(to: folder.appending(path: "m")) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("Rules for more values than any network has are rejected") func overflow() throws {
        let side = 26_752
        var net = NetworkBuilder(name: "sums", input: TensorShape(height: side, width: side, channels: 3))
        net.add(GlobalAveragePool())
        let head = AnchorHead(
            levels: Array(repeating: .init(stride: 1, anchors: 64), count: 16), valuesPerAnchor: 4, iouThreshold: 0.3)
        // 16 · 64 · 26752² anchors, times the number of labels, are more than 2⁶³ values.
        let problem = head.problem(try net.network(), labelCount: 13_000_000)
        #expect(problem?.hasSuffix("and 13000000 labels, expected more values") == true, "\(problem ?? "none")")
    }

    @Test("A file with the rules of two kinds of detectors is rejected") func twoKinds() throws {
        let points = "{\"maximumOverlap\":0.3,\"sideMultiple\":16,\"stride\":4}"
        try withChanged(try model(), metadata: ["imprint.centerPoints": points]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains("rules of two kinds of detectors") == true)
        }
    }
}
