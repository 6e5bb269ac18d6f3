import Foundation
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The rules of a center-point detector in a model file.
@Suite struct CenterPointHeadTests {
    private static let head = CenterPointHead(stride: 4, sideMultiple: 16, iouThreshold: 0.3)

    /// Returns a detector with random parameters.
    private func model(
        _ head: CenterPointHead = head, labels: [String] = ["face"], maps: Int = 1, height: Int = 32, width: Int = 48,
        channels: Int = 3, stride: Int = 4, isSigmoid: Bool = true, isConcatenation: Bool = true
    ) throws -> ModelFile {
        var net = NetworkBuilder(
            name: "points", input: TensorShape(height: height, width: width, channels: channels))
        let cells = net.add(
            Convolution(outputChannels: maps, kernelSize: Size2D(stride), stride: Size2D(stride)), named: "cells")
        var heat = cells
        if isSigmoid { heat = net.add(Sigmoid(), named: "heat", to: [cells]) }
        let boxes = net.add(Convolution(outputChannels: 4, kernelSize: 1), named: "boxes", to: [cells])
        if isConcatenation {
            net.add(Concat(), named: "output", to: [heat, boxes])
        } else {
            net.add(Concat(), named: "joined", to: [heat, boxes])
            net.add(Convolution(outputChannels: maps + 4, kernelSize: 1), named: "output")
        }
        let network = try net.network()
        return ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: labels,
            preprocessing: Preprocessing(
                width: width, height: height, channels: channels, cropAndScale: .scaleFill),
            centerPoints: head)
    }

    @Test("A center-point detector survives a round trip, in format 3", arguments: ModelFile.Storage.allCases)
    func roundTrip(storage: ModelFile.Storage) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            let model = try model(labels: ["face", "hand"], maps: 2)
            try model.write(to: file, as: storage)
            let read = try ModelFile(contentsOf: file)
            #expect(read.centerPoints == Self.head && read.detector == nil && read.labels == ["face", "hand"])
            #expect(read.format == 3 && read.head == .centerPoints(Self.head) && read.network == model.network)
            let again = folder.appending(path: "again.imprint")
            try read.write(to: again, as: storage)
            #expect(try ModelFile(contentsOf: again).format == 3)
        }
    }

    @Test("The JSON has the documented keys") func json() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        let text = String(decoding: try encoder.encode(Self.head), as: UTF8.self)
        #expect(text.contains("\"maximumOverlap\":0.3") && text.contains("\"sideMultiple\":16,\"stride\":4"))
    }

    private static func headJSON(_ stride: String = "4", _ multiple: String = "16", _ overlap: String = "0.3") -> String
    {
        "{\"maximumOverlap\":\(overlap),\"sideMultiple\":\(multiple),\"stride\":\(stride)}"
    }

    @Test(
        "Invalid rules are rejected with their reason",
        arguments: [
            (headJSON("0"), "a stride of 0"), (headJSON("-4"), "a stride of -4"),
            (headJSON("1000"), "a stride of 1000"),
            (headJSON("4", "0"), "a side multiple of 0"), (headJSON("4", "6"), "a side multiple of 6"),
            (headJSON("4", "9223372036854775807"), "a side multiple of 9223372036854775807"),
            (headJSON("4", "-9223372036854775808"), "a side multiple of -9223372036854775808"),
            (headJSON("4", "64"), "expected multiples of 64"),
            (headJSON("4", "16", "0"), "a maximumOverlap of 0"),
            (headJSON("4", "16", "1.5"), "a maximumOverlap of 1.5"),
            (headJSON("4", "16", "\"NaN\""), "a maximumOverlap of nan"),
            (headJSON("2", "16"), "no heat map with a stride of 2"),
            (headJSON("8", "16"), "no heat map with a stride of 8"),
            (headJSON("4.5"), "imprint.centerPoints"), (headJSON("\"4\""), "imprint.centerPoints"),
            ("{}", "imprint.centerPoints"), ("[]", "imprint.centerPoints"), ("", "imprint.centerPoints"),
        ])
    func refused(rules: String, text: String) throws {
        try withChanged(try model(), metadata: ["imprint.centerPoints": rules]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A file with the rules of two kinds of detectors is rejected") func twoKinds() throws {
        let logos = "{\"levels\":[96],\"marks\":[],\"span\":44,\"stride\":16}"
        try withChanged(try model(), metadata: ["imprint.spotting": logos]) { file in
            let error = #expect(throws: ModelFileError.self) { try ModelFile(contentsOf: file) }
            #expect(error?.description.contains("rules of two kinds of detectors") == true)
        }
    }

    @Test(
        "A network that does not fit the rules is neither written nor read",
        arguments: [
            (0, "2 labels for a network with 5 output channels, expected 4 fewer"),
            (1, "0 labels for a network with 5 output channels"),
            (2, "an input of 40x32 pixels, expected multiples of 16"),
            (3, "no heat map with a stride of 4"), (4, "not a concatenation that starts with a sigmoid heat map"),
            (5, "not a concatenation that starts with a sigmoid heat map"),
            (6, "for images with 1 channel, expected 3"),
        ])
    func unfit(number: Int, text: String) throws {
        let model =
            switch number {
            case 0: try model(labels: ["face", "hand"])
            case 1: try model(labels: [])
            case 2: try model(width: 40)
            case 3: try model(stride: 2)
            case 4: try model(isSigmoid: false)
            case 5: try model(isConcatenation: false)
            default: try model(channels: 1)
            }
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try model.write(to: folder.appending(path: "m.imprint"))
            }
            #expect(error?.description.contains(text) == true, "\(String(describing: error))")
        }
    }

    @Test("A network for one image size cannot be a center-point detector") func oneSize() throws {
        var net = NetworkBuilder(name: "flat", input: TensorShape(height: 32, width: 32, channels: 3))
        let cells = net.add(Convolution(outputChannels: 1, kernelSize: 4, stride: 4), named: "cells")
        // The parameters depend on the size of the image.
        let scaled = net.add(Affine(extent: .values), named: "affine", to: [cells])
        let heat = net.add(Sigmoid(), named: "heat", to: [scaled])
        let boxes = net.add(Convolution(outputChannels: 4, kernelSize: 1), named: "boxes", to: [cells])
        net.add(Concat(), named: "output", to: [heat, boxes])
        let network = try net.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["face"],
            preprocessing: Preprocessing(width: 32, height: 32), centerPoints: Self.head)
        try withTemporaryFolder { folder in
            let error = #expect(throws: ModelFileError.self) {
                try model.write(to: folder.appending(path: "m.imprint"))
            }
            #expect(error?.description.contains("for images of 32x16 pixels") == true, "\(String(describing: error))")
        }
    }
}
