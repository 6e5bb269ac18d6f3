import Foundation
import ImprintStudio
import TestSupport
import Testing

/// The viewer of saved photos.
@Suite("Photo viewer of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason)) struct StudioViewerTests {
    private static let position = Page.text("viewer-position")
    private static let focused = "document.activeElement.id || document.activeElement.className"
    private static let isOpen = "document.getElementById('viewer').open"
    private static let count = "document.querySelectorAll('#pictures li').length"

    private struct Node: Decodable, Sendable {
        let role: String
        let name: String
    }

    private struct Moves: Decodable, Sendable {
        let opened: String
        let positions: [String]
        let columns: Int
        let compared: [Bool]
        let originals: [Int]
        let names: [Node]
        let local: Bool
        let overflow: Int
        let closed: [String]
        let faint: [String]
    }

    @Test(
        "The viewer moves between photos by key, button and swipe, and shows the original",
        arguments: StudioTests.widths)
    func moves(width: Int) async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = try StudioSamples.write(.bright, to: folder)
            let note = Browser.Step.note("length", "(window.positions ??= []).push(\(Self.position))")
            let sight: Browser.Sight<Moves> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .choose("#file", photo), .wait("\(Page.text("label")) === 'Bright'"), .click("#tab-history"),
                    .click("#shutter"), .wait("\(Self.count) === 1"), .click("#shutter"), .wait("\(Self.count) === 2"),
                    .click("#shutter"), .wait("\(Self.count) === 3"),
                    .note(
                        "columns",
                        "getComputedStyle(document.getElementById('pictures')).gridTemplateColumns.split(' ').length"),
                    .note("focus", "document.querySelector('.picture').focus()"), .key("ArrowRight"), .key("Enter"),
                    .wait(Self.isOpen), .note("opened", Self.focused), note,
                    .key("ArrowRight"), note, .key("Home"), note, .click("#viewer-next"), note,
                    .drag("#viewer-images", from: [0.8, 0.5], to: [0.2, 0.5], isTouch: true), note,
                    .drag("#viewer-images", from: [0.2, 0.5], to: [0.8, 0.5], isTouch: true), note,
                    .note("compared", "[document.getElementById('viewer-original').checkVisibility()]"),
                    .click("#viewer-compare"),
                    .wait("document.getElementById('viewer-original').naturalWidth > 0"),
                    .note(
                        "compared",
                        "['viewer-marked', 'viewer-original'].map(id => document.getElementById(id).checkVisibility())"
                    ),
                    // The saved original has the bytes of the file.
                    .note(
                        "originals",
                        """
                        import('./store.js').then(({ store }) => store.all()).then(all => all.map(one => one.original.size))
                        """),
                    .note(
                        "local",
                        """
                        (() => { const name = document.getElementById('viewer-save').download;
                          const [year, month, ...rest] = name.match(/\\d+/g).slice(0, 6).map(Number);
                          return Math.abs(Date.now() - new Date(year, month - 1, ...rest)) < 2 * 3600 * 1000 })()
                        """),
                    .accessibility("names"), .note("faint", Browser.faint),
                    .note(
                        "overflow",
                        "document.getElementById('viewer').scrollWidth - document.getElementById('viewer').clientWidth"
                    ),
                    .note("positions", "window.positions"), .key("Escape"), .wait("!\(Self.isOpen)"),
                    .wait("document.activeElement.className === 'picture'"),
                    .note(
                        "closed",
                        "[\(Self.focused), String([...document.querySelectorAll('.picture')].indexOf(document.activeElement))]"
                    ),
                ])
            let seen = sight.values
            #expect(seen.opened == "viewer-title" && seen.columns >= 3)
            #expect(seen.positions == ["2 of 3", "3 of 3", "1 of 3", "2 of 3", "3 of 3", "2 of 3"])
            #expect(seen.compared == [true, true])
            #expect(seen.originals == Array(repeating: try Data(contentsOf: photo).count, count: 3))
            #expect(seen.local && seen.overflow <= 0 && seen.faint == [])
            #expect(seen.closed == ["picture", "1"])
            let buttons = Set(
                seen.names.filter { ["button", "link", "textbox", "combobox"].contains($0.role.lowercased()) }.map(
                    \.name))
            #expect(
                buttons.isSuperset(of: ["Close", "Previous", "Next", "Category", "Class", "Use as example", "Save"]))
            #expect(sight.console == [])
        }
    }

    private struct Changes: Decodable, Sendable {
        let example: String
        let classes: [Int]
        let copy: [String]
        let deleted: String
        let restored: String
        let undone: Int
    }

    @Test("A saved photo becomes an example, and a deleted photo comes back") func changes() async throws {
        try await StudioSamples.withStudio { studio, folder in
            let photo = try StudioSamples.write(.bright, to: folder)
            let state = Page.text("viewer-state")
            let sight: Browser.Sight<Changes> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .choose("#file", photo), .wait("\(Page.text("label")) === 'Bright'"), .click("#tab-history"),
                    .click("#shutter"), .wait("\(Self.count) === 1"), .click("#shutter"), .wait("\(Self.count) === 2"),
                    .click(".picture"), .click("#viewer-use"), .wait("\(state) !== ''"), .note("example", state),
                    .note(
                        "classes",
                        "fetch('examples').then(one => one.json()).then(one => one.classes.map(part => part.count))"),
                    .click("#viewer-use"), .wait("document.getElementById('viewer-state').dataset.kind === 'error'"),
                    .note("copy", "[\(state), \(Self.isOpen) ? 'open' : 'closed']"),
                    .click("#viewer-delete"), .wait("\(Self.position) === '1 of 1'"), .note("deleted", state),
                    .click("#viewer-undo"), .wait("\(Self.position) === '1 of 2'"), .note("restored", state),
                    .key("Escape"), .wait("!\(Self.isOpen)"),
                    .click("#delete-all"), .wait("\(Self.count) === 0"),
                    .wait("document.activeElement.id === 'restore'"), .key("z", control: true),
                    .wait("\(Self.count) === 2"), .note("undone", Self.count),
                ])
            let seen = sight.values
            #expect(seen.example == "The photo is now an example of “Bright”." && seen.classes == [1])
            #expect(seen.copy[0].hasPrefix("The photo is already an example of") && seen.copy[1] == "open")
            #expect(seen.deleted == "The photo was deleted." && seen.restored == "Undone." && seen.undone == 2)
            // The browser itself logs the rejected copy.
            #expect(sight.console.allSatisfy { $0.contains("409") })
        }
    }
}
