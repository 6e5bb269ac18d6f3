import Foundation
import ImprintImages
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The editor of boxes: drags and the storage of edits.
@Suite("Box editor of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioBoxEditorTests {
    private static let labels = "[...document.querySelectorAll('#box-list input')].map(field => field.value)"
    private static let names =
        "[...document.querySelectorAll('#paper .box')].map(box => box.getAttribute('aria-label'))"

    /// Writes photos of 160 x 120 pixels.
    private func write(_ count: Int, to folder: URL) throws -> [URL] {
        try (1...count).map { index in
            let file = folder.appending(path: "\(index).png")
            try ImageFile.write(
                StudioSamples.image(.stripes, seed: UInt64(index), width: 160, height: 120), to: file)
            return file
        }
    }

    /// Opens the panel and adds the photos; the last one is in the editor.
    private static func open(_ photos: [URL]) -> [Browser.Step] {
        [.click("#tab-annotate")]
            + photos.enumerated().flatMap { index, photo in
                [
                    .choose("#box-files", photo),
                    .wait("\(Page.text("editor-title")) === 'Photo \(index + 1) of \(index + 1)'"),
                ]
            } + [.wait("document.getElementById('paper-image').naturalWidth === 160")]
    }

    /// Stores a box of a photo as another page does, and notifies the pages.
    private static func store(_ label: String, in name: String, revision: Int) -> String {
        """
        fetch('boxes?name=\(name)', { method: 'PUT', body: JSON.stringify({ revision: \(revision), isBackground: false,
          objects: [{ label: '\(label)', box: { x: 0.1, y: 0.1, width: 0.2, height: 0.2 } }] }) })
          .then(() => new BroadcastChannel('imprint-boxes').postMessage('changed')).then(() => 1)
        """
    }

    /// Defines a function that sends a pointer event to an element, at a position in fractions of the photo.
    private static let point = """
        (() => { const paper = document.getElementById('paper'); paper.setPointerCapture = () => {};
          window.point = (kind, x, y, target = paper) => {
            const { left, top, width, height } = paper.getBoundingClientRect();
            target.dispatchEvent(new PointerEvent(kind, { pointerId: 9, button: 0, bubbles: true, cancelable: true,
              clientX: left + x * width, clientY: top + y * height })) };
          return 1 })()
        """

    private struct Dragged: Decodable, Sendable {
        let end: Double
        let frames: Int
        let drawn: [String]
        let resized: [String]
    }

    @Test("The frame of a drag stays in the photo, ends with a change of the boxes, and follows the pointer exactly")
    func drag() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let sight: Browser.Sight<Dragged> = try await StudioSamples.look(
                studio, Browser.View(),
                Self.open(try write(1, to: folder)) + [
                    .note("point", Self.point),
                    .note(
                        "end",
                        """
                        (() => { point('pointerdown', 0.999, 0.2); point('pointermove', 1.4, 0.6);
                          const { left, width } = document.querySelector('.drawn').style;
                          return parseFloat(left) + parseFloat(width) })()
                        """),
                    // Another page changes the boxes during the drag.
                    .note("other", Self.store("Crest", in: "00001.png", revision: 0)),
                    .wait("\(Self.labels).length === 1"),
                    .note("frames", "document.querySelectorAll('.drawn').length"),
                    // The end of the old drag changes nothing, and the next drag is not ignored.
                    .note("late", "(point('pointerup', 1.4, 0.6), 1)"),
                    .drag("#paper", from: [0.5, 0.5], to: [0.9, 0.9]), .wait("\(Self.labels).length === 2"),
                    .note("drawn", Self.names),
                    // The pointer takes a corner 1.2 % outside of it, and leaves the photo.
                    .note(
                        "grab",
                        """
                        (() => { const corner = document.querySelector('.box.selected .se');
                          point('pointerdown', 0.912, 0.912, corner); point('pointermove', 1.2, 1.2); point('pointerup', 1.2, 1.2);
                          return 1 })()
                        """),
                    .note("resized", Self.names),
                ])
            let seen = sight.values
            #expect(seen.end <= 100.001 && seen.frames == 0)
            #expect(seen.drawn.last == "Box 2, no label: lower right, at 50 %, 50 %, 40 % wide, 40 % high")
            #expect(seen.resized.last == "Box 2, no label: lower right, at 50 %, 50 %, 50 % wide, 50 % high")
            #expect(sight.console == [])
        }
    }

    /// Defines a function that presses an arrow key on the selected box some times at once.
    private static let press = """
        (() => { window.press = count => { for (let index = 0; index < count; index++) {
            document.querySelector('.box.selected').dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })) } };
          return 1 })()
        """

    /// Adds a box with a label to the open photo, and waits until it is stored.
    private static func addBox(_ label: String) -> [Browser.Step] {
        [
            .click("#box-add"), .wait("document.activeElement.placeholder === 'Label'"), .type(label), .key("Enter"),
            .wait("\(Page.text("editor-state")).startsWith('Saved')"),
        ]
    }

    /// The stored position of the box in the second photo.
    private static let storedX =
        "fetch('boxes').then(one => one.json()).then(one => one.photos[1].objects[0].box.x)"

    private struct Stored: Decodable, Sendable {
        let requests: Int
        let answer: [String]
        let onNavigation: Double
        let onReload: [String]
        let retried: String
        let said: String
        let saidThen: String
    }

    @Test("Edits are stored after a pause, on navigation and when the page is closed, and again after a failure")
    func storage() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let isSaved = "\(Page.text("editor-state")) === 'Saved: 1 box.'"
            let sight: Browser.Sight<Stored> = try await StudioSamples.look(
                studio, Browser.View(),
                Self.open(try write(2, to: folder)) + Self.addBox("Leaf") + [
                    .note("press", Self.press),
                    .note(
                        "spy",
                        """
                        (() => { const ask = window.fetch; window.requests = 0; window.fetch = async (path, options) => {
                          if (options?.method !== 'PUT') return ask(path, options);
                          window.requests += 1;
                          if (window.isCut) throw new TypeError('cut');
                          const answer = await ask(path, options);
                          window.answer = Object.keys(await answer.clone().json()).sort();
                          return answer };
                          return 1 })()
                        """),
                    .note("keys", "(press(20), 1)"), .wait(isSaved), .note("requests", "window.requests"),
                    .note("answer", "window.answer"),
                    // Another photo is opened before the end of the pause.
                    .note("more", "(press(1), document.querySelector('#box-photos button').click(), 1)"),
                    .wait("\(Page.text("editor-title")) === 'Photo 1 of 2'"),
                    .note("onNavigation", Self.storedX),
                    // The request for an edit fails, and the page repeats it.
                    .click("#box-photos li:last-child button"),
                    .wait("\(Page.text("editor-title")) === 'Photo 2 of 2'"), .click("#box-list input"), .key("Enter"),
                    .note("cut", "(window.isCut = true, press(1), 1)"),
                    .wait("\(Page.text("editor-state")) === 'Not saved.'"), .note("said", Page.text("said")),
                    .note("repaired", "(window.isCut = false, 1)"), .wait(isSaved),
                    .note("retried", Page.text("editor-state")), .note("saidThen", Page.text("said")),
                    // The page is loaded again before the end of the pause.
                    .note("last", "(press(1), 1)"), .reload(), .wait("document.body.dataset.ready === 'true'"),
                    // The edit may arrive after the first request of the new page, because their connections differ.
                    .wait("\(Self.storedX).then(x => Math.abs(x - 0.58) < 1e-4)"),
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .click("#tab-annotate"),
                    .click("#box-photos li:last-child button"),
                    .wait("\(Self.labels).length === 1"), .note("onReload", Self.names),
                ])
            let seen = sight.values
            #expect(seen.requests == 1 && seen.answer == ["photo", "shortage", "version"])
            #expect(abs(seen.onNavigation - 0.56) < 1e-4)
            #expect(seen.said.hasPrefix("The studio has ended and does not respond.") && seen.saidThen == "")
            #expect(seen.onReload == ["Box 1, Leaf: right, at 58 %, 35 %, 30 % wide, 30 % high"])
            #expect(sight.console == [])
        }
    }

    private struct Drafts: Decodable, Sendable {
        let said: String
        let summaries: [String]
        let back: [String]
        let afterReload: [String]
        let invalid: String
        let title: String
        let kept: [String]
        let stored: [String]
    }

    @Test("Boxes without a label and boxes that cannot be stored are kept")
    func drafts() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let summaries =
                "[...document.querySelectorAll('#box-photos button')].map(button => button.getAttribute('aria-label'))"
            func show(_ index: Int) -> [Browser.Step] {
                [
                    .click("#box-photos li:nth-child(\(index)) button"),
                    .wait("\(Page.text("editor-title")) === 'Photo \(index) of 2'"),
                ]
            }
            let sight: Browser.Sight<Drafts> = try await StudioSamples.look(
                studio, Browser.View(),
                Self.open(try write(2, to: folder)) + [
                    .drag("#paper", from: [0.1, 0.1], to: [0.4, 0.5]),
                    .wait("document.activeElement.placeholder === 'Label'"),
                ] + show(1) + [
                    .note("said", Page.text("said")), .note("summaries", summaries),
                ] + show(2) + [
                    .note("back", Self.names),
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .click("#tab-annotate"),
                    .click("#box-photos li:last-child button"), .wait("\(Self.labels).length === 1"),
                    .note("afterReload", Self.names),
                    // The studio rejects this label. The photo stays, with the edit.
                    .click("#box-list input"), .type("none"), .key("Enter"),
                    .wait("\(Page.text("editor-state")) === 'Not saved.'"),
                    .click("#box-photos li:first-child button"),
                    .wait("\(Page.text("said")).includes('none')"), .note("invalid", Page.text("said")),
                    .note("title", Page.text("editor-title")), .note("kept", Self.labels),
                    .note("select", "document.querySelector('#box-list input').select()"),
                    .click("#box-list input"), .note("all", "document.activeElement.select()"), .type("Leaf"),
                    .key("Enter"), .wait("\(Page.text("editor-state")) === 'Saved: 1 box.'"),
                    .note("stored", summaries),
                ])
            let seen = sight.values
            #expect(seen.said.hasPrefix("The photo that you left has 1 box without a label."))
            #expect(seen.summaries == ["Photo 1: no boxes yet", "Photo 2: 1 box without a label"])
            #expect(seen.back == ["Box 1, no label: upper left, at 10 %, 10 %, 30 % wide, 40 % high"])
            #expect(seen.afterReload == seen.back)
            #expect(seen.invalid.contains("is for photos that show no object"))
            #expect(seen.title == "Photo 2 of 2" && seen.kept == ["none"])
            #expect(seen.stored == ["Photo 1: no boxes yet", "Photo 2: 1 box"])
            // The browser itself logs the rejected requests.
            #expect(sight.console.allSatisfy { $0.contains("400") })
        }
    }

    private struct Undone: Decodable, Sendable {
        let steps: [[String]]
        let isDisabled: [Bool]
        let isFocusKept: Bool
        let text: String
        let stored: [String]
        let mine: [String]
        let overflow: Int
    }

    @Test("Edits are undone and repeated by keys and buttons", arguments: StudioTests.widths)
    func undo(width: Int) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let note = "(window.steps ??= []).push(\(Self.names))"
            let disabled = "['box-undo', 'box-redo'].map(id => document.getElementById(id).disabled)"
            let undo = Browser.Step.key("z", control: true)
            let sight: Browser.Sight<Undone> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                Self.open(try write(1, to: folder)) + [
                    // Draw, label, move by keys, resize and delete.
                    .drag("#paper", from: [0.1, 0.1], to: [0.4, 0.5]),
                    .wait("document.activeElement.placeholder === 'Label'"), .type("Leaf"), .key("Enter"),
                    .wait("document.activeElement.className.includes('box')"),
                    .note("press", Self.press), .note("keys", "(press(10), 1)"),
                    .drag(".box.selected .se", from: [0.5, 0.5], to: [4, 0.5]), .note("length", note),
                    .key("Delete"), .wait("\(Self.labels).length === 0"), .note("isDisabled", disabled),
                    undo, .note("length", note), undo, .note("length", note),
                    // All arrow keys are one step.
                    undo, .note("length", note), undo, .note("length", note),
                    // Without the box, the focus is still in the editor.
                    undo, .note("length", note),
                    .note("isFocusKept", "document.getElementById('editor').contains(document.activeElement)"),
                    .key("Z", shift: true, control: true), .key("y", control: true), .click("#box-redo"),
                    .note("length", note), .note("steps", "window.steps"),
                    // The label field undoes its own text.
                    .click("#box-list input"), .type("s"), undo, .note("text", "\(Self.names)[0]"),
                    .note("reset", "(document.activeElement.value = 'Leaf', 1)"), .key("Enter"),
                    .wait("\(Page.text("editor-state")) === 'Saved: 1 box.'"),
                    // Another page replaces the box, and undo brings the own one back.
                    .note(
                        "other",
                        "fetch('boxes').then(one => one.json()).then(one => window.revision = one.photos[0].revision)"),
                    .note(
                        "store",
                        """
                        fetch('boxes?name=00001.png', { method: 'PUT', body: JSON.stringify({ revision: window.revision, isBackground: false,
                          objects: [{ label: 'Crest', box: { x: 0.1, y: 0.1, width: 0.2, height: 0.2 } }] }) })
                          .then(() => new BroadcastChannel('imprint-boxes').postMessage('changed')).then(() => 1)
                        """),
                    .wait("\(Self.labels)[0] === 'Crest'"), .click("#box-undo"), .note("mine", Self.names),
                    .wait("\(Page.text("editor-state")) === 'Saved: 1 box.'"),
                    .note(
                        "stored",
                        "fetch('boxes').then(one => one.json()).then(one => one.photos[0].objects.map(one => one.label))"
                    ),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                ])
            let seen = sight.values
            let moved = "Box 1, Leaf: upper centre, at 20 %, 10 %, 30 % wide, 40 % high"
            #expect(seen.steps.count == 7)
            #expect(seen.steps.first?.first?.hasPrefix("Box 1, Leaf: ") == true && seen.steps[0] != [moved])
            #expect(seen.isDisabled == [false, true])
            #expect(seen.steps[1] == seen.steps[0] && seen.steps[2] == [moved])
            #expect(seen.steps[3] == ["Box 1, Leaf: upper left, at 10 %, 10 %, 30 % wide, 40 % high"])
            #expect(seen.steps[4] == ["Box 1, no label: upper left, at 10 %, 10 %, 30 % wide, 40 % high"])
            #expect(seen.steps[5] == [] && seen.isFocusKept)
            #expect(seen.steps[6] == [moved] && seen.text == moved && seen.mine == [moved])
            #expect(seen.stored == ["Leaf"] && seen.overflow <= 0)
            #expect(sight.console == [])
        }
    }
}
