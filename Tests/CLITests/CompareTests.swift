import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// Two models on the same photos, of which it is known what both say.
@Suite struct CompareTests {
    private static let greys: [UInt8] = [20, 110, 150, 240]

    /// A classifier by brightness: with x the mean from −1 to 1, the logit of "bright" is slope · x, that of "dark" its opposite.
    private func model(size: Int, slope: Float, labels: [String] = ["bright", "dark"]) throws -> ModelFile {
        var builder = NetworkBuilder(name: "brightness", input: TensorShape(height: size, width: size, channels: 3))
        builder.add(GlobalAveragePool(), named: "mean")
        builder.add(Dense(outputChannels: labels.count), named: "head")
        builder.add(Softmax(), named: "confidence")
        let network = try builder.network()
        let parameters = try Parameters(network, seed: 0)
        let signs: [Float] = labels.map { $0 == "bright" ? 1 : $0 == "dark" ? -1 : 0 }
        parameters["head.weight"] = (0..<3 * labels.count).map { signs[$0 % labels.count] * slope / 3 }
        return ModelFile(
            network: network, parameters: parameters, labels: labels,
            preprocessing: Preprocessing(width: size, height: size))
    }

    /// Photos of one grey each, one of them in a sub-folder, and a file that is none.
    private func writePhotos(to folder: URL) throws {
        for (place, grey) in Self.greys.enumerated() {
            let file = folder.appending(path: place == 0 ? "photos/below/0.png" : "photos/\(place).png")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try ImageFile.write(RasterImage(width: 9, height: 12, filledWith: grey), to: file)
        }
        try Data("a note".utf8).write(to: folder.appending(path: "photos/note.jpg"))
    }

    private func dark(_ grey: UInt8, slope: Double) -> Double {
        1 / (1 + exp(2 * slope * (Double(grey) / 127.5 - 1)))
    }

    @Test("Says how far two models of other sizes and orders of labels lie apart", arguments: [1, 3])
    func differences(threads: Int) throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try model(size: 8, slope: 2).write(to: folder.appending(path: "a"))
            try model(size: 5, slope: -0.5, labels: ["dark", "bright"]).write(to: folder.appending(path: "b"))
            let run = try imprint(
                "compare", "a", "b", "--images", "photos", "--threads", "\(threads)", "--json", folder: folder)
            #expect(run.status == 0 && run.lines.count == 1, "\(run.errors)")
            #expect(run.errors.contains("note.jpg: expected an image"))
            let line = try #require(run.lines.first)
            #expect(
                line.keys.sorted() == [
                    "agreeing", "greatest", "images", "labels", "maximumDifference", "meanDifference", "skipped",
                    "topAgreement",
                ])
            let differences = Self.greys.map { abs(dark($0, slope: 2) - dark($0, slope: -0.5)) }
            let greatest = try #require(differences.max())
            #expect(line["images"] as? Int == 4 && line["labels"] as? Int == 2)
            #expect(line["agreeing"] as? Int == 0 && line["topAgreement"] as? Double == 0)
            #expect(abs((line["maximumDifference"] as? Double ?? -1) - greatest) < 1e-5)
            #expect(abs((line["meanDifference"] as? Double ?? -1) - differences.reduce(0, +) / 4) < 1e-5)
            let place = try #require(differences.firstIndex(of: greatest))
            let worst = try #require(line["greatest"] as? [String: Any])
            #expect(
                (worst["file"] as? String)?.hasSuffix(place == 0 ? "photos/below/0.png" : "photos/\(place).png") == true
            )
            let sign = worst["label"] as? String == "dark" ? 1.0 : -1.0
            #expect(abs((worst["first"] as? Double ?? -1) - dark(Self.greys[place], slope: 2 * sign)) < 1e-5)
            #expect(abs((worst["second"] as? Double ?? -1) - dark(Self.greys[place], slope: -0.5 * sign)) < 1e-5)
            let skipped = try #require(line["skipped"] as? [[String: Any]])
            #expect(skipped.count == 1 && (skipped[0]["file"] as? String)?.hasSuffix("photos/note.jpg") == true)
        }
    }

    @Test("A model agrees with itself, whatever the order of its labels")
    func same() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try model(size: 8, slope: 1).write(to: folder.appending(path: "a"))
            try model(size: 8, slope: 1, labels: ["dark", "bright"]).write(to: folder.appending(path: "b"))
            let line = try #require(
                try imprint("compare", "a", "b", "--images", "photos", "--json", folder: folder).lines.first)
            let words = try imprint("compare", "a", "a", "--images", "photos", folder: folder)
            #expect(
                words.output.hasPrefix(
                    """
                    photos       4, 2 labels
                    same label   100.0 %, 4 of 4 photos
                    difference   at most 0, mean 0
                    greatest     bright 0.432 and 0.432 in
                    """), "\(words.output)")
            #expect(line["topAgreement"] as? Double == 1 && (line["maximumDifference"] as? Double ?? 1) < 1e-6)
        }
    }

    @Test("Models of other labels, and folders without photos that can be read, are refused")
    func refusals() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try model(size: 8, slope: 1).write(to: folder.appending(path: "a"))
            try model(size: 8, slope: 1, labels: ["bright", "dusk", "dark"]).write(to: folder.appending(path: "b"))
            let labels = try imprint("compare", "a", "b", "--images", "photos", "--json", folder: folder)
            #expect(labels.status == 1 && labels.output.isEmpty)
            #expect(
                labels.errors.contains("only the first has none, only the second has dusk. Compare"), "\(labels.errors)")
            let turned = try imprint("compare", "b", "a", "--images", "photos", folder: folder)
            #expect(turned.errors.contains("only the first has dusk, only the second has none"), "\(turned.errors)")
            try FileManager.default.createDirectory(
                at: folder.appending(path: "notes"), withIntermediateDirectories: true)
            let empty = try imprint("compare", "a", "a", "--images", "notes", folder: folder)
            #expect(empty.status == 1 && empty.errors.contains("notes"), "\(empty.errors)")
            for place in 0..<2 { try Data("a note".utf8).write(to: folder.appending(path: "notes/\(place).jpg")) }
            let unreadable = try imprint("compare", "a", "a", "--images", "notes", folder: folder)
            #expect(unreadable.status == 1 && unreadable.errors.contains("2 of 2"), "\(unreadable.errors)")
            #expect(try imprint("compare", "a", "a", folder: folder).status == 64)
        }
    }
}
