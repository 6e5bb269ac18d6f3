import Foundation
import Imprint
import ImprintImages
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// Drawing and editing boxes in the page.
@Suite("Drawing boxes in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioBoxPageTests {
    private static let isSaved = "\(Page.text("editor-state")).startsWith('Saved')"
    private static let focused = "document.activeElement.getAttribute('aria-label')"
    private static let labels = "[...document.querySelectorAll('#box-list input')].map(field => field.value)"

    /// Writes a photo of 160 x 120 pixels.
    private func write(_ name: String, to folder: URL) throws -> URL {
        let file = folder.appending(path: "\(name).png")
        try ImageFile.write(StudioSamples.image(.stripes, seed: 1, width: 160, height: 120), to: file)
        return file
    }

    private func annotations(_ folder: URL) throws -> BoxAnnotations {
        try BoxAnnotations(contentsOf: folder.appending(path: "home/studio/boxes.json"))
    }

    private struct Drawn: Decodable, Sendable {
        let unnamed: String
        let moved: String
        let dragged: String
        let touched: String
        let resized: String
        let inner: String
        let added: String
        let left: [String]
        let thumbnail: String
        let reloaded: [String]
        let overflow: Int
    }

    @Test("Boxes are drawn, moved, resized and deleted with mouse, touch and keyboard", arguments: StudioTests.widths)
    func draw(width: Int) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let photo = try write("photo", to: folder)
            let sight: Browser.Sight<Drawn> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .click("#tab-annotate"), .choose("#box-files", photo),
                    .wait("document.getElementById('paper-image').naturalWidth === 160"),
                    // A drawn box asks for its label; the next boxes get the same one.
                    .drag("#paper", from: [0.1, 0.1], to: [0.4, 0.5]),
                    .wait("document.activeElement.placeholder === 'Label'"),
                    .note("unnamed", Page.text("editor-state")),
                    .type("Leaf"), .key("Enter"), .wait("document.activeElement.className.includes('box')"),
                    .key("ArrowRight"), .key("ArrowDown", shift: true), .note("moved", Self.focused),
                    .drag("#paper", from: [0.3, 0.3], to: [0.5, 0.4]), .note("dragged", Self.focused),
                    .drag("#paper", from: [0.9, 0.9], to: [0.6, 0.7], isTouch: true), .note("touched", Self.focused),
                    .drag(".box.selected .se", from: [0.5, 0.5], to: [-1, -1]), .note("resized", Self.focused),
                    // In a box that is not selected, a drag draws another one.
                    .drag(".box:not(.selected)", from: [0.4, 0.4], to: [0.8, 0.8]), .note("inner", Self.focused),
                    .key("Delete"), .click("#box-add"), .wait("document.querySelectorAll('#box-list li').length === 3"),
                    .note("added", Self.focused), .click("#box-list li:last-child button"),
                    .wait("document.querySelectorAll('#box-list li').length === 2"),
                    .wait("\(Page.text("editor-state")) === 'Saved: 2 boxes.'"), .note("left", Self.labels),
                    .note("thumbnail", "document.querySelector('#box-photos button').getAttribute('aria-label')"),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .click("#tab-annotate"),
                    .click("#box-photos button"), .wait("document.querySelectorAll('#box-list li').length === 2"),
                    .note(
                        "reloaded",
                        "[...document.querySelectorAll('#paper .box')].map(box => box.getAttribute('aria-label'))"),
                ])
            let seen = sight.values
            #expect(seen.unnamed == "1 box without a label: type a label to save.")
            #expect(seen.moved == "Box 1, Leaf: upper left, at 11 %, 10 %, 30 % wide, 41 % high")
            #expect(seen.dragged == "Box 1, Leaf: centre, at 31 %, 20 %, 30 % wide, 41 % high")
            #expect(seen.touched == "Box 2, Leaf: lower right, at 60 %, 70 %, 30 % wide, 20 % high")
            #expect(
                seen.resized.hasPrefix("Box 2, Leaf: lower right, at 60 %, 70 %, 2") && seen.resized != seen.touched)
            #expect(seen.inner.hasPrefix("Box 3, Leaf: centre"))
            #expect(seen.added == "Box 3, Leaf: centre, at 35 %, 35 %, 30 % wide, 30 % high")
            #expect(seen.left == ["Leaf", "Leaf"] && seen.thumbnail == "Photo 1: 2 boxes" && seen.overflow <= 0)
            #expect(seen.reloaded == [seen.dragged, seen.resized])
            #expect(sight.console == [])
            let stored = try annotations(folder)
            #expect(stored.photos.count == 1 && stored.photos[0].width == 160 && stored.labels == ["Leaf"])
            let boxes = stored.photos[0].objects.map(\.box)
            #expect(abs(boxes[0].x - 0.31) < 0.01 && abs(boxes[0].height - 0.41) < 0.01 && abs(boxes[1].y - 0.7) < 0.01)
        }
    }

    private struct Detected: Decodable, Sendable {
        let boxes: [String]
        let again: String
        let state: String
    }

    @Test("Detections become boxes that can be corrected") func detections() async throws {
        try await StudioSamples.withDetector { studio, folder in
            let photo = try write("photo", to: folder)
            let expected = try StudioSamples.detector().detect(photo)
            let sight: Browser.Sight<Detected> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-annotate"), .choose("#box-files", photo), .click("#box-detect"),
                    .wait("\(Self.labels).length > 0"), .note("boxes", Self.labels), .wait(Self.isSaved),
                    .note("state", Page.text("said")),
                    .note("clear", "document.getElementById('said').textContent = ''"),
                    .click("#box-detect"), .wait("\(Page.text("said")) !== ''"), .note("again", Page.text("said")),
                    .note("select", "document.querySelector('#box-list input').select()"),
                    .click("#box-list input"), .note("all", "document.activeElement.select()"), .type("Corrected"),
                    .key("Enter"),
                    .wait("document.activeElement.getAttribute('aria-label').includes('Corrected')"), .key("ArrowLeft"),
                    .wait(Self.isSaved),
                    .wait(
                        "fetch('boxes').then(one => one.json()).then(one => one.photos[0].objects[0].label === 'Corrected')"
                    ),
                ])
            let seen = sight.values
            #expect(seen.boxes == expected.map(\.label) && seen.boxes.count > 1)
            #expect(
                seen.state == "Added \(expected.count) boxes from \(expected.count) detected objects. Correct them.")
            #expect(seen.again == "There are boxes for all detected objects already.")
            let stored = try annotations(folder)
            #expect(stored.labels.contains("Corrected") && stored.photos[0].objects.count == expected.count)
            #expect(sight.console == [])
        }
    }

    private struct Tabs: Decodable, Sendable {
        let state: String
        let inOther: [String]
        let conflict: String
        let back: [String]
        let gone: Bool
        let background: String
    }

    @Test("Pages show the boxes of other pages, and never overwrite them") func tabs() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let photo = try write("photo", to: folder)
            let ready = Browser.Step.wait("document.body.dataset.ready === 'true'")
            let stored = "document.querySelector('#box-photos button')?.getAttribute('aria-label')"
            let sight: Browser.Sight<Tabs> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-annotate"), .choose("#box-files", photo),
                    .wait("document.getElementById('paper-image').naturalWidth === 160"),
                    .drag("#paper", from: [0.1, 0.1], to: [0.4, 0.5]),
                    .wait("document.activeElement.placeholder === 'Label'"), .type("Leaf"), .key("Enter"),
                    .wait(Self.isSaved), .note("state", Page.text("boxes-state")),
                    .page(2), ready, .click("#tab-annotate"), .click("#box-photos button"),
                    .wait("\(Self.labels).length === 1"), .drag("#paper", from: [0.6, 0.6], to: [0.9, 0.9]),
                    .wait("document.activeElement.placeholder === 'Label'"), .type("Crest"), .key("Enter"),
                    .wait("\(Page.text("editor-state")) === 'Saved: 2 boxes.'"),
                    .page(1), .wait("\(Self.labels).length === 2"), .note("inOther", Self.labels),
                    // An edit based on older boxes is rejected, and the page shows the boxes of the studio.
                    .note(
                        "behind",
                        """
                        (() => { const ask = window.fetch; window.fetch = (path, options) => ask(path, options?.method === 'PUT'
                          ? { ...options, body: options.body.replace(/"revision":\\d+/, '"revision":0') } : options); return 1 })()
                        """),
                    .click("#box-add"), .wait("\(Page.text("said")).includes('another tab')"),
                    .note("conflict", Page.text("said")), .wait("\(Self.labels).length === 2"),
                    .note("back", Self.labels),
                    .page(2), .click("#box-delete"), .wait("\(stored) === undefined"),
                    .page(1), .wait("document.getElementById('editor').hidden"),
                    .note("gone", "document.querySelectorAll('#box-photos li').length === 0"),
                    .choose("#box-files", photo), .wait("!document.getElementById('editor').hidden"),
                    .click("#background"),
                    .wait("\(stored) === 'Photo 1: no objects'"), .note("background", Page.text("boxes-state")),
                ])
            let seen = sight.values
            #expect(seen.state == "1 box in 1 of 1 photos." && seen.inOther == ["Leaf", "Crest"])
            #expect(
                seen.conflict
                    == "The boxes of this photo were changed in another tab or by another program. They are shown again now. "
                    + "Undo brings back your edit.")
            #expect(seen.back == ["Leaf", "Crest"] && seen.gone)
            #expect(seen.background == "0 boxes in 0 of 1 photos; 1 without objects.")
            #expect(try annotations(folder).photos.map(\.objects.count) == [0])
            // The browser itself logs the rejected request.
            #expect(sight.console.allSatisfy { $0.contains("409") || $0.contains("404") })
        }
    }
}
