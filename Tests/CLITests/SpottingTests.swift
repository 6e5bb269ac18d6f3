import Foundation
import ImprintFormats
import ImprintImages
import ImprintNetwork
import TestSupport
import Testing

/// What the command line says of artwork and of models that spot a mark; training itself is tested in the library.
@Suite struct SpottingTests {
    /// A model that has learnt nothing.
    private func writeModel(to file: URL) throws {
        let network = try Network.logospot()
        var preprocessing = Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill)
        (preprocessing.mean, preprocessing.scale) = ([128, 128, 128], [1 / 64, 1 / 64, 1 / 64])
        try WeightsFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark", "logo"],
            preprocessing: preprocessing,
            spotting: Spotting(levels: [96, 136], stride: 16, span: 44, label: "logo", slope: 0.5, offset: -1)
        ).write(to: file)
    }

    @Test("Boxes come with the observations, in words and in JSON; other models have none") func boxes() throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 4)
            try writeModel(to: folder.appending(path: "spot.imprint"))
            let photo = "photos/dark/0.png"
            let json = try imprint("classify", "spot.imprint", photo, "--boxes", "--json", folder: folder)
            #expect(json.status == 0, "\(json.errors)")
            let line = try #require(json.lines.first)
            let labels = (line["observations"] as? [[String: Any]])?.map { $0["label"] as? String }
            let boxes = try #require(line["boxes"] as? [Any])
            #expect(boxes.count == 2)
            for (label, box) in zip(labels ?? [], boxes) {
                let sides = (box as? [String: Double]).map { Set($0.keys) }
                #expect(sides == (label == "logo" ? ["x", "y", "width", "height"] : nil))
            }
            let words = try imprint("classify", "spot.imprint", photo, "--boxes", folder: folder)
            #expect(words.output.contains(" at x ") && words.output.contains("logo"))
            let plain = try imprint("classify", "spot.imprint", photo, "--json", folder: folder)
            #expect(plain.lines.first?.keys.sorted() == ["file", "observations"])
            #expect(try imprint("inspect", "spot.imprint", folder: folder).status == 0)

            let options = "--epochs 1 --input-size 16 --width 0.25 --output m.imprint"
            #expect(try shell("$imprint train photos \(options)", folder: folder).status == 0)
            let other = try imprint("classify", "m.imprint", photo, "--boxes", folder: folder)
            #expect(other.status == 64)
            #expect(other.errors.contains("train one with --artwork"))
        }
    }

    @Test(
        "A model that spots a mark is refused where its rules cannot be",
        arguments: [
            Spotting(levels: [], stride: 16, span: 44, label: "logo"),
            Spotting(levels: [96], stride: 0, span: 44, label: "logo"),
            Spotting(levels: [96], stride: 16, span: 44, label: "elsewhere"),
            Spotting(levels: [96], stride: 16, span: 44, label: "logo", slope: -1),
        ])
    func unusable(spotting: Spotting) throws {
        let network = try Network.logospot()
        let weights = WeightsFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark", "logo"],
            preprocessing: Preprocessing(width: 96, height: 96), spotting: spotting)
        try withTemporaryFolder { folder in
            #expect(throws: WeightsFileError.self) { try weights.write(to: folder.appending(path: "m.imprint")) }
        }
    }

    @Test("A network that takes pictures of one size alone cannot spot") func oneSize() throws {
        var builder = NetworkBuilder(name: "flat", input: Shape(height: 32, width: 32, channels: 3))
        builder.add(Flatten())
        builder.add(Dense(outputChannels: 1), named: "head")
        let network = try builder.network()
        let weights = WeightsFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark", "logo"],
            preprocessing: Preprocessing(width: 32, height: 32),
            spotting: Spotting(levels: [96], stride: 16, span: 44, label: "logo"))
        try withTemporaryFolder { folder in
            let error = #expect(throws: WeightsFileError.self) {
                try weights.write(to: folder.appending(path: "m.imprint"))
            }
            #expect(error.map { "\($0)".contains("pictures of any size") } == true)
        }
    }
}
