import Foundation
import ImprintImages
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The panel Photos: from a folder to a trained model, its report and its exports.
@Suite("Any photos in the studio page", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioPhotosPageTests {
    private static let stage = "document.getElementById('photos-status').dataset.stage"
    private static let focus = "document.activeElement.id"
    private static let kinds = "[...document.querySelectorAll('#audit-groups h4')].map(one => one.textContent)"
    private static let isAudited = "\(Page.text("audit-state")).includes('finding')"

    /// Writes photos with a copy, a photo of another label, an unreadable file, and files that are not photos of a label.
    private static func write(to folder: URL) throws {
        try PhotoSamples.write(to: folder)
        try PhotoSamples.jpeg("Bright", 0).write(to: folder.appending(path: "Bright/copy.jpg"))
        try Data(try ImageFile.encodePNG(PhotoSamples.image("Bright", 1))).write(
            to: folder.appending(path: "Dark/wrong.png"))
        try Data("no image".utf8).write(to: folder.appending(path: "Dark/broken.jpg"))
        try Data("a text".utf8).write(to: folder.appending(path: "note.txt"))
        try PhotoSamples.jpeg("Dark", 40).write(to: folder.appending(path: "loose.jpg"))
    }

    private struct Flow: Decodable, Sendable {
        let added: String
        let problems: String
        let labels: [String]
        let kinds: [String]
        let choices: [String]
        let overflow: Int
        let faint: [String]
        let unnamed: [String]
        let small: [String]
        let changed: String
        let fixed: [String]
        let afterDelete: String
        let focusAfterDelete: String
        let focusAfterUndo: String
        let focusOfRun: String
        let status: String
        let charts: [String]
        let report: String
        let onnx: String
        let coreML: String
        let file: String
        let focusAfterRevert: String
        let end: String
        let lastFocus: String
    }

    @Test("A folder is audited, fixed, trained on and exported", arguments: StudioTests.widths)
    func flow(width: Int) async throws {
        try await PhotoSamples.withStudio(PhotoSamples.configuration()) { studio, folder in
            let photos = folder.appending(path: "pets")
            try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: false)
            try Self.write(to: photos)
            let choice = "document.querySelector('#audit-groups select[aria-label=\"Label of wrong.png\"]')"
            let sight: Browser.Sight<Flow> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [
                    .click("#tab-photos"), .choose("#photos-folder", photos),
                    .wait("\(Page.text("photos-state")).startsWith('Added')"),
                    .note("added", Page.text("photos-state")),
                    .note("problems", Page.text("photos-problems")), .wait(Self.isAudited),
                    .note("labels", "[...document.querySelectorAll('#photos-labels li')].map(one => one.innerText)"),
                    .note("kinds", Self.kinds), .note("choices", "[...\(choice).options].map(one => one.value)"),
                    .note(
                        "open", "document.querySelectorAll('#audit-groups details').forEach(one => { one.open = true })"
                    ),
                    .wait(
                        """
                        [...document.querySelectorAll('#audit-groups img')].slice(0, 2)
                          .every(one => one.scrollIntoView() || (one.complete && one.naturalWidth > 50))
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                    .note("faint", Browser.faint),
                    .note(
                        "unnamed",
                        """
                        [...document.querySelectorAll('#photos input, #photos select')]
                          .filter(one => !one.labels?.length && !one.getAttribute('aria-label')).map(one => one.outerHTML)
                        """),
                    .note(
                        "small",
                        """
                        [...document.querySelectorAll('#photos button, #photos select')].filter(one => one.checkVisibility())
                          .filter(one => { const box = one.getBoundingClientRect(); return box.height < 24 || box.width < 24 })
                          .map(one => one.outerHTML)
                        """),
                    .note(
                        "chosen",
                        """
                        (() => { const choice = \(choice); choice.value = 'Bright';
                          choice.dispatchEvent(new Event('change')); return 1 })()
                        """), .wait(Page.isShown("photos-undo")),
                    .note("changed", Page.text("photos-undo-text")), .note("fixed", Self.kinds),
                    .note(
                        "keep",
                        """
                        [...document.querySelectorAll('#audit-groups .findings > li > button')]
                          .find(one => one.ariaLabel.includes('IMG_0.jpg')).focus()
                        """),
                    .key("Enter"), .wait("\(Page.text("photos-undo-text")).startsWith('Deleted')"),
                    .note("afterDelete", Page.text("photos-undo-text")), .note("focusAfterDelete", Self.focus),
                    .key("Enter"), .wait("\(Page.text("photos-undo-text")).startsWith('Changed')"),
                    .note("focusAfterUndo", Self.focus),
                    // The run may end before the next step.
                    .note(
                        "watch",
                        """
                        (document.getElementById('photos-stop').addEventListener('focus', () => {
                          window.focusOfRun = \(Self.focus) }), 1)
                        """),
                    .click("#photos-start"), .wait("\(Self.stage) === 'learned'"),
                    .wait(Page.isShown("photos-results")),
                    .note("focusOfRun", "window.focusOfRun"),
                    .note("status", Page.text("photos-status")),
                    .note(
                        "charts",
                        "[...document.querySelectorAll('#photos-curves figure')].map(one => one.getAttribute('aria-label'))"
                    ),
                    .note(
                        "report",
                        "fetch(document.getElementById('photos-report').href).then(one => one.text()).then(one => one.slice(0, 15))"
                    ),
                    .click("#photos-onnx"), .wait("\(Page.text("photos-export-state")).endsWith('model.onnx.')"),
                    .note("onnx", Page.text("photos-export-state")),
                    .click("#photos-coreml"), .wait("\(Page.text("photos-export-state")).endsWith('model.mlmodel.')"),
                    .note("coreML", Page.text("photos-export-state")),
                    .note("file", "document.getElementById('photos-file').download"),
                    .click("#photos-revert"), .wait("!\(Page.isShown("photos-results"))"),
                    .wait("\(Self.focus) === 'photos-start'"), .note("focusAfterRevert", Self.focus),
                    .click("#photos-clear"), .wait("\(Page.text("photos-state")) === 'Deleted all photos.'"),
                    .note("end", Page.text("photos-state")), .note("lastFocus", Self.focus),
                ])
            let seen = sight.values
            #expect(
                seen.added.hasPrefix("Added 26 of 27 photos. 1 photo is not in a sub-folder")
                    && seen.added.contains("Ignored 1 file that is not a photo"))
            #expect(seen.problems.hasPrefix("Dark/broken.jpg: "))
            #expect(seen.labels.count == 2 && seen.labels.allSatisfy { $0.contains("13 photos") })
            #expect(
                seen.kinds.contains("Near-duplicates with different labels") && seen.kinds.contains("Exact duplicates"))
            #expect(seen.choices == PhotoSamples.labels)
            #expect(seen.overflow <= 0 && seen.faint == [] && seen.unnamed == [] && seen.small == [])
            #expect(seen.changed == "Changed the label of “wrong.png” to “Bright”.")
            #expect(!seen.fixed.contains("Near-duplicates with different labels"))
            #expect(seen.afterDelete == "Deleted “copy.jpg”." && seen.focusAfterDelete == "photos-undo")
            #expect(seen.focusAfterUndo == "photos-undo" && seen.focusOfRun == "photos-stop")
            #expect(seen.status.hasPrefix("Trained on ") && seen.status.contains(" validation photos: "))
            #expect(seen.charts == ["Loss on the validation set", "Accuracy on the validation set"])
            #expect(seen.report == "<!doctype html>" && seen.file == "model.imprint")
            #expect(seen.onnx == "Exported the model to model.onnx.")
            #expect(seen.coreML == "Exported the model to model.mlmodel.")
            #expect(seen.focusAfterRevert == "photos-start")
            #expect(seen.end == "Deleted all photos." && seen.lastFocus == "photos-folder")
            // The browser may request the thumbnail of a photo that has just been deleted.
            #expect(sight.console.allSatisfy { $0.contains("422") || $0.contains("404") })
            #expect(sight.requests.allSatisfy { $0.hasPrefix("http://127.0.0.1") || $0.hasPrefix("blob:") })
        }
    }

    private struct Kept: Decodable, Sendable {
        let button: String
        let deleted: String
        let kinds: [String]
        let focus: String
        let restored: String
    }

    @Test("One button deletes all duplicates of a kind, and one undo restores them") func duplicates() async throws {
        try await PhotoSamples.withStudio(PhotoSamples.configuration()) { studio, folder in
            let photos = folder.appending(path: "pets")
            try PhotoSamples.write(to: photos)
            for label in PhotoSamples.labels {
                try PhotoSamples.jpeg(label, 0).write(to: photos.appending(path: "\(label)/copy.jpg"))
            }
            let sight: Browser.Sight<Kept> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-photos"), .choose("#photos-folder", photos), .wait(Self.isAudited),
                    .note(
                        "open", "document.querySelectorAll('#audit-groups details').forEach(one => { one.open = true })"
                    ),
                    .note("button", "document.querySelector('.keep-all:not([hidden])').textContent"),
                    .click(".keep-all:not([hidden])"), .wait(Page.isShown("photos-undo")),
                    .note("deleted", Page.text("photos-undo-text")), .note("kinds", Self.kinds),
                    .note("focus", Self.focus), .key("Enter"), .wait("!\(Page.isShown("photos-undo"))"),
                    .note("restored", Page.text("audit-state")),
                ])
            let seen = sight.values
            #expect(seen.button == "Keep only the first photo of 2 findings")
            #expect(seen.deleted == "Deleted 2 photos." && !seen.kinds.contains("Exact duplicates"))
            #expect(seen.focus == "photos-undo" && seen.restored.hasPrefix("2 findings"))
            // The browser may request the thumbnail of a photo that has just been deleted.
            #expect(sight.console.allSatisfy { $0.contains("404") })
        }
    }

    private struct Reloaded: Decodable, Sendable {
        let dropped: String
        let tab: String
        let labels: Int
        let canClear: Bool
        let status: String
        let stage: String
    }

    @Test("A run continues while the page reloads, and an early end keeps the best model") func reload() async throws {
        // The run has too many epochs to end by itself.
        try await PhotoSamples.withStudio(PhotoSamples.configuration(epochs: 100_000)) { studio, folder in
            let photos = folder.appending(path: "pets")
            try PhotoSamples.write(to: photos)
            let sight: Browser.Sight<Reloaded> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#tab-photos"),
                    .note(
                        "drop",
                        """
                        (() => { const data = new DataTransfer();
                          data.items.add(new File(["x"], "1.jpg", { type: "image/jpeg" }));
                          document.getElementById('photos').dispatchEvent(
                            new DragEvent("drop", { dataTransfer: data, cancelable: true, bubbles: true })); return 1 })()
                        """),
                    .wait("\(Page.text("said")).startsWith('Drop a folder')"), .note("dropped", Page.text("said")),
                    .choose("#photos-folder", photos),
                    .wait("\(Page.text("photos-state")).startsWith('Added')"), .wait(Page.isShown("photos-start")),
                    .click("#photos-start"), .wait(Page.isShown("photos-keep")),
                    .reload(), .wait("document.body.dataset.ready === 'true'"), .wait(Page.isShown("photos-keep")),
                    .note("tab", "document.querySelector('[role=tab][aria-selected=true]').id"),
                    .wait("document.querySelectorAll('#photos-labels li').length === 2"),
                    .note("labels", "document.querySelectorAll('#photos-labels li').length"),
                    .note("canClear", "!document.getElementById('photos-clear').disabled"),
                    .click("#photos-keep"), .wait(Page.isShown("photos-results")),
                    .note("status", Page.text("photos-status")), .note("stage", Self.stage),
                ])
            let seen = sight.values
            #expect(
                seen.dropped == "Drop a folder here, because the name of a folder is the label of its photos.")
            #expect(seen.tab == "tab-photos" && seen.labels == 2 && !seen.canClear && seen.stage == "learned")
            #expect(seen.status.hasPrefix("Stopped early, and kept the best model so far. Trained on "))
            #expect(sight.console == [])
        }
    }
}
