import Foundation
import Imprint
import ImprintBaseModels
import ImprintModel
import ImprintStudio
import ImprintSynthesis
import ImprintTraining
import TestSupport
import Testing

/// Collecting examples and training in the studio.
@Suite("Training in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioTeachingTests {
    private static let counts =
        "[...document.querySelectorAll('#classes .count')].map(count => parseInt(count.textContent))"
    private static let points = "[...document.querySelectorAll('#curves .line')].map(line => line.points.length)"
    private static let stage = "document.getElementById('training-status').dataset.stage"

    /// A name with characters that are special in URLs and HTML.
    private static let stripes = StudioSamples.Kind.stripes.rawValue

    private struct Personalized: Decodable, Sendable {
        let before: String
        let name: String
        let too: String
        let one: [Int]
        let many: [Int]
        let room: String
        let start: String
        let points: [Int]
        let losses: [String]
        let status: String
        let model: String
        let after: String
        let top: [String]
        let bytes: Int
        let reverted: String
        let revertedModel: String
        let overflow: Int
        let gone: [Int]
    }

    @Test("A model learns a label from a held button, with curves, and can be reverted", arguments: StudioTests.widths)
    func personalize(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.stripes], in: folder))
            let sight: Browser.Sight<Personalized> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("percent")) !== '–'"), .note("before", Page.text("label")),
                    .click("#tab-teach"), .note("start", Page.text("start")),
                    .click("#class-name"), .type(StudioSamples.Kind.stripes.rawValue), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"),
                    .note("name", "document.querySelector('#classes bdi').textContent"),
                    .note("too", Page.text("shortage")),
                    // By keyboard: a tap, then a held key; then by mouse. The page sends the example after the tap.
                    .note(
                        "held",
                        """
                        (() => { const ask = window.fetch, released = new Promise(done => { window.release = done });
                          window.fetch = async (...parts) => {
                            if (String(parts[0]).startsWith('examples') && parts[1]?.method === 'POST') await released;
                            return ask(...parts) };
                          return 1 })()
                        """),
                    .key(" "), .note("released", "(window.release(), 1)"),
                    .wait("\(Page.text("said")).includes(': 1 example')"), .note("one", Self.counts),
                    .key(" ", until: "\(Self.counts)[0] >= 6"), .click(".hold", until: "\(Self.counts)[0] >= 12"),
                    .note("many", Self.counts), .note("room", Page.text("room")),
                    .click("#start"), .wait("\(Self.stage) === 'learned'"), .note("points", Self.points),
                    .note("losses", "[...document.querySelectorAll('#curves b')].map(now => now.textContent)"),
                    .note("status", Page.text("training-status")),
                    // The results of the old model may still be shown when training has ended.
                    .wait("\(Page.text("model")) !== 'bright'"),
                    .wait(
                        "\(Page.text("label")) === '\(Self.stripes)' && document.querySelectorAll('#top .name').length === 3"
                    ),
                    .note("model", Page.text("model")),
                    .note("after", Page.text("label")),
                    .note("top", "[...document.querySelectorAll('#top .name')].map(name => name.textContent)"),
                    .note("bytes", "fetch('learned').then(file => file.arrayBuffer()).then(bytes => bytes.byteLength)"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .click("#revert"), .wait("\(Page.text("model")) === 'bright'"),
                    .wait(
                        "\(Page.text("label")) === '\(StudioSamples.Kind.bright.rawValue)' || \(Page.text("label")) === 'Dark'"
                    ),
                    .note("reverted", Page.text("label")), .note("revertedModel", Page.text("model")),
                    .click("#classes .quiet"), .wait("\(Self.counts).length === 0"), .note("gone", Self.counts),
                ])
            let seen = sight.values
            #expect(
                ["Bright", "Dark"].contains(seen.before) && seen.name == Self.stripes && seen.start == "Personalize")
            #expect(seen.too == "“\(Self.stripes)” has 0 of the 3 examples that a class needs.")
            #expect(seen.one == [1] && seen.many[0] >= 12 && seen.room.contains("of 64 MB"))
            // 200 steps; every tenth and the last are reported.
            #expect(seen.points == [21, 21] && seen.losses.count == 2)
            #expect(seen.status.hasPrefix("Learned from ") && seen.model == "bright, personalized")
            #expect(
                seen.after == Self.stripes && Set(seen.top) == ["Bright", "Dark", Self.stripes] && seen.bytes > 100)
            // The stripes of the camera are neither bright nor dark, so the first model can give either label.
            #expect(["Bright", "Dark"].contains(seen.reverted))
            #expect(seen.revertedModel == "bright" && seen.gone == [] && seen.overflow <= 0)
            #expect(sight.console == [])
        }
    }

    private struct Collected: Decodable, Sendable {
        let counts: [Int]
        let updated: [String]
        let exact: [String]
        let chips: [String]
        let said: String
        let curtain: String
        let asked: Int
        let state: String
    }

    @Test(
        "Classes collect in turn, update from other pages, and keep the exact labels of the model",
        arguments: StudioTests.widths)
    func collect(width: Int) async throws {
        try await StudioSamples.withStudio(name: "odd", installer: StudioSamples.installer) { folder in
            let session = try PersonalizationSession(
                ImageClassifier(contentsOf: try await StudioSamples.model(in: folder)))
            try session.teach(StudioSamples.image(.stripes, seed: 7), as: Self.odd)
            return session.classifier
        } _: { studio, folder in
            let text = folder.appending(path: "text.jpg")
            try Data("not an image".utf8).write(to: text)
            func button(_ index: Int) -> String { "#classes li:nth-child(\(index)) .hold" }
            let post = "{ method: 'POST' }"
            let requests = "performance.getEntriesByName(new URL('classify', location).href).length"
            let sight: Browser.Sight<Collected> = try await StudioSamples.look(
                studio, Browser.View(width: width, camera: try StudioSamples.camera([.stripes], in: folder)),
                [
                    // The camera can start after the page; until then, there is no image to collect.
                    .wait("\(Page.text("percent")) !== '–'"),
                    .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("\(Self.counts).length === 1"),
                    // A text field removes the newline and the spaces around it.
                    .click("#class-name"), .type("lead line"), .key("Enter"), .wait("\(Self.counts).length === 2"),
                    // The button of the second class has the focus, and loses it to the pressed button.
                    .click(button(1), until: "\(Self.counts)[0] >= 3"),
                    .click(button(2), until: "\(Self.counts)[1] >= 3"),
                    // The message of a press appears after its last example.
                    .wait("\(Page.text("said")).includes('lead')"),
                    .click(button(1)), .wait("\(Page.text("said")).includes('Cup')"), .note("counts", Self.counts),
                    .note(
                        "exact",
                        "fetch('examples').then(one => one.json()).then(one => one.classes.map(one => one.label))"),
                    // The response to an example arrives after that to a later change.
                    .note(
                        "late",
                        """
                        (() => { const ask = window.fetch; window.fetch = (...parts) =>
                          String(parts[0]).startsWith('examples') && parts[1]?.method === 'POST'
                            ? ask(...parts).then(answer => new Promise(done => window.arrive = () => done(answer)))
                            : ask(...parts); return 1 })()
                        """),
                    .click(button(1)), .wait("window.arrive !== undefined"),
                    .note(
                        "other",
                        "fetch('classes?label=Third', \(post)).then(() => new BroadcastChannel('imprint-studio').postMessage('taught')).then(() => 1)"
                    ),
                    .wait("\(Self.counts).length === 3"),
                    .note("arrives", "(window.before = \(Page.text("said")), window.arrive(), 1)"),
                    .wait("\(Page.text("said")) !== window.before"),
                    .note("updated", "[...document.querySelectorAll('#classes bdi')].map(name => name.textContent)"),
                    .click("#tab-look"), .click("#filter-area-title"), .click("#filter-label"), .type("lead  line"),
                    .key("Enter"),
                    .note(
                        "chips", "[...document.querySelectorAll('#filter-labels bdi')].map(name => name.textContent)"),
                    .choose("#file", text), .wait("\(Page.text("said")).includes('expected an image')"),
                    .choose("#file", text), .choose("#file", text), .choose("#file", text),
                    .wait("\(Page.text("curtain")) === 'Could not be classified'"),
                    .note("before", "(window.before = \(requests), 1)"),
                    .wait("performance.now() > window.since + 2500 || (window.since ??= performance.now(), false)"),
                    .note("asked", "\(requests) - window.before"), .note("said", Page.text("said")),
                    .note("curtain", Page.text("curtain")), .note("state", Page.text("filter-state")),
                ])
            let seen = sight.values
            #expect(seen.counts.count == 2 && seen.counts[0] >= 4 && seen.counts[1] >= 3, "\(seen.counts)")
            #expect(seen.exact == ["Cup", Self.odd] && seen.updated == ["Cup", Self.odd, "Third"])
            #expect(seen.chips == [Self.odd])
            #expect(seen.said.hasPrefix("The image data: ") && !seen.said.contains("tries again") && seen.asked == 0)
            #expect(seen.curtain == "Could not be classified")
            #expect(seen.state == "The image is covered because it could not be classified.")
        }
    }

    /// A label with white space that a text field changes.
    private static let odd = " lead\nline "

    private struct Trained: Decodable, Sendable {
        let none: String
        let tab: String
        let start: String
        let shortage: String
        let disabled: Bool
        let counts: [Int]
        let points: [Int]
        let status: String
        let model: String
        let first: String
        let second: String
        let name: String
        let stopped: String
    }

    /// Returns an installer with a pip that does not end by itself.
    private static func endlessInstaller(_ folder: URL) throws -> BaseModelInstaller {
        var installer = StudioSamples.installer(folder)
        let python = folder.appending(path: "python")
        // Longer than the browser waits for any step.
        try writeScript("exec sleep 600", to: python)
        installer.python = python
        return installer
    }

    @Test("Without a model, one is trained from photos, and a run can be stopped", arguments: StudioTests.widths)
    func train(width: Int) async throws {
        try await StudioSamples.withStudio(hasModel: false, installer: Self.endlessInstaller) { studio, folder in
            let kinds = [StudioSamples.Kind.bright, .dark]
            let photos = try kinds.map { kind in
                try (1...4).map { try StudioSamples.write(kind, seed: UInt64($0), to: folder) }
            }
            // The second name is the name of a system file.
            let collect = zip(["Bright", "desktop.ini"], photos).enumerated().flatMap { index, pair -> [Browser.Step] in
                let button = "#classes li:nth-child(\(index + 1)) .hold"
                return [
                    .click("#class-name"), .type(pair.0), .key("Enter"),
                    // The new class replaces an empty card.
                    .wait("document.querySelectorAll('#classes bdi')[\(index)].textContent === '\(pair.0)'"),
                ]
                    + (1...4).flatMap { count -> [Browser.Step] in
                        [
                            .choose("#file", pair.1[count - 1]), .click(button),
                            .wait("\(Self.counts)[\(index)] === \(count)"),
                        ]
                    }
            }
            let sight: Browser.Sight<Trained> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .note("none", Page.text("label")),
                    .note("tab", "document.querySelector('[role=tab][aria-selected=true]').textContent"),
                    .note("start", Page.text("start")), .note("shortage", Page.text("shortage")),
                    .note("disabled", "document.getElementById('start').disabled"),
                ] + collect + [
                    // The same photo does not count again.
                    .click("#classes li:nth-child(2) .hold"),
                    .wait("\(Page.text("said")).startsWith('The photo is already an example')"),
                    .note("counts", Self.counts),
                    // Training could end before the click; this installation does not end by itself.
                    .click("#base-open"), .click("#base-accept"), .wait("\(Self.stage) === 'running'"),
                    .click("#stop"), .wait("\(Self.stage) === 'stopped'"),
                    .note("stopped", Page.text("training-status")),
                    .click("#start"), .wait("\(Self.stage) === 'learned'"), .note("points", Self.points),
                    .note("status", Page.text("training-status")),
                    .wait("\(Page.text("model")) === 'A new model'"),
                    .wait("\(Page.text("label")) === 'desktop.ini'"), .note("second", Page.text("label")),
                    .note("model", Page.text("model")),
                    .choose("#file", photos[0][0]), .wait("\(Page.text("label")) === 'Bright'"),
                    .note("first", Page.text("label")),
                    .note("name", "document.getElementById('learned').download"),
                ])
            let seen = sight.values
            #expect(
                seen.none == "No model yet" && seen.tab == "Train" && seen.start == "Train a model" && seen.disabled)
            #expect(seen.shortage == "Each class needs at least 3 examples. 12 from several sides are better.")
            #expect(seen.stopped == "Stopped; the base model is not installed." && seen.counts == [4, 4])
            #expect(seen.points == [40, 40] && seen.status == "Learned from 8 examples.")
            #expect(
                seen.model == "A new model" && seen.first == "Bright" && seen.second == "desktop.ini"
                    && seen.name == "model.imprint")
            // The browser itself logs the rejected copy.
            #expect(sight.console.allSatisfy { $0.contains("409") })
            // Other tests have folders in this process at the same time, some of them for their whole duration.
            let prefix = "imprint-studio-\(ProcessInfo.processInfo.processIdentifier)-"
            let folder = FileManager.default.temporaryDirectory
            var left = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(prefix) }
            for _ in 0..<6_000 where !left.isEmpty {
                try await Task.sleep(for: .milliseconds(100))
                left.removeAll { !FileManager.default.fileExists(atPath: folder.appending(path: $0).path) }
            }
            #expect(left == [])
        }
    }
}
