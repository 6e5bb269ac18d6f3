import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// The import of BlazeFace from TensorFlow Lite files.
@Suite struct TFLiteImportTests {
    private static var importer: ModelImporter {
        var importer = ModelImporter()
        importer.detector = .blazeFace
        return importer
    }

    private func read(_ sample: TFLiteSample, _ change: (inout ModelImporter) -> Void = { _ in }) throws -> ModelFile {
        try importModel(sample.bytes, ending: "tflite") {
            $0.detector = .blazeFace
            change(&$0)
        }.model
    }

    private func message(
        _ sample: TFLiteSample, _ change: (inout ModelImporter) -> Void = { _ in }
    ) -> String {
        do {
            _ = try read(sample, change)
            return "imported"
        } catch { return "\(error)" }
    }

    @Test("The scores and the values of the anchors become one output, and the maps become levels") func detector()
        throws
    {
        let model = try read(TFLiteSample())
        let levels = [AnchorHead.Level(stride: 2, anchors: 2), AnchorHead.Level(stride: 4, anchors: 3)]
        #expect(model.anchors == AnchorHead(levels: levels, valuesPerAnchor: 4, iouThreshold: 0.3))
        #expect(model.labels == ["face"] && model.network.output.count == 44 * 5)
        #expect(model.preprocessing.mean == [127.5, 127.5, 127.5] && model.preprocessing.cropAndScale == .scaleFit)
        // 0x3000 and 0xB000 are 1/8 and −1/8 as float16.
        let weights = try #require(
            model.parameters.layout.entries.first { $0.node == "first" && $0.parameter.name == "weight" })
        #expect(try #require(model.parameters[weights.name]).allSatisfy { abs($0) == 0.125 })
        #expect(model.network.nodes.contains { $0.layer is Affine })
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "m.imprint")
            try model.write(to: file)
            let read = try ModelFile(contentsOf: file)
            #expect(read.head == model.head && read.format == 4)
        }
    }

    @Test("More values for each anchor, such as landmarks, are part of the output") func landmarks() throws {
        let model = try read(TFLiteSample(values: 16))
        #expect(model.anchors?.valuesPerAnchor == 16 && model.network.output.count == 44 * 17)
    }

    @Test("Scores with a sigmoid get no second one") func sigmoids() throws {
        let (logits, model) = (try read(TFLiteSample()), try read(TFLiteSample(hasSigmoids: true)))
        #expect(model.anchors == logits.anchors)
        #expect(model.network.nodes.count(where: { $0.layer is Sigmoid }) == 1)
        let image: [Float] = (0..<model.network.input.count).map { index in
            let level = Float(index * 37 % 64)
            return level / 32 - 1
        }
        #expect(try model.prediction(image) == logits.prediction(image))
    }

    @Test("Settings that do not apply, and other models, are errors") func refusals() {
        let sample = TFLiteSample()
        #expect(message(sample) { $0.detector = nil }.contains("Imprint imports only blazeface"))
        #expect(message(sample) { $0.detector = .centerFace }.contains("centerface is an ONNX model"))
        #expect(message(sample) { $0.inputSize = 64 }.contains("images of 8x8 pixels"))
        #expect(message(sample) { $0.cropAndScale = .centerCrop }.contains("without a crop and scale mode"))
        #expect(message(sample) { $0.labels = ["a", "b"] }.contains("2 for 1 output"))
        var single = sample
        single.outputs.removeLast()
        #expect(message(single).contains("Expected the outputs of blazeface"))
        let resized = TFLiteSample { sample in
            _ = sample.operation(23, [0], to: [1, 16, 16, 3], "larger")
        }
        #expect(message(resized).contains("RESIZE_BILINEAR \"larger\""))
        #expect(message(TFLiteSample(values: 3)).contains("3 values for each anchor"))
    }

    @Test("A truncated file is an error at any length") func truncated() throws {
        let bytes = TFLiteSample().bytes
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "m.tflite")
            // The importer does not need the last byte, the zero after the last weights.
            for length in stride(from: 0, to: bytes.count - 1, by: 7) {
                try Data(bytes[..<length]).write(to: url)
                let trial = ImportTrial(url, Self.importer)
                #expect(trial.error is ImportError)
                trial.check(weights: bytes.count * 2, "\(length) bytes")
            }
        }
    }

    @Test("Any byte of a file may have other values without a crash") func mutants() throws {
        let original = TFLiteSample().bytes
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "m.tflite")
            var refused = 0
            // Fields have 4 bytes, so all positions in a field occur.
            for offset in stride(from: 0, to: original.count, by: 3) {
                for value in [0, 0x7F, 0xFF, original[offset] &+ 1] as [UInt8] where value != original[offset] {
                    var bytes = original
                    bytes[offset] = value
                    // Large offsets and lengths need all four bytes.
                    if value == 0xFF { for index in offset..<min(offset + 4, bytes.count) { bytes[index] = value } }
                    try Data(bytes).write(to: url)
                    let trial = ImportTrial(url, Self.importer)
                    trial.check(weights: bytes.count * 2, "byte \(offset) is \(value)")
                    if trial.error != nil { refused += 1 }
                }
            }
            #expect(refused > original.count / 4)
        }
    }
}
