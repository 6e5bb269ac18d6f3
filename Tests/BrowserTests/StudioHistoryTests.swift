import Foundation
import ImprintImages
import ImprintStudio
import ImprintSynthesis
import TestSupport
import Testing

/// The saved photos and the content filter of the studio.
@Suite("Studio's history", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioHistoryTests {
    private struct Saved: Decodable, Sendable {
        let none: String
        let state: String
        let alt: String
        let strip: [Int]
        let above: [Int]
        let focused: String
        let categories: [String]
        let mine: Int
        let filtered: String
        let reloaded: String
        let zip: String
        let left: String
        let overflow: Int
        let end: String
    }

    private struct Archive: Decodable {
        struct Entry: Decodable {
            let file: String
            let label: String
            let confidence: Double?
            let category: String
        }
        let names: [String]
        let damaged: String?
        let list: [Entry]
        let jpegs: Int
    }

    /// An expression for the colour of a saved photo at a fraction of its height.
    private static func color(at height: Double) -> String {
        """
        (async () => { const image = document.getElementById('viewer-marked'); await image.decode();
          const canvas = document.createElement('canvas'); canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
          const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
          return [...context.getImageData(image.naturalWidth * .9, image.naturalHeight * \(height), 1, 1).data.slice(0, 3)] })()
        """
    }

    @Test(
        "The shutter saves photos with their label, and the history filters, exports and deletes them",
        arguments: StudioTests.widths)
    func history(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.bright], in: folder))
            let count = "document.querySelectorAll('#pictures li').length"
            let state = Page.text("history-state")
            let sight: Browser.Sight<Saved> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("label")) === 'Bright'"), .click("#tab-history"),
                    .wait("\(state) !== ''"), .note("none", state), .click("#shutter"), .wait("\(count) === 1"),
                    .click("#shutter"), .wait("\(count) === 2"),
                    .note("state", state), .note("alt", "document.querySelector('.picture').ariaLabel"),
                    .click("#pictures li:first-child .picture"),
                    .note("strip", Self.color(at: 0.96)), .note("above", Self.color(at: 0.5)),
                    // Type a new category for the first photo.
                    .click("#viewer-category"), .note("all", "document.activeElement.select()"), .type("Mine"),
                    .key("Enter"),
                    .wait("[...document.getElementById('category').options].length === 3"),
                    .note("focused", "document.activeElement.value ?? ''"), .click("#viewer-close"),
                    .note(
                        "categories",
                        "[...document.getElementById('category').options].map(option => option.textContent)"),
                    .note(
                        "chosen",
                        """
                        (() => { const filter = document.getElementById('category'); filter.value = 'Mine';
                          filter.dispatchEvent(new Event('change')); return 1 })()
                        """),
                    .note("mine", count), .note("filtered", state), .reload(),
                    .wait("document.body.dataset.ready === 'true'"),
                    .click("#tab-history"), .wait("\(count) === 2"), .note("reloaded", state),
                    .note(
                        "spy",
                        "(() => { const make = URL.createObjectURL; URL.createObjectURL = blob => { window.made = blob; return make(blob) } })()"
                    ),
                    .click("#export"), .wait("\(state).startsWith('Exported')"),
                    .note(
                        "zip",
                        """
                        new Promise(done => { const reader = new FileReader(); reader.onload = () => done(reader.result.split(',')[1]);
                          reader.readAsDataURL(window.made) })
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .note("focus", "document.querySelector('.picture').focus()"), .key("Delete"),
                    .wait("\(count) === 1"),
                    .note("left", state),
                    .click("#delete-all"), .wait("\(count) === 0"), .note("end", state),
                ])
            let seen = sight.values
            #expect(seen.none == "No photos yet: take one with the shutter." && seen.state == "2 saved.")
            #expect(seen.alt.hasPrefix("Photo: Bright, "))
            // The caption strip is dark, and the camera image above is not.
            #expect(seen.strip.max() ?? 255 < 100 && seen.above.min() ?? 0 > 150)
            #expect(
                seen.focused == "Mine" && seen.categories == ["all", "Bright", "Mine"] && seen.mine == 1
                    && seen.filtered == "1 of 2 saved.")
            #expect(seen.reloaded == "2 saved." && seen.left == "1 saved." && seen.end.hasPrefix("No photos yet"))
            #expect(seen.overflow <= 0 && sight.console == [])
            let file = folder.appending(path: "pictures.zip")
            try #require(Data(base64Encoded: seen.zip)).write(to: file)
            let archive = try JSONDecoder().decode(
                Archive.self, from: Python.output(of: "BrowserTests/Fixtures/list_zip.py", [file.path]))
            #expect(archive.damaged == nil && archive.names.count == 5 && archive.jpegs == 4)
            #expect(
                Set(archive.list.map(\.category)) == ["Bright", "Mine"]
                    && archive.list.allSatisfy { $0.label == "Bright" })
            #expect(Set(archive.list.map(\.file)).isSubset(of: archive.names))
        }
    }

    private struct Categorized: Decodable, Sendable {
        let label: String
        let categories: [String]
    }

    @Test("A saved photo gets the category of its label in the model") func categories() async throws {
        try await StudioSamples.withStudio(categories: ["Day": ["Bright"]]) { studio, folder in
            let view = Browser.View(width: 1280, camera: try StudioSamples.camera([.bright], in: folder))
            let options = "[...document.getElementById('category').options].map(option => option.textContent)"
            let sight: Browser.Sight<Categorized> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("label")) === 'Bright'"), .click("#tab-history"), .click("#shutter"),
                    .wait("document.querySelectorAll('#pictures li').length === 1"),
                    .click(".picture"), .note("label", "document.getElementById('viewer-class').value"),
                    .note("categories", options),
                ])
            #expect(sight.values.label == "Bright" && sight.values.categories == ["all", "Day"])
        }
    }

    private static let isCovered = "document.getElementById('picture').classList.contains('covered')"

    private struct Filter: Decodable, Sendable {
        let open: String
        let unknown: Bool
        let curtain: String
        let blur: String
        let state: String
        let said: String
        let kept: Int
        let focused: String
        let passed: String
        let chips: Int
        let again: String
        let threshold: String
        let foreign: String
    }

    @Test(
        "The content filter covers photos with a blocked label and does not save them", arguments: StudioTests.widths)
    func contentFilter(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.bright], in: folder))
            let isCovered = Self.isCovered
            let other = "sessionStorage.setItem('filter', JSON.stringify(['Bright', 'Of another model']))"
            let requests = "performance.getEntriesByName(new URL('classify', location).href).length"
            let sight: Browser.Sight<Filter> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("label")) === 'Bright'"), .note("open", Page.text("filter-state")),
                    .click("#filter-area-title"), .click("#filter-label"), .type("Unheard of"), .key("Enter"),
                    .note("unknown", "!document.getElementById('filter-label').checkValidity() && !\(isCovered)"),
                    // A label matches without regard to case.
                    .note("all", "document.getElementById('filter-label').select()"), .type("bRIGHT"), .key("Enter"),
                    .wait(isCovered),
                    .note("curtain", Page.text("curtain")),
                    .note("blur", "getComputedStyle(document.getElementById('video')).filter"),
                    .note("state", Page.text("filter-state")), .click("#shutter"), .wait("\(Page.text("said")) !== ''"),
                    .note("said", Page.text("said")), .note("kept", "document.querySelectorAll('#pictures li').length"),
                    // The button stays while the camera is classified.
                    .note("before", "(window.before = \(requests), 1)"),
                    .note("focus", "(document.querySelector('#filter-labels button').focus(), 1)"),
                    .wait("\(requests) >= window.before + 3"),
                    .note("focused", "document.activeElement.getAttribute('aria-label') ?? ''"),
                    // The content filter survives a reload.
                    .click("#filter-threshold"), .key("Home"), .reload(),
                    .wait("\(Page.text("curtain")).startsWith('Blocked')"),
                    .note("again", Page.text("filter-state")), .note("threshold", Page.text("filter-threshold-value")),
                    // A label that the model does not have is reported.
                    .note("other", "(\(other), 1)"), .reload(),
                    .wait("\(Page.text("curtain")).startsWith('Blocked')"),
                    .note("foreign", Page.text("filter-state")), .click("#filter-labels li:nth-child(2) button"),
                    .click("#filter-labels button"), .wait("!\(isCovered)"), .note("passed", Page.text("filter-state")),
                    .note("chips", "document.querySelectorAll('#filter-labels li').length"),
                ])
            let seen = sight.values
            #expect(seen.open == "The content filter is off: it has no labels." && seen.unknown)
            #expect(seen.curtain.hasPrefix("Blocked: Bright ") && seen.blur.hasPrefix("blur("))
            #expect(seen.state == "Blocked: the model detected “Bright”.")
            #expect(seen.said == "Blocked: the model detected “Bright”, so the photo is not saved." && seen.kept == 0)
            #expect(seen.focused == "Remove Bright from the filter")
            #expect(seen.passed == "The content filter is off: it has no labels." && seen.chips == 0)
            #expect(seen.again == seen.state && seen.threshold == "5 %")
            #expect(seen.foreign == "\(seen.state) Unknown to this model: “Of another model”.")
            #expect(sight.console == [])
        }
    }

    /// Sends no requests until the function `release` is called.
    ///
    /// Then, if `window.failures` is set, as many requests fail, and the next ones stay unanswered.
    private static let controlledRequests = """
        (() => { const ask = window.fetch, released = new Promise(done => { window.release = done });
          window.unanswered = 0;
          window.fetch = async (...parts) => {
            await released;
            if (window.failures === undefined) return ask(...parts);
            if (window.failures > 0) {
              window.failures -= 1;
              throw new TypeError('cut') }
            window.unanswered += 1;
            return new Promise(() => {}) };
          return 1 })()
        """

    /// A script that delays the examples of the page, and thus its model, until the function `release` is called.
    ///
    /// Then, two requests for the examples fail before the page gets them.
    private static let lateModel = """
        { const ask = window.fetch, released = new Promise(done => { window.release = done }); let failures = 2;
          window.fetch = async (...parts) => {
            if (!String(parts[0]).startsWith('examples')) return ask(...parts);
            await released;
            failures -= 1;
            if (failures >= 0) throw new TypeError('cut');
            return ask(...parts) } }
        """

    private struct Covered: Decodable, Sendable {
        let passed: String
        let pending: String
        let failed: Bool
        let said: String
        let shot: String
        let kept: Int
        let early: String
        let later: String
    }

    @Test("With a content filter, photos are covered until classified, and unclassified photos are not saved")
    func covered()
        async throws
    {
        try await StudioSamples.withStudio { studio, folder in
            let bright = try StudioSamples.write(.bright, to: folder)
            let dark = try StudioSamples.write(.dark, to: folder)
            let (said, curtain) = (Page.text("said"), Page.text("curtain"))
            let sight: Browser.Sight<Covered> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .choose("#file", bright), .wait("\(Page.text("label")) === 'Bright'"),
                    .click("#filter-area-title"), .click("#filter-label"), .type("Dark"), .key("Enter"),
                    .note("passed", Page.text("filter-state")),
                    .note("control", Self.controlledRequests),
                    .choose("#file", dark), .wait("\(Self.isCovered) && \(curtain) === 'Classifying …'"),
                    .note("pending", Page.text("filter-state")), .note("released", "(window.release(), 1)"),
                    .wait("\(curtain).startsWith('Blocked: Dark ')"),
                    // The request for the photo fails. The page repeats it, and no answer changes the message.
                    .note("cut", "window.failures = 1"), .choose("#file", bright), .wait("\(said) !== ''"),
                    .wait("window.unanswered === 1"), .note("failed", Self.isCovered), .note("said", said),
                    .note("again", "window.failures = 1"), .click("#shutter"),
                    .wait("\(said).startsWith('The photo was not saved')"), .note("shot", said),
                    // The same holds before the page has loaded the model, which it requests again.
                    .reload(first: Self.lateModel), .choose("#file", dark), .click("#shutter"),
                    .wait("\(said).startsWith('The photo was not saved')"), .note("early", said),
                    .note("continued", "(window.release(), 1)"), .wait("\(curtain).startsWith('Blocked: Dark ')"),
                    .note("later", Page.text("filter-state")),
                    .note("kept", "document.querySelectorAll('#pictures li').length"),
                ])
            let seen = sight.values
            #expect(seen.passed == "The image passes the content filter.")
            #expect(seen.pending == "The image is covered until it is classified." && seen.failed)
            #expect(seen.said == "The studio has ended and does not respond.")
            #expect(seen.shot == "The photo was not saved: \(seen.said)" && seen.kept == 0)
            #expect(
                seen.early
                    == "The photo was not saved: the content filter cannot check it before the model is loaded.")
            #expect(seen.later == "Blocked: the model detected “Dark”.")
            #expect(sight.console == [])
        }
    }

    private struct Untaught: Decodable, Sendable {
        let example: String
        let photo: String
        let counts: [String]
        let kept: [Int]
        let after: String
    }

    @Test("The content filter also applies to examples and to photos with boxes") func filteredExamples() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(camera: try StudioSamples.camera([.bright], in: folder))
            let (said, count) = (Page.text("said"), "document.querySelector('#classes .count').textContent")
            let sight: Browser.Sight<Untaught> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("label")) === 'Bright'"),
                    .click("#filter-area-title"), .click("#filter-label"), .type("Bright"), .key("Enter"),
                    .wait(Self.isCovered),
                    .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"),
                    .click(".hold"), .wait("\(said) !== ''"), .note("example", said), .note("counts", "[\(count)]"),
                    .click("#tab-annotate"), .click("#box-current"), .wait("\(said) !== ''"), .note("photo", said),
                    .note(
                        "kept",
                        """
                        Promise.all([fetch('examples'), fetch('boxes')].map(one => one.then(one => one.json())))
                          .then(([examples, boxes]) => [examples.classes[0].count, boxes.photos.length])
                        """),
                    // Without the filter, the same image is an example.
                    .click("#tab-look"), .click("#filter-labels button"), .click("#tab-teach"), .click(".hold"),
                    .wait("\(count) !== '0 of 12 examples'"), .note("after", count),
                ])
            let seen = sight.values
            #expect(seen.example == "Blocked: the model detected “Bright”, so the studio does not keep the image.")
            #expect(seen.photo == seen.example && seen.counts == ["0 of 12 examples"] && seen.kept == [0, 0])
            #expect(seen.after.contains("example") && sight.console == [])
        }
    }

    private struct Named: Decodable, Sendable {
        let zip: String
    }

    @Test("The folders of the export have names that all systems allow") func exportedNames() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let categories = ["CON", "com1", "Lpt²", "con artist", "Cup ", "a/b", "..", "CONIN$"]
            // Records of the browser's store with these categories.
            let add = """
                new Promise((done, fail) => { const request = indexedDB.open('imprint-studio'); request.onerror = fail;
                  request.onsuccess = () => { const transaction = request.result.transaction('pictures', 'readwrite');
                    for (const category of \(categories)) {
                      transaction.objectStore('pictures').add({ label: 'NUL', confidence: 1, objects: [], date: new Date(), category, blob: new Blob(['x']) }) }
                    transaction.oncomplete = () => done(1) } })
                """
            let sight: Browser.Sight<Named> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note("add", add), .reload(),
                    .wait("document.body.dataset.ready === 'true'"), .click("#tab-history"),
                    .wait("document.querySelectorAll('#pictures li').length === \(categories.count)"),
                    .note(
                        "spy",
                        "(() => { const make = URL.createObjectURL; URL.createObjectURL = blob => { window.made = blob; return make(blob) } })()"
                    ),
                    .click("#export"), .wait("\(Page.text("history-state")).startsWith('Exported')"),
                    .note(
                        "zip",
                        """
                        new Promise(done => { const reader = new FileReader(); reader.onload = () => done(reader.result.split(',')[1]);
                          reader.readAsDataURL(window.made) })
                        """),
                ])
            let file = folder.appending(path: "pictures.zip")
            try #require(Data(base64Encoded: sight.values.zip)).write(to: file)
            let archive = try JSONDecoder().decode(
                Archive.self, from: Python.output(of: "BrowserTests/Fixtures/list_zip.py", [file.path]))
            #expect(
                Set(archive.list.map { String($0.file.prefix { $0 != "/" }) })
                    == ["CON_", "com1_", "Lpt²_", "con artist", "Cup", "a_b", "__", "CONIN_"])
            #expect(archive.damaged == nil && sight.console == [])
        }
    }
}
