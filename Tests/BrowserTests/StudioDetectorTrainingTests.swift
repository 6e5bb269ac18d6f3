import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// Training a detector in the studio.
@Suite("Training a detector in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioDetectorTrainingTests {
    private static let stage = "document.getElementById('detector-status').dataset.stage"

    /// A configuration for a few steps with small batches.
    private var configuration: DetectorConfiguration {
        var configuration = DetectorConfiguration()
        configuration.keepsGroupsTogether = false
        configuration.rehearsalImages = 0
        configuration.pyramidLevels = shortPyramidLevels
        configuration.poolSize = 1
        configuration.batchSize = 4
        configuration.phases = [
            DetectorPhase(
                steps: 3, learningRate: 1e-3, composites: 0.25, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0.25)
        ]
        return configuration
    }

    /// The configuration without artwork.
    private var boxConfiguration: DetectorConfiguration {
        var configuration = configuration
        configuration.phases = [
            DetectorPhase(
                steps: 3, learningRate: 1e-3, composites: 0, hardNegatives: 0, background: 0.5, mined: 0, located: 0.5)
        ]
        return configuration
    }

    /// Runs `body` with a studio whose detectors are trained in seconds.
    private func withStudio(
        _ configuration: DetectorConfiguration, _ body: (Studio, StudioClient, URL) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let studio = try await Studio(
                nil, installer: StudioSamples.installer(folder), detectorConfiguration: configuration)
            do {
                try await body(studio, try await StudioClient.enter(studio).client, folder)
            } catch {
                await studio.stop()
                throw error
            }
            await studio.stop()
        }
    }

    /// Returns an image of noise with a bright square at a position.
    private func image(_ index: Int) -> RasterImage {
        var random = RandomStream(seed: 5, "square", index)
        var image = RasterImage(width: 120, height: 90)
        for sample in image.samples.indices { image.samples[sample] = UInt8(90 + random.index(below: 60)) }
        for row in 20..<56 {
            for column in (3 * (30 + index))..<(3 * (66 + index)) { image.samples[row * 360 + column] = 250 }
        }
        return image
    }

    /// Adds photos with a box each.
    private func addPhotos(_ count: Int, _ client: StudioClient) async throws {
        for index in 0..<count {
            let photo = Data(try ImageFile.encodeJPEG(image(index)))
            #expect(try await client.ask("POST", "boxes", [:], photo).status == 200)
            let box = "{\"x\": \(Double(30 + index) / 120), \"y\": \(20.0 / 90), \"width\": 0.3, \"height\": 0.4}"
            let edit =
                "{\"revision\": 0, \"isBackground\": false, \"objects\": [{\"label\": \"square\", \"box\": \(box)}]}"
            let name = "0000\(index + 1).jpeg"
            #expect(try await client.ask("PUT", "boxes", ["name": name], Data(edit.utf8)).status == 200)
        }
    }

    private struct Trained: Decodable, Sendable {
        let shortage: String
        let status: String
        let title: String
        let sheet: [Int]
        let charts: [String]
        let file: String
        let model: String
        let labels: [String]
        let canDetect: Bool
        let bytes: Int
        let reverted: String
        let revertedModel: String
        let overflow: Int
    }

    @Test("A detector is trained from boxes, and replaces the model", arguments: StudioTests.widths)
    func boxes(width: Int) async throws {
        try await withStudio(boxConfiguration) { studio, client, folder in
            try await addPhotos(6, client)
            let refused = try await client.ask("POST", "detector")
            #expect(refused.status == 400 && refused.error?.contains("length") == true)
            let sight: Browser.Sight<Trained> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .click("#tab-annotate"), .wait("!document.getElementById('detector-start').disabled"),
                    .note("shortage", Page.text("detector-shortage")), .click("#detector-start"),
                    .wait("\(Self.stage) === 'learned'"), .note("status", Page.text("detector-status")),
                    .note("title", Page.text("sheet-title")),
                    .wait("document.getElementById('sheet').complete"),
                    .note(
                        "sheet",
                        "[document.getElementById('sheet').naturalWidth, document.getElementById('sheet').naturalHeight]"
                    ),
                    .note(
                        "charts",
                        "[...document.querySelectorAll('#detector-curves figure')].map(one => one.getAttribute('aria-label'))"
                    ),
                    .wait(Page.isShown("detector-file")),
                    .note("file", "document.getElementById('detector-file').download"),
                    .wait("\(Page.text("model")) === 'A new detector'"), .note("model", Page.text("model")),
                    .note("labels", "fetch('model').then(one => one.json()).then(one => one.objectLabels)"),
                    .click("#box-photos button"), .wait("!document.getElementById('editor').hidden"),
                    .note("canDetect", Page.isShown("box-detect")),
                    .note("bytes", "fetch('learned').then(file => file.arrayBuffer()).then(bytes => bytes.byteLength)"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .click("#detector-revert"), .wait("!\(Page.isShown("detector-file"))"),
                    .note("reverted", Page.text("detector-status")), .note("revertedModel", Page.text("model")),
                ])
            let seen = sight.values
            #expect(seen.shortage == "There is enough to train a detector.")
            #expect(seen.status == "Trained a detector from 6 photos with 6 boxes.")
            #expect(seen.title == "Objects that the detector learns" && seen.sheet == [660, 332])
            #expect(seen.charts == ["Loss on the training images", "Accuracy on the training images"])
            #expect(seen.file == "model.imprint" && seen.model == "A new detector" && seen.labels == ["square"])
            #expect(seen.canDetect && seen.bytes > 100_000 && seen.overflow <= 0)
            #expect(seen.reverted == "The new model is deleted.")
            #expect(seen.revertedModel == "No model yet")
            #expect(sight.console == [])
        }
    }

    private struct Artworks: Decodable, Sendable {
        let missing: String
        let item: String
        let refused: String
        let status: String
        let title: String
        let labels: [String]
        let count: Int
    }

    @Test("A detector is trained from dropped artwork and boxes") func artwork() async throws {
        try await withStudio(configuration) { studio, client, folder in
            try await addPhotos(2, client)
            var logo = RasterImage(width: 64, height: 64, channels: 4)
            for row in 0..<64 {
                for column in 0..<64 where (row - 32) * (row - 32) + (column - 32) * (column - 20) < 700 {
                    for (channel, value) in [200, 40, 30, 255].enumerated() {
                        logo.samples[(row * 64 + column) * 4 + channel] = UInt8(value)
                    }
                }
            }
            let file = folder.appending(path: "leaf.png")
            try ImageFile.write(logo, to: file)
            let text = folder.appending(path: "note.png")
            try Data("no image".utf8).write(to: text)
            let bytes = try Data(contentsOf: file).base64EncodedString()
            let items = "document.querySelectorAll('#artwork-list li').length"
            let sight: Browser.Sight<Artworks> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    // The page is ready before it has read the photos.
                    .click("#tab-annotate"), .wait("document.querySelectorAll('#box-photos li').length === 2"),
                    .note("missing", Page.text("detector-shortage")), .click("#artwork-label"), .type("Leaf"),
                    .note(
                        "dropped",
                        """
                        (() => { const data = new DataTransfer(), bytes = Uint8Array.from(atob("\(bytes)"), c => c.charCodeAt(0));
                          data.items.add(new File([bytes], "leaf.png", { type: "image/png" }));
                          document.getElementById('artwork-area').dispatchEvent(
                            new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true })); return 1 })()
                        """),
                    .wait("\(items) === 1"),
                    .note("item", "document.querySelector('#artwork-list .name').innerText.replace(/\\s+/g, ' ')"),
                    .choose("#artwork-files", text), .wait("\(Page.text("said")).startsWith('note.png')"),
                    .note("refused", Page.text("said")),
                    .click("#detector-start"), .wait("\(Self.stage) === 'learned'"),
                    .note("status", Page.text("detector-status")), .note("title", Page.text("sheet-title")),
                    .note("labels", "fetch('model').then(one => one.json()).then(one => one.objectLabels)"),
                    .click("#artwork-list button"), .wait("\(items) === 0"), .note("count", items),
                ])
            let seen = sight.values
            #expect(seen.missing == "Draw boxes in at least 5 photos (now 2), or add artwork.")
            #expect(seen.item.hasPrefix("Leaf leaf.png") && seen.refused.hasPrefix("note.png: "))
            #expect(!seen.refused.contains("imprint-studio-"))
            #expect(seen.status == "Trained a detector from 2 photos with 2 boxes and 1 image of artwork.")
            #expect(seen.title == "Composites that the detector learns from" && seen.labels == ["Leaf", "square"])
            // The photo that replaces the camera did not change.
            #expect(seen.count == 0 && sight.console.allSatisfy { $0.contains("422") })
        }
    }

    private struct Stopped: Decodable, Sendable {
        let status: String
        let progress: Bool
        let canTrain: Bool
    }

    @Test("Training a detector can be stopped, and the model does not change") func stop() async throws {
        var configuration = boxConfiguration
        configuration.phases = configuration.phases.map { phases in
            var phase = phases[0]
            phase.steps = 100_000
            return [phase]
        }
        try await withStudio(configuration) { studio, client, _ in
            try await addPhotos(5, client)
            let sight: Browser.Sight<Stopped> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-annotate"), .wait("!document.getElementById('detector-start').disabled"),
                    .click("#detector-start"), .wait("\(Page.text("detector-status")).startsWith('Phase 1 of 1')"),
                    // The page is ready before the run ends.
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .click("#tab-annotate"),
                    .wait("\(Page.text("detector-status")).startsWith('Phase 1 of 1')"),
                    .note("progress", Page.isShown("detector-progress")), .click("#detector-stop"),
                    .wait("\(Self.stage) === 'stopped'"), .note("status", Page.text("detector-status")),
                    .note("canTrain", "!document.getElementById('detector-start').disabled"),
                ])
            #expect(sight.values.status == "Stopped; the model did not change.")
            #expect(sight.values.progress && sight.values.canTrain)
        }
    }
}
