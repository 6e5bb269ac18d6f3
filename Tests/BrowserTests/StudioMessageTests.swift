import Foundation
import Imprint
import ImprintImages
import ImprintStudio
import TestSupport
import Testing

/// The messages of the page: they agree with what the page shows.
@Suite("Messages of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioMessageTests {
    private static let said = Page.text("said")
    private static let isReady = "document.body.dataset.ready === 'true'"

    private struct Cleared: Decodable, Sendable {
        let unreadable: String
        let live: String
        let blocked: String
        let unblocked: String
        let afterFailure: String
        let copied: String
        let outdated: String
    }

    @Test("The next action, a new result and a successful retry clear a message") func cleared() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let textFile = folder.appending(path: "note.jpg")
            try Data("This is not an image.".utf8).write(to: textFile)
            let view = Browser.View(camera: try StudioSamples.camera([.bright], in: folder))
            let sight: Browser.Sight<Cleared> = try await StudioSamples.look(
                studio, view,
                [
                    .wait("\(Page.text("label")) === 'Bright'"),
                    .choose("#file", textFile), .wait("\(Self.said) !== ''"), .note("unreadable", Self.said),
                    .click("#camera"), .wait("\(Page.text("label")) === 'Bright'"), .note("live", Self.said),
                    .click("#filter-area-title"), .click("#filter-label"), .type("Bright"), .key("Enter"),
                    .wait("\(Page.text("curtain")).startsWith('Blocked')"),
                    .click("#shutter"), .wait("\(Self.said) !== ''"), .note("blocked", Self.said),
                    .click("#filter-labels button"), .note("unblocked", Self.said),
                    // The copied text changes with the threshold.
                    .note("clipboard", "(navigator.clipboard.writeText = async () => {}, 1)"),
                    // The smoothed confidence of Bright rises. Once it reaches the minimum, the text stays.
                    .click("#alt-area-title"), .wait("\(Page.text("alt")) === 'Photo that may show Bright.'"),
                    .click("#copy"),
                    .wait("\(Page.text("copied")) !== ''"), .note("copied", Page.text("copied")),
                    .click("#alt-threshold"), .key("End"),
                    .wait("\(Page.text("alt")).startsWith('No label')"), .note("outdated", Page.text("copied")),
                    .reload(
                        first: """
                            { const ask = window.fetch; let failures = 2; window.fetch = (...parts) =>
                              String(parts[0]).startsWith("examples") && failures-- > 0 ? Promise.reject(new TypeError("cut")) : ask(...parts) }
                            """),
                    .wait(Self.isReady), .note("afterFailure", Self.said),
                ])
            let seen = sight.values
            #expect(seen.unreadable.hasPrefix("The image data: expected an image") && seen.live == "")
            #expect(seen.blocked.hasPrefix("Blocked: ") && seen.unblocked == "" && seen.afterFailure == "")
            #expect(seen.copied == "Copied." && seen.outdated == "")
            // The browser itself logs the rejected photo.
            #expect(sight.console.allSatisfy { $0.contains("422") })
        }
    }

    private struct Axes: Decodable, Sendable {
        let axes: [[String]]
        let current: String
    }

    @Test("The labels of the loss axis differ, even for tiny losses") func lossAxis() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let sight: Browser.Sight<Axes> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note(
                        "axes",
                        """
                        import('./curves.js').then(({ showCurves }) => [2.3, 0.004, 0.00004].map(loss => {
                          const area = document.getElementById('curves');
                          showCurves(area, [{ step: 1, steps: 2, loss, accuracy: 0.5 }, { step: 2, steps: 2, loss: loss / 2, accuracy: 1 }]);
                          return [...area.querySelectorAll('.loss .tick')].slice(0, 3).map(tick => tick.textContent) }))
                        """),
                    .note("current", "document.querySelector('#curves .loss b').textContent"),
                ])
            #expect(
                sight.values.axes == [
                    ["0.00", "1.15", "2.30"], ["0.0000", "0.0020", "0.0040"], ["0", "2e-5", "4e-5"],
                ])
            #expect(sight.values.current == "2e-5" && sight.console == [])
        }
    }

    private struct Notices: Decodable, Sendable {
        let unreadable: String
        let readable: String
        let isHidden: Bool
        let shown: Bool
    }

    @Test("The notice for a photo that the browser cannot show agrees with the result") func notice() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let textFile = folder.appending(path: "note.jpg")
            try Data("This is not an image.".utf8).write(to: textFile)
            let photo = try StudioSamples.write(.bright, to: folder)
            let notice = Page.text("notice")
            let sight: Browser.Sight<Notices> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .choose("#file", textFile), .wait("\(notice).startsWith('Neither')"), .note("unreadable", notice),
                    // The browser cannot show a photo that the model can read, such as HEIC.
                    .choose("#file", photo), .wait("\(Page.text("label")) === 'Bright'"),
                    .note("shown", "document.getElementById('photo').checkVisibility()"),
                    .note("fail", "document.getElementById('photo').dispatchEvent(new Event('error'))"),
                    .note("readable", notice),
                    // The notice stays if the page was hidden meanwhile.
                    .note("again", "(document.dispatchEvent(new Event('visibilitychange')), 1)"),
                    .wait("\(Page.text("label")) === 'Bright'"),
                    .note("isHidden", "\(notice) !== '' && !document.getElementById('photo').checkVisibility()"),
                ])
            let seen = sight.values
            #expect(seen.unreadable == "Neither this browser nor the model can read the file. Choose a photo.")
            #expect(seen.readable == "This browser cannot show the photo, but the model can read it.")
            #expect(seen.shown && seen.isHidden)
            // The browser itself logs the rejected photo.
            #expect(sight.console.allSatisfy { $0.contains("422") })
        }
    }

    private struct Dropped: Decodable, Sendable {
        let first: String
        let said: String
        let added: String
        let count: String
    }

    @Test("Several dropped photos are examples of a class; elsewhere, the page reports that it shows only one")
    func drops() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let photos = try (0..<5).map { index in
                let image = StudioSamples.image(.bright, seed: UInt64(index), width: 160, height: 120)
                return Data(try ImageFile.encodeJPEG(image)).base64EncodedString()
            }
            // The browser cannot read the second file, as if another program had moved it.
            let unreadable = """
                (() => { const read = Blob.prototype.arrayBuffer, ask = window.fetch;
                  Blob.prototype.arrayBuffer = function () {
                    return this.name === 'gone.jpg' ? Promise.reject(new DOMException('gone', 'NotReadableError')) : read.call(this) };
                  window.fetch = (path, options) =>
                    options?.body?.name === 'gone.jpg' ? Promise.reject(new TypeError('gone')) : ask(path, options);
                  return 1 })()
                """
            // Drops the photos, the unreadable file and a text on an element.
            func drop(_ selector: String) -> Browser.Step {
                .note(
                    "drop",
                    """
                    (() => { const data = new DataTransfer();
                      for (const [index, text] of \(photos).entries()) {
                        data.items.add(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], `${index}.jpg`, { type: 'image/jpeg' }));
                        if (index === 0) data.items.add(new File(['gone'], 'gone.jpg', { type: 'image/jpeg' })) }
                      data.items.add(new File(['text'], 'note.jpg', { type: 'image/jpeg' }));
                      document.querySelector('\(selector)').dispatchEvent(new DragEvent('drop', { dataTransfer: data, cancelable: true, bubbles: true }));
                      return 1 })()
                    """)
            }
            let sight: Browser.Sight<Dropped> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note("unreadable", unreadable), drop("body"), .wait("\(Page.text("label")) === 'Bright'"),
                    .note("first", Page.text("label")), .note("said", Self.said),
                    .click("#tab-teach"), .click("#class-name"), .type("Cup"), .key("Enter"),
                    .wait("document.activeElement.className === 'hold'"), drop("#classes li .name"),
                    .wait("\(Self.said).includes('added')"), .note("added", Self.said),
                    .note("count", "document.querySelector('#classes .count').textContent"),
                ])
            let seen = sight.values
            #expect(seen.first == "Bright" && seen.said.hasPrefix("The page shows only the first of 7 photos."))
            let gone = "The file cannot be read: it was moved or changed, or is not accessible. Choose it again."
            #expect(seen.added.hasPrefix("“Cup”: added 5 of 7 photos. gone.jpg: \(gone) note.jpg: "))
            #expect(seen.count == "5 of 12 examples")
            // The browser itself logs the rejected file.
            #expect(sight.console.allSatisfy { $0.contains("422") })
        }
    }

    private struct Rejected: Decodable, Sendable {
        let steps: [String]
        let title: String
        let font: String
        let colors: [String]
        let faint: [String]
        let overflow: Int
    }

    @Test("The page without access has a style and describes how to get access", arguments: [false, true])
    func rejected(isDark: Bool) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let port = try #require(studio.url.port)
            let address = try #require(URL(string: "http://127.0.0.1:\(port)/"))
            let sight: Browser.Sight<Rejected> = try await Browser.visit(
                address, Browser.View(width: 390, isDark: isDark),
                for: [
                    "steps": "[...document.querySelectorAll('li')].map(one => one.textContent)",
                    "title": "document.querySelector('h1').textContent",
                    "font": "getComputedStyle(document.body).fontFamily",
                    "colors":
                        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]",
                    "faint": Browser.faint, "overflow": "document.scrollingElement.scrollWidth - innerWidth",
                ])
            let seen = sight.values
            #expect(seen.title == "Imprint Studio" && seen.steps.count == 2)
            #expect(seen.steps[0] == "Find the address that imprint studio printed. It ends with ?token=…")
            #expect(seen.font.hasPrefix("system-ui") && seen.faint == [] && seen.overflow <= 0)
            #expect(seen.colors[1] == (isDark ? "rgb(22, 25, 29)" : "rgb(253, 252, 250)"))
            // The browser itself logs the status.
            #expect(sight.console.allSatisfy { $0.contains("403") })
        }
    }

    private struct Running: Decodable, Sendable {
        let seen: [[String]]
    }

    @Test("A page that is loaded during training shows it", arguments: [false, true])
    func running(hasModel: Bool) async throws {
        try await StudioSamples.withStudio(hasModel: hasModel) { studio, _ in
            // Answers the first request for the training status, and none of the next ones.
            func answer(_ status: String) -> String {
                """
                { const ask = window.fetch; let isAnswered = false; window.fetch = async (...parts) => {
                  if (!String(parts[0]).startsWith('training')) return ask(...parts);
                  if (isAnswered) return new Promise(() => {});
                  isAnswered = true;
                  return new Response('\(status)') } }
                """
            }
            let seen = """
                [document.querySelector('[role=tab][aria-selected=true]').textContent, document.getElementById('model').textContent,
                  ...['training-status', 'detector-status', 'stop', 'progress', 'detector-keep', 'detector-stop', 'detector-progress'].map(id =>
                    document.getElementById(id)).filter(one => one.checkVisibility()).map(one => one.id + ': ' + one.textContent)]
                """
            let sight: Browser.Sight<Running> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .reload(
                        first: answer(
                            #"{"version": 1, "stage": "running", "panel": "teach", "message": "Epoch 1 of 40", "points": []}"#
                        )),
                    .wait(Self.isReady), .note("first", "(window.seen = [\(seen)], 1)"),
                    .note("kept", "(sessionStorage.setItem('seen', JSON.stringify(window.seen)), 1)"),
                    .reload(
                        first: answer(
                            #"{"version": 1, "stage": "running", "panel": "annotate", "message": "Phase 1 of 3: 5 %", "points": [], "fraction": 0.05, "canKeepBest": true, "sheet": "Objects"}"#
                        )),
                    .wait(Self.isReady), .note("seen", "[...JSON.parse(sessionStorage.getItem('seen')), \(seen)]"),
                ])
            let name = hasModel ? "bright" : "No model yet: training is running"
            #expect(
                sight.values.seen == [
                    ["Train", name, "training-status: Epoch 1 of 40", "stop: Stop", "progress: "],
                    [
                        "Boxes", name, "detector-status: Phase 1 of 3: 5 %", "detector-keep: Stop and keep the best",
                        "detector-stop: Stop and discard",
                        "detector-progress: ",
                    ],
                ])
            // There is no contact sheet in this test.
            #expect(sight.console.allSatisfy { $0.contains("404") })
        }
    }
}
