import Foundation
import ImprintStudio
import TestSupport
import Testing

/// Folders that the user drops from a file manager, and the training buttons below many examples.
@Suite("Dropped folders in the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioFolderDropTests {
    private static let counts =
        "[...document.querySelectorAll('#classes .count')].map(count => parseInt(count.textContent))"

    private struct Dropped: Decodable, Sendable {
        let taught: String
        let isBeside: Bool
        let isCovered: Bool
        let startBottom: Double
        let added: String
        let labels: [String]
        let one: String
        let artwork: String
    }

    @Test("Cards take the photos of a folder, the panel Photos its sub-folders, and the panel Logo its artwork")
    func folders() async throws {
        try await PhotoSamples.withStudio(PhotoSamples.configuration()) { studio, folder in
            let pets = folder.appending(path: "pets")
            try PhotoSamples.write(to: pets)
            try Data("a text".utf8).write(to: pets.appending(path: "note.txt"))
            let logos = folder.appending(path: "logos")
            try FileManager.default.createDirectory(at: logos, withIntermediateDirectories: false)
            try Data("no drawing".utf8).write(to: logos.appending(path: "leaf.svg"))
            try Data("a text".utf8).write(to: logos.appending(path: "note.txt"))
            let start = "document.getElementById('start').getBoundingClientRect()"
            let sight: Browser.Sight<Dropped> = try await StudioSamples.look(
                studio, Browser.View(width: 390, height: 700),
                [
                    .drop("#classes > li:nth-child(1)", [pets.appending(path: "Bright")]),
                    .wait("\(Page.text("said")).includes('12 of 12 photos')"), .note("taught", Page.text("said")),
                    .note("isBeside", "document.querySelector('#classes > li:nth-child(1) .message') !== null"),
                    .drop("#classes > li:nth-child(2)", [pets.appending(path: "Dark")]),
                    .wait("\(Self.counts)[1] === 12"), .wait("!document.getElementById('start').disabled"),
                    // The button to train stays visible below the examples.
                    .note("scroll", "(document.getElementById('classes').scrollIntoView(), 1)"),
                    .note("startBottom", "innerHeight - \(start).bottom"),
                    .note(
                        "isCovered",
                        """
                        (() => { const box = \(start);
                          return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).id !== 'start' })()
                        """),
                    .click("#tab-photos"), .drop("#photos .drop", [pets]),
                    .wait("\(Page.text("photos-state")).startsWith('Added')"),
                    .note("added", Page.text("photos-state")),
                    .wait("document.querySelectorAll('#photos-labels li').length === 2"),
                    .note(
                        "labels",
                        "[...document.querySelectorAll('#photos-labels bdi')].map(one => one.textContent)"),
                    // The folder of a label has been added, so its photos are not added again.
                    .drop("#photos .drop", [pets.appending(path: "Dark")]),
                    .wait("\(Page.text("photos-state")).includes('already added')"),
                    .note("one", Page.text("photos-state")),
                    // The drawing is damaged, because the result of a valid one depends on the installation.
                    .click("#tab-logo"), .drop("#logo .drop", [logos]),
                    .wait("\(Page.text("logo-state")).includes('leaf.svg')"),
                    .note("artwork", Page.text("logo-state")),
                ])
            let seen = sight.values
            #expect(seen.taught == "“Class 1”: added 12 of 12 photos." && seen.isBeside)
            #expect(seen.startBottom >= 0 && !seen.isCovered)
            #expect(seen.added.hasPrefix("Added 24 of 24 photos. Ignored 1 file"))
            #expect(seen.labels == ["Bright", "Dark"])
            #expect(seen.one == "Added 0 of 12 photos. 12 photos were already added.")
            #expect(seen.artwork.contains("leaf.svg") && !seen.artwork.contains("note.txt"))
            // The browser itself logs the rejected copies and the rejected drawing.
            #expect(sight.console.allSatisfy { $0.contains("409") || $0.contains("422") })
        }
    }
}
