import Foundation
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The panel Logo: from artwork to a detector.
@Suite("Find my logo in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioLogoPageTests {
    private static let items = "document.querySelectorAll('#logo-list li').length"
    private static let stage = "document.getElementById('logo-status').dataset.stage"
    private static let focus = "document.activeElement.id"
    /// The labels of the model in use, as the page has loaded them.
    private static let modelLabels = "[...document.querySelectorAll('#labels option')].map(one => one.value)"
    private static let hasSheet = """
        document.getElementById('logo-sheet').complete && document.getElementById('logo-sheet').naturalWidth > 100
        """

    /// Runs `body` with a studio whose detectors have a short first phase, and the files of artwork in its folder.
    private func withStudio(_ body: (Studio, URL) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            try LogoSamples.artwork(side: 128).write(to: folder.appending(path: "green_leaf.png"))
            try LogoSamples.artwork(side: 40).write(to: folder.appending(path: "small.png"))
            try Data("no image".utf8).write(to: folder.appending(path: "note.png"))
            try LogoSamples.photo().write(to: folder.appending(path: "photo.jpg"))
            let studio = try await Studio(
                nil, installer: StudioSamples.installer(folder), detectorConfiguration: LogoSamples.configuration)
            do {
                try await body(studio, folder)
            } catch {
                await studio.stop()
                throw error
            }
            await studio.stop()
        }
    }

    private struct Matched: Decodable, Sendable {
        let added: String
        let labels: [String]
        let warnings: [String]
        let pictures: [String]
        let sheet: String
        let other: String
        let text: String
        let found: String
        let tested: String
        let name: String
        let isFirst: Bool
        let labelsAfterDeletion: [String]
        let overflow: Int
        let faint: [String]
        let unnamed: [String]
        let ended: String
        let endedFocus: String
        let count: Int
        let lastFocus: String
    }

    @Test(
        "Artwork is shown with its warnings and composites, and matching finds it in photos at once",
        arguments: StudioTests.widths)
    func matching(width: Int) async throws {
        try await withStudio { studio, folder in
            let files = ["green_leaf.png", "small.png", "note.png"].map { folder.appending(path: $0) }
            let sight: Browser.Sight<Matched> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .click("#tab-logo"), .chooseAll("#logo-files", files),
                    .wait("\(Page.text("logo-state")).startsWith('Added')"), .note("added", Page.text("logo-state")),
                    .note("labels", "[...document.querySelectorAll('#logo-list input')].map(one => one.value)"),
                    .note(
                        "warnings",
                        "[...document.querySelectorAll('#logo-list li')].map(one => one.querySelector('.note')?.textContent ?? '')"
                    ),
                    .note("pictures", "[...document.querySelectorAll('#logo-list img')].map(one => one.alt)"),
                    .wait(Self.hasSheet), .note("sheet", "document.getElementById('logo-sheet').getAttribute('src')"),
                    .click("#logo-other"), .wait(Self.hasSheet),
                    .note("other", "document.getElementById('logo-sheet').getAttribute('src')"),
                    .wait("\(Page.text("model")) === 'Matching of the artwork'"),
                    .note("text", Page.text("logo-match-text")),
                    .choose("#logo-trials", folder.appending(path: "photo.jpg")),
                    .wait("\(Page.text("logo-trial-state")).startsWith('Searched')"),
                    .note("found", Page.text("logo-trial-state")),
                    .note("tested", "document.querySelector('#logo-results').textContent"),
                    .note("name", "document.querySelector('#logo-results canvas').getAttribute('aria-label')"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .note("faint", Browser.faint),
                    .note(
                        "unnamed",
                        """
                        [...document.querySelectorAll('#logo input, #logo select')]
                          .filter(one => !one.labels?.length && !one.getAttribute('aria-label')).map(one => one.outerHTML)
                        """),
                    .note(
                        "isFirst",
                        """
                        document.getElementById('logo-try').getBoundingClientRect().top
                          < document.getElementById('logo-steps').getBoundingClientRect().top
                        """),
                    // Matching does not find artwork that the panel Boxes has deleted.
                    .click("#tab-annotate"), .click("#artwork-list li:nth-child(2) button"),
                    .wait("\(Self.modelLabels).length === 1"), .note("labelsAfterDeletion", Self.modelLabels),
                    .wait("\(Page.text("logo-trial-state")).startsWith('Searched')"), .click("#tab-logo"),
                    .note("focus", "document.getElementById('logo-unmatch').focus()"), .key("Enter"),
                    .wait(Page.isShown("logo-match")), .wait("\(Self.focus) === 'logo-match'"),
                    .note("ended", Page.text("model")), .note("endedFocus", Self.focus),
                    .click("#logo-list button"), .wait("\(Self.items) === 0"), .note("count", Self.items),
                    .note("lastFocus", Self.focus),
                ])
            let seen = sight.values
            #expect(seen.added.hasPrefix("Added 2 images of artwork. note.png: "))
            #expect(seen.labels == ["green leaf", "small"])
            #expect(seen.warnings[0] == "" && seen.warnings[1].hasPrefix("Warning: small.png: "))
            #expect(seen.pictures == ["Cut-out of green_leaf.png", "Cut-out of small.png"])
            #expect(seen.sheet.hasPrefix("composites?seed=1&") && seen.other.hasPrefix("composites?seed=2&"))
            #expect(seen.text.contains("“green leaf”, “small”"))
            // Both files show the same leaf, so matching may also find the small one.
            #expect(seen.found.hasPrefix("Searched 1 photo: found ") && seen.found.contains("“green leaf” in 1"))
            #expect(seen.isFirst)
            #expect(seen.tested.hasPrefix("photo.jpggreen leaf ") && seen.tested.contains(" %, "))
            #expect(seen.name.hasPrefix("photo.jpg: ") && seen.name.contains("green leaf"))
            #expect(seen.overflow <= 0 && seen.faint == [] && seen.unnamed == [])
            #expect(seen.labelsAfterDeletion == ["green leaf"])
            #expect(seen.ended == "No model yet" && seen.endedFocus == "logo-match")
            #expect(seen.count == 0 && seen.lastFocus == "logo-files")
            #expect(sight.console.allSatisfy { $0.contains("422") })
            #expect(sight.requests.allSatisfy { $0.hasPrefix("http://127.0.0.1") || $0.hasPrefix("blob:") })
        }
    }

    private struct SearchedAgain: Decodable, Sendable {
        let interrupted: Int
        let model: String
        let photos: Int
        let reverted: String
        let matched: Int
        let tab: String
    }

    @Test("A new detector searches the photos again, undoing training returns to matching, and a reload keeps the tab")
    func searchAgain() async throws {
        try await withStudio { studio, folder in
            let isSearched = "\(Page.text("logo-trial-state")).startsWith('Searched 1 photo')"
            let photos = "document.querySelectorAll('#logo-results li').length"
            let sight: Browser.Sight<SearchedAgain> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-logo"), .choose("#logo-files", folder.appending(path: "green_leaf.png")),
                    .wait("\(Page.text("model")) === 'Matching of the artwork'"),
                    .choose("#logo-trials", folder.appending(path: "photo.jpg")), .wait(isSearched),
                    // A new search ends one that is still waiting for the result of its first photo.
                    .note(
                        "hold",
                        """
                        (() => { const ask = window.fetch; window.held = [];
                          window.fetch = (...parts) => parts[0] !== 'classify' || !window.held ? ask(...parts)
                            : new Promise(done => window.held.push(() => done(ask(...parts)))); return 1 })()
                        """),
                    .chooseAll("#logo-trials", ["photo.jpg", "small.png"].map { folder.appending(path: $0) }),
                    .wait("window.held.length === 1"),
                    .choose("#logo-trials", folder.appending(path: "photo.jpg")), .wait("window.held.length === 2"),
                    .note(
                        "release",
                        "(() => { const { held } = window; window.held = null; held.forEach(one => one()); return 1 })()"
                    ),
                    .wait(isSearched), .note("interrupted", photos),
                    .click("#logo-start"), .wait(Page.isShown("logo-keep")), .click("#logo-keep"),
                    .wait("\(Self.stage) === 'learned'"), .wait("\(Page.text("model")) === 'A new detector'"),
                    .wait(isSearched), .note("model", Page.text("model")), .note("photos", photos),
                    .click("#logo-revert"), .wait("\(Page.text("model")) === 'Matching of the artwork'"),
                    .note("reverted", Page.text("logo-status")), .wait(isSearched), .note("matched", photos),
                    .reload(), .wait("document.body.dataset.ready === 'true'"),
                    .note("tab", "document.querySelector('[role=tab][aria-selected=true]').id"),
                ])
            let seen = sight.values
            #expect(seen.interrupted == 2)
            #expect(seen.model == "A new detector" && seen.photos == 1 && seen.matched == 1)
            #expect(seen.reverted == "The new model is deleted." && seen.tab == "tab-logo")
            #expect(sight.console == [])
        }
    }

    private struct Trained: Decodable, Sendable {
        let label: String
        let focus: String
        let tab: String
        let charts: [String]
        let isBeside: Bool
        let status: String
        let file: String
        let bytes: Int
        let labels: [String]
        let boxCharts: Int
        let overflow: Int
        let reverted: String
    }

    @Test(
        "A detector is trained from dropped artwork, and an early end keeps the best one, also after a reload",
        arguments: StudioTests.widths)
    func training(width: Int) async throws {
        try await withStudio { studio, folder in
            let bytes = try LogoSamples.artwork(side: 128).base64EncodedString()
            let sight: Browser.Sight<Trained> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .click("#tab-logo"), .click("#logo-label"), .type("Draft"),
                    .note(
                        "dropped",
                        """
                        (() => { const data = new DataTransfer(), bytes = Uint8Array.from(atob("\(bytes)"), c => c.charCodeAt(0));
                          data.items.add(new File([bytes], "leaf.png", { type: "image/png" }));
                          document.getElementById('logo').dispatchEvent(
                            new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true })); return 1 })()
                        """),
                    .wait("\(Self.items) === 1"),
                    .note("selected", "document.querySelector('#logo-list input').select()"), .type("Leaf"),
                    .key("Tab"), .wait("\(Page.text("logo-state")).startsWith('Renamed')"),
                    .note("label", "document.querySelector('#logo-list input').value"),
                    .click("#logo-start"), .wait("\(Self.focus) === 'logo-stop'"), .note("focus", Self.focus),
                    .wait(Page.isShown("logo-keep")),
                    // The run continues while the page reloads.
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .wait(Page.isShown("logo-keep")),
                    .note("tab", "document.querySelector('[role=tab][aria-selected=true]').id"),
                    .wait("document.querySelectorAll('#logo-curves figure').length === 2"),
                    .note(
                        "charts",
                        "[...document.querySelectorAll('#logo-curves figure')].map(one => one.getAttribute('aria-label'))"
                    ),
                    .note(
                        "isBeside",
                        """
                        document.getElementById('logo-curves').getBoundingClientRect().left
                          > document.getElementById('logo-keep').getBoundingClientRect().right
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .click("#logo-keep"), .wait("\(Self.stage) === 'learned'"),
                    .note("status", Page.text("logo-status")), .wait(Page.isShown("logo-file")),
                    .note("file", "document.getElementById('logo-file').download"),
                    .note("bytes", "fetch('learned').then(file => file.arrayBuffer()).then(bytes => bytes.byteLength)"),
                    .note("labels", "fetch('model').then(one => one.json()).then(one => one.objectLabels)"),
                    .note("boxCharts", "document.querySelectorAll('#detector-curves figure').length"),
                    .click("#logo-revert"), .wait("!\(Page.isShown("logo-file"))"),
                    .note("reverted", Page.text("logo-status")),
                ])
            let seen = sight.values
            #expect(seen.label == "Leaf" && seen.focus == "logo-stop" && seen.tab == "tab-logo")
            #expect(seen.charts == ["Loss on the training images", "Accuracy on the training images"])
            #expect(seen.isBeside == (width > 600) && seen.overflow <= 0 && seen.boxCharts == 0)
            #expect(seen.status == "Stopped early, and kept the best detector so far, from 1 image of artwork.")
            #expect(seen.file == "model.imprint" && seen.bytes > 100_000 && seen.labels == ["Leaf"])
            #expect(seen.reverted == "The new model is deleted.")
            #expect(sight.console == [])
        }
    }
}
