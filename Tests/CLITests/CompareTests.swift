import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// Comparisons of models whose confidences are known.
@Suite struct CompareTests {
    private static let greys: [UInt8] = [20, 110, 150, 240]

    /// Creates a classifier by brightness: for an image with the mean x, from −1 to 1, the logits of "bright" and "dark" are ±slope · x.
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

    /// Writes uniformly grey photos, one of them in a sub-folder, and a text file.
    private func writePhotos(to folder: URL) throws {
        for (index, grey) in Self.greys.enumerated() {
            let file = folder.appending(path: index == 0 ? "photos/below/0.png" : "photos/\(index).png")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try ImageFile.write(RasterImage(width: 9, height: 12, filledWith: grey), to: file)
        }
        try Data("a note".utf8).write(to: folder.appending(path: "photos/note.jpg"))
    }

    private func dark(_ grey: UInt8, slope: Double) -> Double {
        1 / (1 + exp(2 * slope * (Double(grey) / 127.5 - 1)))
    }

    @Test("compare measures the differences of models with other input sizes and label orders", arguments: [1, 3])
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
            let maximum = try #require(differences.max())
            #expect(line["images"] as? Int == 4 && line["labels"] as? Int == 2)
            #expect(line["agreeing"] as? Int == 0 && line["topAgreement"] as? Double == 0)
            #expect(abs((line["maximumDifference"] as? Double ?? -1) - maximum) < 1e-5)
            #expect(abs((line["meanDifference"] as? Double ?? -1) - differences.reduce(0, +) / 4) < 1e-5)
            let index = try #require(differences.firstIndex(of: maximum))
            let worst = try #require(line["greatest"] as? [String: Any])
            #expect(
                (worst["file"] as? String)?.hasSuffix(index == 0 ? "photos/below/0.png" : "photos/\(index).png") == true
            )
            let sign = worst["label"] as? String == "dark" ? 1.0 : -1.0
            #expect(abs((worst["first"] as? Double ?? -1) - dark(Self.greys[index], slope: 2 * sign)) < 1e-5)
            #expect(abs((worst["second"] as? Double ?? -1) - dark(Self.greys[index], slope: -0.5 * sign)) < 1e-5)
            let skipped = try #require(line["skipped"] as? [[String: Any]])
            #expect(skipped.count == 1 && (skipped[0]["file"] as? String)?.hasSuffix("photos/note.jpg") == true)
        }
    }

    @Test("A model does not differ from itself, in any order of its labels")
    func same() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try model(size: 8, slope: 1).write(to: folder.appending(path: "a"))
            try model(size: 8, slope: 1, labels: ["dark", "bright"]).write(to: folder.appending(path: "b"))
            let line = try #require(
                try imprint("compare", "a", "b", "--images", "photos", "--json", folder: folder).lines.first)
            let text = try imprint("compare", "a", "a", "--images", "photos", folder: folder)
            #expect(
                text.output.hasPrefix(
                    """
                    photos       4, 2 labels
                    same label   100.0 %, 4 of 4 photos
                    difference   maximum 0, mean 0
                    worst photo  bright 0.432 and 0.432 in
                    """), "\(text.output)")
            #expect(line["topAgreement"] as? Double == 1 && (line["maximumDifference"] as? Double ?? 1) < 1e-6)
        }
    }

    @Test("Models with different labels and folders without readable photos are errors")
    func invalidInputs() throws {
        try withTemporaryFolder { folder in
            try writePhotos(to: folder)
            try model(size: 8, slope: 1).write(to: folder.appending(path: "a"))
            try model(size: 8, slope: 1, labels: ["bright", "dusk", "dark"]).write(to: folder.appending(path: "b"))
            let labels = try imprint("compare", "a", "b", "--images", "photos", "--json", folder: folder)
            #expect(labels.status == 1 && labels.output.isEmpty)
            #expect(
                labels.errors.contains("only the first has none, only the second has dusk. Compare"), "\(labels.errors)"
            )
            let swapped = try imprint("compare", "b", "a", "--images", "photos", folder: folder)
            #expect(swapped.errors.contains("only the first has dusk, only the second has none"), "\(swapped.errors)")
            try FileManager.default.createDirectory(
                at: folder.appending(path: "notes"), withIntermediateDirectories: true)
            let empty = try imprint("compare", "a", "a", "--images", "notes", folder: folder)
            #expect(empty.status == 1 && empty.errors.contains("notes"), "\(empty.errors)")
            for index in 0..<2 { try Data("a note".utf8).write(to: folder.appending(path: "notes/\(index).jpg")) }
            let unreadable = try imprint("compare", "a", "a", "--images", "notes", folder: folder)
            #expect(unreadable.status == 1 && unreadable.errors.contains("2 of 2"), "\(unreadable.errors)")
            #expect(try imprint("compare", "a", "a", folder: folder).status == 64)
        }
    }
}
