import Foundation
import ImprintStudio
import TestSupport
import Testing

/// The camera image on the stage, steady figures, and messages beside their cause.
@Suite("Stage of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioStageTests {
    private static let isReady = "document.body.dataset.ready === 'true'"
    private static let isLive = "document.body.dataset.source === 'live'"

    /// A script that answers requests to classify with an object whose confidence changes by tenths, and a label of the whole image.
    private static let answer = """
        const realFetch = window.fetch;
        window.count = 0;
        window.fetch = (path, options) => {
          if (path !== "classify") return realFetch(path, options);
          window.count += 1;
          return Promise.resolve(new Response(JSON.stringify({ rejected: false, modelVersion: 0,
            "observations": [{ label: "leaf", confidence: .495 }, { label: "none", confidence: .3 }],
            objects: [{ label: "leaf", confidence: .914 + (window.count % 3) * .003, box: { x: .1, y: .25, width: .3, height: .25 } }] })));
        };
        """

    private struct Steady: Decodable, Sendable {
        let label: String
        let figures: [String]
        let top: Bool
        let position: String
        let mirrored: String
        let isAbove: Bool
        let overflow: Int
    }

    @Test(
        "The gauge shows a steady confidence of the best object; a front camera is mirrored",
        arguments: StudioTests.widths)
    func steady(width: Int) async throws {
        try await StudioSamples.withDetector { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.dark], in: folder))
            let front = """
                { const settings = MediaStreamTrack.prototype.getSettings; MediaStreamTrack.prototype.getSettings = function () {
                  return { ...settings.call(this), facingMode: 'user' } } }
                """
            let sight: Browser.Sight<Steady> = try await StudioSamples.look(
                studio, view,
                [
                    .reload(first: Self.answer + front), .wait(Self.isReady), .wait("\(Page.text("percent")) !== '–'"),
                    .note(
                        "watch",
                        """
                        (() => { window.figures = new Set(); const add = () => ['percent', 'objects'].forEach(id =>
                            (document.getElementById(id).textContent.match(/[0-9.]+ %/g) ?? []).forEach(one => figures.add(one)));
                          add(); new MutationObserver(add).observe(document.body, { subtree: true, childList: true, characterData: true });
                          window.start = window.count; return 1 })()
                        """),
                    .wait("window.count >= window.start + 4"), .note("figures", "[...window.figures]"),
                    .note("label", Page.text("label")),
                    .note("top", "document.getElementById('top').checkVisibility()"),
                    .note("position", "document.querySelector('#objects .small').textContent"),
                    .note(
                        "isAbove",
                        """
                        (() => { const [boxes, video] = ['boxes', 'video'].map(id => document.getElementById(id)), part = video.getBoundingClientRect();
                          const stack = document.elementsFromPoint(part.x + part.width / 2, part.y + part.height / 2);
                          return stack.includes(boxes) && stack.indexOf(boxes) < stack.indexOf(video) })()
                        """),
                    .note("mirrored", "getComputedStyle(document.getElementById('video')).transform"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                ])
            let seen = sight.values
            #expect(seen.label == "leaf" && seen.figures.count == 1 && ["91 %", "92 %"].contains(seen.figures[0]))
            // The object is on the left of the camera image, and on the right of the mirrored one.
            #expect(!seen.top && seen.position == "right" && seen.mirrored.hasPrefix("matrix(-1"))
            #expect(seen.isAbove)
            #expect(seen.overflow <= 0 && sight.console == [])
        }
    }

    private struct Averages: Decodable, Sendable {
        let figures: [Int]
        let rejections: [Bool]
        let counts: [Int]
        let moved: [String]
    }

    @Test("Noise, a single rejection and a single missing object do not change what the page shows of the camera")
    func averages() async throws {
        // Results every 100 ms, without a camera.
        let run = """
            (async results => { const { steady } = await import('./steady.js');
              return results.reduce((all, result, index) =>
                [...all, steady({ "observations": [], ...result }, all.at(-1) ?? null, 5000 + 100 * index)], []) })
            """
        func object(_ label: String, x: Double) -> String {
            "{ objects: [{ label: '\(label)', confidence: .9, box: { x: \(x), y: .1, width: .3, height: .3 } }] }"
        }
        let missing = "{ objects: [] }"
        let presence = [1, 1, 0, 1, 0, 0, 0, 0].map { $0 == 1 ? object("a", x: 0.1) : missing }
        try await StudioSamples.withStudio { studio, _ in
            let sight: Browser.Sight<Averages> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note(
                        "figures",
                        """
                        \(run)([...Array(20).keys()].map(index => ({ "observations": [{ label: 'a', confidence: .8 + (index % 2) * .04 }] })))
                          .then(all => [...new Set(all.slice(5).map(one => Math.round(one["observations"][0].shown * 100)))])
                        """),
                    .note(
                        "rejections",
                        """
                        \(run)([0, 0, 1, 0, 0, 1, 1, 1, 1].map(one => ({ rejected: one === 1 })))
                          .then(all => all.map(one => one.rejected))
                        """),
                    .note(
                        "counts",
                        "\(run)([\(presence.joined(separator: ", "))]).then(all => all.map(one => one.objects.length))"),
                    // Another label at the same position, and then a jump of the object.
                    .note(
                        "moved",
                        """
                        \(run)([\(object("a", x: 0.1)), \(object("b", x: 0.12)), \(object("b", x: 0.6))])
                          .then(all => all.flatMap(one => one.objects.map(({ label }) => label)))
                        """),
                ])
            let seen = sight.values
            #expect(seen.figures.count == 1 && abs(seen.figures[0] - 82) <= 1)
            #expect(seen.rejections == [false, false, false, false, false, false, true, true, true])
            #expect(seen.counts == [1, 1, 1, 1, 1, 1, 0, 0])
            #expect(seen.moved == ["a", "b", "b"])
        }
    }

    private struct Camera: Decodable, Sendable {
        let crop: [Double]
        let isNoted: Bool
        let fill: Double
        let options: [String]
        let chosen: String
        let released: Bool
        let again: Bool
    }

    @Test("The stage frames what the model sees, offers several cameras, and turns off with the studio")
    func camera() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(camera: try StudioSamples.camera([.bright], in: folder))
            // A second camera, which the browser opens as the first one.
            let cameras = """
                { const devices = navigator.mediaDevices, list = devices.enumerateDevices.bind(devices), ask = devices.getUserMedia.bind(devices);
                  devices.enumerateDevices = async () => [...await list(), { kind: 'videoinput', deviceId: 'second', label: 'Second camera' }];
                  devices.getUserMedia = wish => { window.wish = wish; return ask({ video: true }) } }
                """
            let cut = """
                (() => { window.realFetch = window.fetch; window.fetch = () => Promise.reject(new TypeError('cut')); return 1 })()
                """
            let sight: Browser.Sight<Camera> = try await StudioSamples.look(
                studio, view,
                [
                    .reload(first: cameras), .wait(Self.isReady), .wait("\(Page.text("label")) === 'Bright'"),
                    .wait("document.getElementById('camera-choice').checkVisibility()"),
                    .note(
                        "options",
                        "[...document.getElementById('camera-select').options].map(one => one.textContent).slice(-1)"),
                    .note(
                        "crop",
                        "[document.getElementById('crop')].flatMap(one => [one.clientWidth / one.clientHeight, one.hidden ? 0 : 1])"
                    ),
                    .note("isNoted", "document.getElementById('crop-note').checkVisibility()"),
                    .note(
                        "fill",
                        "(one => Math.abs(one.clientWidth / one.clientHeight - 4 / 3))(document.getElementById('picture'))"
                    ),
                    .note(
                        "choose",
                        """
                        (() => { const select = document.getElementById('camera-select'); select.value = 'second';
                          select.dispatchEvent(new Event('change', { bubbles: true })); return 1 })()
                        """),
                    .wait("window.wish?.video.deviceId !== undefined"),
                    .note("chosen", "window.wish.video.deviceId.exact"), .wait(Self.isLive),
                    .note("cut", cut), .wait("\(Page.text("notice")).startsWith('The studio has ended')"),
                    .note("released", "document.getElementById('video').srcObject === null"),
                    .note("back", "(window.fetch = window.realFetch, 1)"), .wait(Self.isLive),
                    .wait("\(Page.text("label")) === 'Bright'"), .note("again", "\(Page.text("said")) === ''"),
                ])
            let seen = sight.values
            #expect(abs(seen.crop[0] - 1) < 0.02 && seen.crop[1] == 1 && seen.isNoted && seen.fill < 0.02)
            #expect(seen.options == ["Second camera"] && seen.chosen == "second")
            #expect(seen.released && seen.again && sight.console == [])
        }
    }

    private struct Messages: Decodable, Sendable {
        let collapsed: [Bool]
        let panel: [String]
        let cleared: Bool
        let image: [String]
        let opened: Bool
        let summary: String
    }

    @Test("A message is beside its cause and has its kind; unused areas are collapsed", arguments: StudioTests.widths)
    func messages(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let textFile = folder.appending(path: "note.jpg")
            try Data("This is not an image.".utf8).write(to: textFile)
            let line = """
                [...document.querySelectorAll('.message')].filter(one => one.checkVisibility({ visibilityProperty: true }))
                  .map(one => [one.closest('[role=tabpanel], .stage').id || 'stage', one.dataset.kind]).flat()
                """
            let sight: Browser.Sight<Messages> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .note(
                        "collapsed", "['alt', 'filter-label'].map(id => document.getElementById(id).checkVisibility())"),
                    // A class without a name that folders can have.
                    .click("#tab-teach"), .click("#class-name"), .type("a/b"), .key("Enter"),
                    .wait("\(Page.text("said")) !== ''"), .note("panel", line),
                    .key("End"), .note("cleared", "\(line).length === 0"),
                    .choose("#file", textFile), .wait("\(Page.text("said")) !== ''"), .note("image", line),
                    .click("#tab-look"), .click("#filter-area-title"), .click("#filter-label"), .type("Dark"),
                    .key("Enter"), .note("summary", Page.text("filter-summary")), .reload(), .wait(Self.isReady),
                    .note("opened", "document.getElementById('filter-label').checkVisibility()"),
                ])
            let seen = sight.values
            #expect(seen.collapsed == [false, false] && seen.panel == ["teach", "error"] && seen.cleared)
            #expect(seen.image == ["stage", "error"] && seen.opened && seen.summary == "1 label")
            // The browser itself logs the rejected name and photo.
            #expect(sight.console.allSatisfy { $0.contains("400") || $0.contains("422") })
        }
    }
}
