import Foundation
import ImprintStudio
import TestSupport
import Testing

/// The cards of the classes: thumbnails, pickers, undo, names and live confidence bars.
@Suite("Class cards of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioClassCardTests {
    private static let counts =
        "[...document.querySelectorAll('#classes .count')].map(count => parseInt(count.textContent))"
    private static let names = "[...document.querySelectorAll('#classes bdi')].map(name => name.textContent)"
    private static let stage = "document.getElementById('training-status').dataset.stage"
    private static let focus =
        "(window.focused ??= []).push(document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName) && window.focused"
    private static let undoText = "(window.undone ??= []).push(\(Page.text("undo-text"))) && window.undone"

    private static func card(_ number: Int, _ part: String) -> String { "#classes > li:nth-child(\(number)) \(part)" }

    private func photos(_ kind: StudioSamples.Kind, _ count: Int, _ folder: URL) throws -> [URL] {
        try (1...count).map { try StudioSamples.write(kind, seed: UInt64($0), to: folder) }
    }

    private struct Trained: Decodable, Sendable {
        let counts: [Int]
        let start: Bool
        let model: String
        let status: String
        let best: String
    }

    @Test("Two classes of 12 photos become a model in six actions") func sixActions() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let classes = try [StudioSamples.Kind.bright, .dark].map { try photos($0, 12, folder) }
            // The first action opens the page. A choice of files is two actions: the button, and the photos in its dialog.
            let actions: [(count: Int, steps: [Browser.Step])] = [
                (1, []),
                (2, [.chooseAll(Self.card(1, ".photos"), classes[0]), .wait("\(Self.counts)[0] === 12")]),
                (
                    2,
                    [
                        .chooseAll(Self.card(2, ".photos"), classes[1]), .wait("\(Self.counts)[1] === 12"),
                        .note("counts", Self.counts), .note("start", "document.getElementById('start').disabled"),
                    ]
                ),
                (1, [.click("#start"), .wait("\(Self.stage) === 'learned'")]),
            ]
            let sight: Browser.Sight<Trained> = try await StudioSamples.look(
                studio, Browser.View(),
                actions.flatMap(\.steps) + [
                    .note("status", Page.text("training-status")),
                    .wait("\(Page.text("model")) === 'A new model'"), .note("model", Page.text("model")),
                    .choose("#file", classes[1][0]), .wait("\(Page.text("percent")) !== '–'"),
                    .note("best", Page.text("label")),
                ])
            let seen = sight.values
            #expect(actions.reduce(0) { $0 + $1.count } <= 6)
            #expect(seen.counts == [12, 12] && !seen.start)
            #expect(seen.status == "Learned from 24 examples." && seen.model == "A new model")
            #expect(seen.best == "Class 2" && sight.console == [])
        }
    }

    private struct Edited: Decodable, Sendable {
        let before: [String]
        let beforeCounts: [String]
        let isDeletable: [Bool]
        let folder: String
        let copies: String
        let sources: [String]
        let sizes: [Int]
        let focused: [String]
        let undone: [String]
        let dragged: [Int]
        let isOver: Bool
        let taken: String
        let after: [String]
        let stored: [String]
        let overflow: Int
    }

    @Test("Examples are added, deleted, moved and undone, by mouse and keyboard", arguments: StudioTests.widths)
    func edit(width: Int) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let photos = try photos(.bright, 5, folder)
            // A folder with photos, also in a sub-folder, and other files.
            let chosen = folder.appending(path: "chosen/more")
            try FileManager.default.createDirectory(at: chosen, withIntermediateDirectories: true)
            for seed in 1...2 { _ = try StudioSamples.write(.dark, seed: UInt64(seed), to: chosen) }
            _ = try StudioSamples.write(.dark, seed: 3, to: chosen.deletingLastPathComponent())
            try Data("note".utf8).write(to: chosen.appending(path: "note.txt"))
            try Data("note".utf8).write(to: chosen.appending(path: ".hidden.jpg"))
            let drag = """
                (() => { const data = new DataTransfer(), [from, to] = ['\(Self.card(1, ".thumbnail"))', '#classes > li:nth-child(2)']
                    .map(one => document.querySelector(one));
                  from.dispatchEvent(new DragEvent('dragstart', { dataTransfer: data, bubbles: true }));
                  for (const name of ['dragover', 'drop']) {
                    to.dispatchEvent(new DragEvent(name, { dataTransfer: data, bubbles: true, cancelable: true })) }
                  return 1 })()
                """
            let thumbnails = "[...document.querySelectorAll('\(Self.card(2, ".thumbnail img"))')]"
            let filling: [Browser.Step] = [
                .note("before", Self.names),
                .note(
                    "beforeCounts",
                    "[...document.querySelectorAll('#classes .count')].map(count => count.textContent)"),
                .note(
                    "isDeletable", "[...document.querySelectorAll('#classes .quiet')].map(one => one.checkVisibility())"
                ),
                .chooseAll(Self.card(2, ".photos"), Array(photos.prefix(4))),
                .wait("\(Page.text("said")).includes('4 of 4 photos')"),
                .choose(Self.card(1, ".folder"), chosen.deletingLastPathComponent()),
                .wait("\(Page.text("said")).includes('3 of 3 photos')"), .note("folder", Page.text("said")),
                .chooseAll(Self.card(2, ".photos"), photos), .wait("\(Page.text("said")).includes('1 of 5 photos')"),
                .note("copies", Page.text("said")),
                .wait("\(thumbnails).every(one => one.naturalWidth > 0)"),
                .note("sources", "\(thumbnails).map(one => one.getAttribute('src'))"),
                .note("sizes", "\(thumbnails).map(one => one.naturalWidth)"),
            ]
            // Class 1 has 3 examples, and Class 2 has 5.
            let editing: [Browser.Step] = [
                .click(Self.card(2, ".remove")), .wait("\(Self.counts)[1] === 4"), .note("focused", Self.focus),
                .key("ArrowRight"), .key("Delete"), .wait("\(Self.counts)[1] === 3"), .note("focused", Self.focus),
                // The actions of an example: the menu of classes, then the button.
                .key("Enter"), .wait("document.querySelector('\(Self.card(2, ".chosen"))').checkVisibility()"),
                .key("Tab"), .note("focused", Self.focus), .key("Tab"), .note("focused", Self.focus), .key("Enter"),
                .wait("\(Self.counts)[0] === 4"), .note("focused", Self.focus), .note("undone", Self.undoText),
                .note("drag", drag), .wait("\(Self.counts)[1] === 3"), .note("dragged", Self.counts),
                .wait("[...document.querySelectorAll('.thumbnail img')].every(one => one.complete)"),
                .note("isOver", "document.querySelector('.target, .dropping') !== null"),
                .click(Self.card(2, ".quiet")), .wait("\(Self.counts)[1] === 0"), .note("undone", Self.undoText),
                .click("#undo"), .wait("\(Self.counts)[1] === 3"), .note("focused", Self.focus),
                .key("z", control: true), .wait("\(Self.counts)[1] === 2"), .click("#undo"),
                .wait("\(Self.counts)[1] === 3"),
                .click("#undo"), .wait("\(Self.counts)[1] === 4"), .click("#undo"), .wait("\(Self.counts)[1] === 5"),
                .wait("document.getElementById('undo-area').hidden"),
            ]
            let naming: [Browser.Step] = [
                .click(Self.card(2, ".rename")), .type("Class 1"), .key("Enter"),
                .wait("\(Page.text("said")).includes('already')"), .note("taken", Page.text("said")),
                .click(Self.card(2, ".rename")), .type("Cup"), .key("Enter"), .wait("\(Self.names)[1] === 'Cup'"),
                .note("focused", Self.focus), .note("after", Self.names),
                .note(
                    "stored",
                    "fetch('examples').then(one => one.json()).then(one => one.classes.map(one => `${one.label} ${one.count}`))"
                ),
                .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
            ]
            let sight: Browser.Sight<Edited> = try await StudioSamples.look(
                studio, Browser.View(width: width), filling + editing + naming)
            let seen = sight.values
            #expect(seen.before == ["Class 1", "Class 2"] && seen.isDeletable == [false, false])
            #expect(seen.beforeCounts == ["0 of 12 examples", "0 of 12 examples"])
            #expect(seen.folder == "“Class 1”: added 3 of 3 photos.")
            #expect(
                seen.copies
                    == "“Class 2”: added 1 of 5 photos. 4 photos are already an example, and a copy teaches nothing new."
            )
            // Newest first.
            #expect(seen.sources == [8, 4, 3, 2, 1].map { "examples/\($0)" })
            #expect(seen.sizes == [96, 96, 96, 96, 96])
            #expect(
                seen.focused == [
                    "Example 4 of Class 2", "Example 2 of Class 2", "SELECT", "Move the example of Class 2",
                    "Example 1 of Class 2", "Hold to collect examples of Class 2", "Rename Cup",
                ])
            #expect(
                seen.undone == [
                    "Moved an example from “Class 2” to “Class 1”.", "Deleted the class “Class 2” and its 3 examples.",
                ])
            #expect(seen.dragged == [3, 3] && !seen.isOver && seen.overflow <= 0)
            #expect(seen.taken == "There is already a class \"Class 1\". Choose another name.")
            #expect(seen.after == ["Class 1", "Cup"] && seen.stored == ["Class 1 3", "Cup 5"])
            // The browser itself logs the rejected copies and the rejected name.
            #expect(sight.console.allSatisfy { $0.contains("409") })
        }
    }

    private struct Live: Decodable, Sendable {
        let labels: [Bool]
        let confidences: [String]
        let best: [String]
        let top: Double
        let bottom: Double
        let other: Double
    }

    @Test("The cards show the live confidences, and the image stays visible on narrow screens") func live() async throws
    {
        try await StudioSamples.withStudio { studio, folder in
            let view = Browser.View(width: 390, camera: try StudioSamples.camera([.bright], in: folder))
            let add = ["Bright", "Dark", "Cup"].enumerated().flatMap { index, label -> [Browser.Step] in
                [
                    .click("#class-name"), .type(label), .key("Enter"), .wait("\(Self.names).length === \(index + 1)"),
                ]
            }
            let image = "document.getElementById('picture').getBoundingClientRect()"
            let scroll = "(scrollTo(0, document.body.scrollHeight), 1)"
            let sight: Browser.Sight<Live> = try await StudioSamples.look(
                studio, view,
                [.wait("\(Page.text("label")) === 'Bright'"), .click("#tab-teach")] + add + [
                    .note(
                        "labels",
                        "[...document.querySelectorAll('#classes .confidence')].map(one => one.checkVisibility())"),
                    .wait("document.querySelector('.confidence .number').textContent.endsWith('%')"),
                    .note(
                        "confidences",
                        "[...document.querySelectorAll('.confidence .number, #percent')].map(one => one.textContent)"),
                    .note(
                        "best",
                        "[...document.querySelectorAll('.best')].map(one => one.closest('li').querySelector('bdi').textContent)"
                    ),
                    .note("scroll", scroll), .wait("scrollY > 300"), .note("top", "\(image).top"),
                    .note("bottom", "\(image).bottom"),
                    .click("#tab-look"), .note("start", "(scrollTo(0, 0), window.start = \(image).top, 1)"),
                    .note("scroll", scroll), .note("other", "window.start - \(image).top - scrollY"),
                ])
            let seen = sight.values
            #expect(seen.labels == [true, true, false] && seen.best == ["Bright"])
            // The gauge, then the cards.
            #expect(seen.confidences[0].hasSuffix(" %") && seen.confidences[1] == seen.confidences[0])
            #expect(seen.confidences[2].hasSuffix(" %") && seen.confidences[3] == "–")
            // At most a third of the screen.
            #expect(seen.top >= 0 && seen.bottom > 100 && seen.bottom <= 270)
            // In other panels, the image scrolls with the page.
            #expect(abs(seen.other) < 1)
            #expect(sight.console == [])
        }
    }
}
