import Foundation
import Imprint
import ImprintModel
import ImprintStudio
import ImprintSynthesis
import TestSupport
import Testing

/// Several tabs that share the history, and tabs of a studio that has ended.
@Suite("Studio tabs", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioTabsTests {
    private static let isReady = "document.body.dataset.ready === 'true'"
    private static let count = "document.querySelectorAll('#pictures li').length"
    /// The records in the browser's store.
    private static let stored = """
        new Promise((done, fail) => { const request = indexedDB.open('imprint-studio'); request.onerror = fail;
          request.onsuccess = () => { const all = request.result.transaction('pictures').objectStore('pictures').getAll();
            all.onsuccess = () => done(all.result.map(picture => picture.category)) } })
        """

    /// Whether an edit of a deleted photo was stored, and how many photos the second deletion deleted.
    private struct Late: Decodable, Sendable {
        let isStored: Bool
        let count: Int

        init(from decoder: any Decoder) throws {
            var values = try decoder.unkeyedContainer()
            isStored = try values.decode(Bool.self)
            count = try values.decode(Int.self)
        }
    }

    private struct History: Decodable, Sendable {
        let first: Int
        let said: String
        let afterEdit: [String]
        let category: String
        let exported: String
        let end: [String]
        let late: Late
        let otherUndo: Bool
        let restored: [String]
        let overflow: Int
    }

    @Test(
        "A photo deleted in one tab stays deleted if another tab edits it, and all tabs show the same history",
        arguments: StudioTests.widths)
    func history(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = try StudioSamples.write(.bright, to: folder)
            let sight: Browser.Sight<History> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .choose("#file", photo), .wait("\(Page.text("label")) === 'Bright'"), .click("#tab-history"),
                    .click("#shutter"), .wait("\(Self.count) === 1"), .click("#shutter"), .wait("\(Self.count) === 2"),
                    // Tab 2 shows the newest photo in the viewer while tab 1 deletes it.
                    .page(2), .wait(Self.isReady), .click("#tab-history"), .wait("\(Self.count) === 2"),
                    .click(".picture"), .wait("\(Page.text("viewer-position")) === '1 of 2'"),
                    .note("module", "import('./store.js').then(({ store }) => { window.store = store; return 1 })"),
                    .note(
                        "number", "store.all().then(all => { window.number = all.at(-1).id; return window.number })"),
                    .page(1), .note("focus", "document.querySelector('.picture').focus()"), .key("Delete"),
                    .wait("\(Self.count) === 1"), .note("first", Self.count),
                    // Edit a photo that the other tab has deleted, and delete it again.
                    .page(2), .wait("\(Page.text("viewer-position")) === '1 of 1'"),
                    .note("said", Page.text("viewer-state")),
                    .note(
                        "late",
                        "store.update(number, { category: 'Back' }).then(async isKept => [isKept, (await store.remove([number])).length])"
                    ),
                    .note("afterEdit", Self.stored),
                    // An edit reaches the other tab.
                    .click("#viewer-category"), .note("all", "document.activeElement.select()"), .type("Mine"),
                    .key("Enter"), .click("#viewer-close"),
                    .page(1), .wait("document.getElementById('category').options.length === 2"),
                    .wait("document.getElementById('category').options[1].value === 'Mine'"),
                    .note("category", "document.getElementById('category').options[1].value"),
                    .page(2), .click("#export"), .wait("\(Page.text("history-state")).startsWith('Exported')"),
                    .note("exported", Page.text("history-state")),
                    .page(1), .click("#delete-all"), .wait("\(Self.count) === 0"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .page(2), .wait("\(Self.count) === 0"), .note("end", Self.stored),
                    // Only the tab that deleted the photos can undo this, and both show them again.
                    .note("otherUndo", "!document.getElementById('history-undo').hidden"),
                    .page(1), .click("#restore"), .wait("\(Self.count) === 1"),
                    .page(2), .wait("\(Self.count) === 1"), .note("restored", Self.stored),
                ])
            let seen = sight.values
            #expect(seen.first == 1 && seen.said == "The photo was deleted.")
            #expect(!seen.late.isStored && seen.late.count == 0 && !seen.otherUndo && seen.restored == ["Mine"])
            #expect(seen.afterEdit == ["Bright"] && seen.category == "Mine" && seen.end == [])
            #expect(seen.exported == "Exported 1 as imprint-pictures.zip.")
            #expect(seen.overflow <= 0 && sight.console == [])
        }
    }

    /// Returns the requests of another device that add artwork of a leaf and match it, which this page does not know of.
    private static func foreignRequests() throws -> (add: String, match: String) {
        let artwork = try LogoSamples.artwork(side: 128).base64EncodedString()
        let add = """
            fetch('artwork?label=leaf', { method: 'POST', body: Uint8Array.from(atob("\(artwork)"), c => c.charCodeAt(0)) })
              .then(one => one.status)
            """
        return (add, "fetch('matching', { method: 'POST' }).then(one => one.status)")
    }

    private struct Foreign: Decodable, Sendable {
        let before: String
        let name: String
        let shot: String
        let said: String
        let count: String
        let kept: Int
    }

    @Test("The content filter applies the labels of a model that another device has started to use")
    func foreignModel() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = folder.appending(path: "photo.jpg")
            try LogoSamples.photo().write(to: photo)
            let said = Page.text("said")
            let requests = "performance.getEntriesByName(new URL('classify', location).href).length"
            let isBlocked = "\(Page.isShown("curtain")) && \(Page.text("curtain")).startsWith('Blocked: leaf')"
            let (add, match) = try Self.foreignRequests()
            let sight: Browser.Sight<Foreign> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note("filter", "(sessionStorage.setItem('filter', JSON.stringify(['leaf'])), 1)"), .reload(),
                    .wait(Self.isReady), .choose("#file", photo), .wait("\(Page.text("percent")) !== '–'"),
                    .note("before", Page.text("filter-state")),
                    // The next result, a saved photo and an example come from a model that the page has not loaded.
                    .note("added", add), .note("matched", match), .choose("#file", photo), .wait(isBlocked),
                    .note("name", Page.text("model")),
                    .note("matched", match), .note("number", "window.number = \(requests)"), .click("#shutter"),
                    .wait("\(said) !== ''"), .note("shot", said), .wait("\(requests) >= window.number + 2"),
                    .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"),
                    .note("matched", match), .click(".hold"), .wait("\(said) !== ''"), .note("said", said),
                    .note("count", "document.querySelector('#classes .count').textContent"),
                    .note("kept", "document.querySelectorAll('#pictures li').length"),
                ])
            let seen = sight.values
            #expect(seen.before.hasPrefix("The content filter is off: it has no labels of this model."))
            #expect(seen.name == "Matching of the artwork" && seen.said == "The model has changed. Try again.")
            #expect(seen.shot == "The photo was not saved: \(seen.said)")
            #expect(seen.count == "0 of 12 examples" && seen.kept == 0 && sight.console == [])
        }
    }

    private struct Files: Decodable, Sendable {
        let said: String
        let count: String
        let name: String
    }

    @Test("Files that are added while another device changes the model wait for the new model, and are checked with it")
    func filesDuringChange() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let logo = folder.appending(path: "logo.jpg")
            try LogoSamples.photo().write(to: logo)
            let other = try StudioSamples.write(.bright, to: folder)
            let said = Page.text("said")
            let (add, match) = try Self.foreignRequests()
            let sight: Browser.Sight<Files> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note("filter", "(sessionStorage.setItem('filter', JSON.stringify(['leaf'])), 1)"), .reload(),
                    .wait(Self.isReady), .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"),
                    .note("added", add), .note("matched", match),
                    .chooseAll("#classes > li:nth-child(1) .photos", [logo, other]),
                    .wait("\(said).includes(': added ')"), .note("said", said),
                    .note("count", "document.querySelector('#classes .count').textContent"),
                    .note("name", Page.text("model")),
                ])
            let seen = sight.values
            #expect(
                seen.said
                    == "“Cup”: added 1 of 2 photos. logo.jpg: Blocked: the model detected “leaf”, so the studio does "
                    + "not keep the image.")
            #expect(seen.count == "1 of 12 examples" && seen.name == "Matching of the artwork" && sight.console == [])
        }
    }

    private struct Restart: Decodable, Sendable {
        let before: String
        let labels: [String]
        let said: String
        let examples: [String]
    }

    @Test("A tab of an earlier studio loads the model of the new studio") func restart() async throws {
        let port = TestPorts.restartedStudio
        try await StudioSamples.withStudio(port: port) { first, folder in
            let photo = try StudioSamples.write(.bright, to: folder)
            let signal = folder.appending(path: "restart")
            var model = try ModelFile(contentsOf: folder.appending(path: "model.imprint"))
            model = ModelFile(
                network: model.network, parameters: model.parameters, labels: ["Day", "Night"],
                preprocessing: model.preprocessing)
            let classifier = try ImageClassifier(model)
            async let restarted = Self.restart(first, classifier, port: port, signal)
            let labels = "[...document.querySelectorAll('#labels option')].map(option => option.value).sort()"
            let sight: Browser.Sight<Restart> = try await StudioSamples.look(
                first, Browser.View(),
                [
                    .choose("#file", photo), .wait("\(Page.text("label")) === 'Bright'"),
                    .note("before", Page.text("label")), .click("#tab-teach"), .click("#class-name"), .type("Bright"),
                    .key("Enter"), .wait("document.querySelector('.hold') !== null"),
                    // Once visible again, the tab classifies its photo and reloads if the studio has changed. Such requests
                    // stay unanswered here, so that only the button below makes the tab detect the new studio.
                    .note(
                        "unanswered",
                        """
                        (() => { const ask = window.fetch; window.fetch = (...parts) =>
                          String(parts[0]).startsWith('classify') ? new Promise(() => {}) : ask(...parts); return 1 })()
                        """),
                    .page(2, signal: signal), .wait(Self.isReady),
                    // The new studio does not carry out requests of the old tab.
                    .page(1), .click(".hold"),
                    .wait("\(Page.text("said")).startsWith('The studio was restarted')"),
                    .wait(Self.isReady), .note("said", Page.text("said")), .note("labels", labels),
                    .note(
                        "examples",
                        "fetch('examples').then(answer => answer.json()).then(all => all.classes.map(one => one.label))"
                    ),
                ])
            let seen = sight.values
            #expect(seen.before == "Bright" && seen.labels == ["Day", "Night"] && seen.examples == [])
            #expect(seen.said == "The studio was restarted; this page now shows the model of the new studio.")
            try await restarted.stop()
        }
    }

    /// When the browser reaches the signal, ends a studio and starts another one with another model at the same port.
    private static func restart(
        _ first: Studio, _ classifier: ImageClassifier, port: Int, _ signal: URL
    ) async throws -> Studio {
        var second: Studio?
        try await Browser.answer(signal) {
            await first.stop()
            let studio = try await Studio(classifier, name: "day", port: port)
            second = studio
            return studio.url
        }
        return try #require(second)
    }
}
