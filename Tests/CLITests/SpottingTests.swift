import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import TestSupport
import Testing

/// What the command line says of artwork and of models that spot a mark; training itself is tested in the library.
@Suite struct SpottingTests {
    /// A model that has learnt nothing.
    private func writeModel(marks: [String], to file: URL) throws {
        let network = try Network.logoDetector(marks: marks.count)
        var preprocessing = Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill)
        (preprocessing.mean, preprocessing.scale) = ([128, 128, 128], [1 / 64, 1 / 64, 1 / 64])
        try ModelFile(
            network: network, parameters: try Parameters(network, seed: 2), labels: ["dark"] + marks,
            preprocessing: preprocessing,
            detector: DetectorHead(
                levels: [96, 136], stride: 16, span: 44,
                marks: marks.map { DetectorHead.Mark(label: $0, slope: 0.5, offset: -1) })
        ).write(to: file)
    }

    @Test("Boxes come with the observations, in words and in JSON", arguments: [["bright"], ["bright", "leaf"]])
    func boxes(marks: [String]) throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 4)
            try writeModel(marks: marks, to: folder.appending(path: "spot.imprint"))
            let photo = "photos/dark/0.png"
            let json = try imprint("classify", "spot.imprint", photo, "--boxes", "--json", folder: folder)
            #expect(json.status == 0, "\(json.errors)")
            let line = try #require(json.lines.first)
            let labels = (line["observations"] as? [[String: Any]])?.map { $0["label"] as? String }
            let boxes = try #require(line["boxes"] as? [Any])
            #expect(boxes.count == 1 + marks.count && Set(labels ?? []) == Set(["dark"] + marks))
            for (label, box) in zip(labels ?? [], boxes) {
                let sides = (box as? [String: Double]).map { Set($0.keys) }
                #expect(sides == (label == "dark" ? nil : ["x", "y", "width", "height"]))
            }
            let words = try imprint("classify", "spot.imprint", photo, "--boxes", folder: folder)
            #expect(marks.allSatisfy(words.output.contains))
            #expect(words.output.components(separatedBy: " at x ").count == 1 + marks.count)
            let plain = try imprint("classify", "spot.imprint", photo, "--json", folder: folder)
            #expect(plain.lines.first?.keys.sorted() == ["file", "observations"])
            let table = try imprint("inspect", "spot.imprint", folder: folder)
            #expect(table.output.contains((["dark"] + marks).joined(separator: ", ")))
            let evaluated = try imprint("evaluate", "spot.imprint", "photos", "--json", folder: folder)
            #expect((evaluated.lines.last?["labels"] as? [String])?.count == 1 + marks.count, "\(evaluated.errors)")
        }
    }

    @Test(
        "Exactly one folder of photos has no artwork",
        arguments: [
            (["Leaf"], "the labels bright, dark without artwork, expected one"),
            (["Leaf", "Crest"], "without artwork, expected one, whose photos show no Crest, Leaf"),
            (["dark", "bright"], "no label but bright, dark, expected one more"),
        ])
    func labels(artwork: [String], text: String) throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 2)
            let logo = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png")
            let options = artwork.flatMap { ["--artwork", "\($0)=\(logo.path)"] }
            let run = try run(tool, ["train", "photos", "--output", "m.imprint"] + options, folder: folder)
            #expect(run.status == 1 && run.errors.contains(text), "\(run.errors)")
        }
    }

    @Test("Models that were not made from artwork have no boxes") func noBoxes() throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 4)
            let photo = "photos/dark/0.png"
            let options = "--epochs 1 --input-size 16 --width 0.25 --output m.imprint"
            #expect(try shell("$imprint train photos \(options)", folder: folder).status == 0)
            let other = try imprint("classify", "m.imprint", photo, "--boxes", folder: folder)
            #expect(other.status == 64)
            #expect(other.errors.contains("train one with --artwork"))
        }
    }
}
