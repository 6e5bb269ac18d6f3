import Foundation
import Imprint
import ImprintImages
import ImprintStudio
import TestSupport
import Testing

/// Detected objects in the studio: their boxes over the image and in saved photos, and their list.
@Suite("Detected objects in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioDetectionTests {
    private static let items =
        "[...document.querySelectorAll('#objects li')].map(one => one.innerText.replace(/\\s+/g, ' ').trim())"

    /// A script that answers each request to classify with two objects; the second one moves with each request.
    private static let answer = """
        const realFetch = window.fetch;
        window.count = 0;
        window.fetch = (path, options) => {
          if (path !== "classify") return realFetch(path, options);
          window.count += 1;
          const second = { x: window.count % 2 ? .7 : .1, y: .7, width: .2, height: .2 };
          const answer = { rejected: false, modelVersion: 0, objects: [
            { label: "leaf", confidence: .95, box: { x: .25, y: .25, width: .5, height: .25 } },
            { label: "crest", confidence: .75, box: second }] };
          answer.observations = [
            { label: "none", confidence: .6 }, { label: "leaf", confidence: .3 }, { label: "crest", confidence: .1 }];
          return Promise.resolve(new Response(JSON.stringify(answer)));
        };
        """

    /// An expression for the number of bright pixels of the overlay in a part of the image, given in fractions.
    private static func brightPixels(_ x: Double, _ y: Double, _ width: Double, _ height: Double) -> String {
        """
        (() => { const canvas = document.getElementById('boxes'); if (canvas.hidden) return 0;
          const data = canvas.getContext('2d').getImageData(canvas.width * \(x), canvas.height * \(y), canvas.width * \(width),
            canvas.height * \(height)).data; let count = 0;
          for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && Math.max(data[i], data[i + 1], data[i + 2]) > 180) count += 1;
          return count })()
        """
    }

    private struct Live: Decodable, Sendable {
        let items: [String]
        let spoken: String
        let edge: Int
        let middle: Int
        let size: [Double]
        let alt: String
        let state: String
        let covered: Bool
        let caption: String
        let pictureAlt: String
        let edgeOfPicture: [Int]
        let stored: String
        let overflow: Int
    }

    @Test("The boxes of all objects follow the camera, and saved photos keep them", arguments: StudioTests.widths)
    func live(width: Int) async throws {
        try await StudioSamples.withDetector { studio, folder in
            let view = Browser.View(width: width, camera: try StudioSamples.camera([.dark], in: folder))
            let sight: Browser.Sight<Live> = try await StudioSamples.look(
                studio, view,
                [
                    .reload(first: Self.answer), .wait("document.body.dataset.ready === 'true'"),
                    .wait("\(Self.items).length === 2"), .note("items", Self.items),
                    .wait("\(Self.brightPixels(0.8, 0.65, 0.15, 0.3)) > 20"),
                    .wait("\(Self.brightPixels(0.05, 0.65, 0.2, 0.3)) > 20"),
                    .wait("\(Page.text("spoken-objects")) !== ''"), .note("spoken", Page.text("spoken-objects")),
                    .note("edge", Self.brightPixels(0.24, 0.3, 0.02, 0.15)),
                    .note("middle", Self.brightPixels(0.3, 0.35, 0.4, 0.1)),
                    .note(
                        "size",
                        """
                        (() => { const box = document.getElementById('boxes').getBoundingClientRect(),
                          whole = document.getElementById('picture').getBoundingClientRect();
                          return [box.width / whole.width, box.height / whole.height] })()
                        """),
                    .note("alt", Page.text("alt")), .click("#shutter"),
                    .wait("document.querySelectorAll('#pictures li').length === 1"),
                    .click("#tab-history"), .note("caption", "document.querySelector('#pictures bdi').textContent"),
                    .note("pictureAlt", "document.querySelector('.picture').ariaLabel"), .click(".picture"),
                    .note(
                        "edgeOfPicture",
                        """
                        (async () => { const image = document.getElementById('viewer-marked'); await image.decode();
                          const canvas = document.createElement('canvas'); canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
                          const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
                          const at = x => Math.max(...context.getImageData(canvas.width * x, canvas.height * .4, 1, 1).data.slice(0, 3));
                          return [at(.25), at(.5)] })()
                        """),
                    .note(
                        "stored",
                        """
                        new Promise(done => { indexedDB.open('imprint-studio').onsuccess = event =>
                          event.target.result.transaction('pictures').objectStore('pictures').getAll().onsuccess = all =>
                            done(all.target.result[0].objects.map(one => one.label + one.box.width).join()) })
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    // An object blocks an image although its label shares the confidence of the classifications with others.
                    .click("#viewer-close"), .click("#tab-look"), .click("#filter-area-title"), .click("#filter-label"),
                    .type("leaf"), .key("Enter"),
                    .note("covered", "!\(Page.isShown("boxes"))"), .note("state", Page.text("filter-state")),
                ])
            let seen = sight.values
            #expect(seen.items[0] == "leaf centre 95 %" && seen.items[1].hasSuffix("75 %"))
            #expect(seen.spoken.hasPrefix("2 objects: leaf, 95 percent, centre; crest, 75 percent, lower "))
            // The line of a box is bright, and its inside shows the image.
            #expect(seen.edge > 20 && seen.middle == 0)
            #expect(seen.size.allSatisfy { abs($0 - 1) < 0.02 } && seen.overflow <= 0)
            #expect(seen.alt == "Photo that may show leaf and crest.")
            #expect(seen.caption == "leaf 95.0 % and 1 more" && seen.pictureAlt.contains("2 objects: leaf, 95 percent"))
            #expect(seen.edgeOfPicture[0] > 150 && seen.edgeOfPicture[1] < 100, "\(seen.edgeOfPicture)")
            #expect(seen.stored == "leaf0.5,crest0.2")
            #expect(seen.covered && seen.state == "Blocked: the model detected “leaf”.")
            // This test reads the canvas several times.
            #expect(sight.console.allSatisfy { $0.contains("willReadFrequently") })
        }
    }

    private struct Photo: Decodable, Sendable {
        let items: [String]
        let objects: [DetectedObject]
        let hasBoxes: Bool
        let fewer: [String]
    }

    @Test("A photo has the boxes that the detector returns") func photo() async throws {
        try await StudioSamples.withDetector { studio, folder in
            let file = folder.appending(path: "photo.png")
            try ImageFile.write(StudioSamples.image(.stripes, seed: 1, width: 120, height: 90), to: file)
            let bytes = try Data(contentsOf: file).base64EncodedString()
            let sight: Browser.Sight<Photo> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .choose("#file", file), .wait("document.querySelectorAll('#objects .number').length > 0"),
                    // The size of the photo may be known only after the result.
                    .wait(Page.isShown("boxes")),
                    .note("items", Self.items), .note("hasBoxes", Page.isShown("boxes")),
                    .note(
                        "objects",
                        """
                        fetch('classify', { method: 'POST', body: Uint8Array.from(atob("\(bytes)"), c => c.charCodeAt(0)) })
                          .then(answer => answer.json()).then(answer => answer.objects)
                        """),
                    .note("fewer", "(document.getElementById('camera').click(), \(Self.items))"),
                ])
            let expected = try StudioSamples.detector().detect(file)
            #expect(expected.count > 1 && sight.values.objects == expected && sight.values.hasBoxes)
            #expect(sight.values.items.count == expected.count)
            // Without an image there is no list.
            #expect(sight.values.fewer.count == 1 || sight.values.fewer == [""], "\(sight.values.fewer)")
            #expect(sight.console == [])
        }
    }

    private struct Classifier: Decodable, Sendable {
        let isListed: Bool
        let hasBoxes: Bool
    }

    @Test("A classifier of whole images shows no objects") func classifier() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let file = try StudioSamples.write(.bright, to: folder)
            let sight: Browser.Sight<Classifier> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .choose("#file", file), .wait("\(Page.text("label")) === 'Bright'"),
                    .note("isListed", Page.isShown("found")), .note("hasBoxes", Page.isShown("boxes")),
                ])
            #expect(!sight.values.isListed && !sight.values.hasBoxes)
        }
    }

    private struct Layout: Decodable, Sendable {
        let crowd: [Int]
        let badge: Bool
        let corners: Bool
    }

    @Test("Labels stay inside the image and never cover each other") func labels() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let sight: Browser.Sight<Layout> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .note(
                        "imported",
                        "import('./overlay.js').then(overlay => { window.lay = overlay.placeLabels; return 1 })"),
                    .note(
                        "helpers",
                        """
                        (() => { window.clash = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
                          window.inside = (a, area) => a.x >= 0 && a.y >= 0 && a.x + a.width <= area.width && a.y + a.height <= area.height;
                          return 1 })()
                        """),
                    // 50 labels of 80 x 20 fill 400 x 200.
                    .note(
                        "crowd",
                        """
                        [24, 2000].map(count => { const area = { width: 400, height: 200 }, box = { x: 100, y: 60, width: 90, height: 70 };
                          const labels = lay(Array(count).fill(box), Array(count).fill({ width: 80, height: 20 }), area).filter(Boolean);
                          const isFree = labels.every((a, i) => inside(a, area) && labels.every((b, j) => i === j || !clash(a, b)));
                          return isFree ? labels.length : -1 })
                        """),
                    .note(
                        "badge",
                        """
                        (() => { const badge = { x: 320, y: 0, width: 80, height: 30 };
                          const [label] = lay([{ x: 330, y: 25, width: 60, height: 60 }], [{ width: 70, height: 20 }],
                            { width: 400, height: 200, taken: [badge] });
                          return label !== null && !clash(label, badge) })()
                        """),
                    .note(
                        "corners",
                        """
                        [[0, 0], [390, 0], [0, 190], [390, 190], [-20, -20]].every(([x, y]) => { const area = { width: 400, height: 200 };
                          const [label] = lay([{ x, y, width: 10, height: 10 }], [{ width: 70, height: 20 }], area);
                          return label && inside(label, area) })
                        """),
                ])
            #expect(sight.values.crowd[0] == 24 && sight.values.crowd[1] >= 30)
            #expect(sight.values.badge && sight.values.corners)
        }
    }
}
