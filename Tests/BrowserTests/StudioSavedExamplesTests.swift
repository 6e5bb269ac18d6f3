import Foundation
import ImprintStudio
import TestSupport
import Testing

/// Examples that are saved as a ZIP file and opened again, and ZIP files of other programs.
@Suite("Saved examples of the studio", .enabled(if: Browser.isAvailable, Browser.skipReason))
struct StudioSavedExamplesTests {
    private static let counts =
        "[...document.querySelectorAll('#classes .count')].map(count => parseInt(count.textContent))"
    private static let names = "[...document.querySelectorAll('#classes bdi')].map(name => name.textContent)"
    private static let stored =
        "fetch('examples').then(one => one.json()).then(one => one.classes.map(one => `${one.label} ${one.count}`))"

    /// Writes an archive as another program would, or one that the page must reject; `make_zip.py` lists the cases.
    private static func archive(_ name: String, _ photos: [URL], _ folder: URL) throws -> URL {
        let file = folder.appending(path: "\(name).zip")
        _ = try Python.output(of: "BrowserTests/Fixtures/make_zip.py", [name, file.path] + photos.map(\.path))
        return file
    }

    private func photos(_ kind: StudioSamples.Kind, _ count: Int, _ folder: URL) throws -> [URL] {
        try (1...count).map { try StudioSamples.write(kind, seed: UInt64($0), to: folder) }
    }

    private struct Saved: Decodable, Sendable {
        let isDisabled: Bool
        let room: String
        let said: String
        let zip: String
        let tree: [Node]
        let overflow: Int

        struct Node: Decodable, Sendable {
            let role: String
            let name: String
        }
    }

    private struct Opened: Decodable, Sendable {
        let said: String
        let focused: String
        let stored: [String]
        let again: String
        let overflow: Int
    }

    private struct Archive: Decodable {
        struct Entry: Decodable {
            let folder: String
            let label: String
        }
        let names: [String]
        let damaged: String?
        let list: [Entry]
        let jpegs: Int
    }

    /// Labels in an order that is not alphabetical; two of them are the same reserved name on Windows.
    private static let labels = ["Zoo: <b>", "con", "Con"]

    @Test("Saved examples come back with the names and the order of their classes", arguments: StudioTests.widths)
    func saveAndOpen(width: Int) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let files = [
                try photos(.bright, 3, folder), try photos(.dark, 2, folder), try photos(.stripes, 1, folder),
            ]
            let collect = zip(Self.labels, files).enumerated().flatMap { index, pair -> [Browser.Step] in
                [
                    .click("#class-name"), .type(pair.0), .key("Enter"),
                    .wait("\(Self.names)[\(index)] === '\(pair.0)'"),
                    .chooseAll("#classes > li:nth-child(\(index + 1)) .photos", pair.1),
                    .wait("\(Self.counts)[\(index)] === \(pair.1.count)"),
                ]
            }
            let saving: Browser.Sight<Saved> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                [.note("isDisabled", "document.getElementById('examples-save').disabled")] + collect + [
                    .note("room", Page.text("room")), .accessibility("tree"),
                    .note(
                        "spy",
                        "(() => { const make = URL.createObjectURL; URL.createObjectURL = blob => { window.made = blob; return make(blob) } })()"
                    ),
                    .note("focus", "(document.getElementById('examples-save').focus(), 1)"), .key("Enter"),
                    .wait("\(Page.text("said")).startsWith('Saved')"), .note("said", Page.text("said")),
                    .note(
                        "zip",
                        """
                        new Promise(done => { const reader = new FileReader(); reader.onload = () => done(reader.result.split(',')[1]);
                          reader.readAsDataURL(window.made) })
                        """),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                ])
            let saved = saving.values
            #expect(saved.isDisabled && saved.room.contains("deleted when the studio ends. Save them"))
            #expect(saved.said == "Saved 6 examples as imprint-examples.zip." && saved.overflow <= 0)
            #expect(saved.tree.filter { $0.name.hasPrefix("Save examples") }.map(\.role).contains("button"))
            #expect(saved.tree.contains { $0.name.hasPrefix("Open examples") && $0.role == "button" })
            #expect(saving.console == [])

            let file = folder.appending(path: "imprint-examples.zip")
            try #require(Data(base64Encoded: saved.zip)).write(to: file)
            let archive = try JSONDecoder().decode(
                Archive.self, from: Python.output(of: "BrowserTests/Fixtures/list_zip.py", [file.path]))
            #expect(archive.damaged == nil && archive.jpegs == 6 && archive.list.map(\.label) == Self.labels)
            #expect(
                archive.names == [
                    "imprint-examples.json", "Zoo_ _b_/1.jpg", "Zoo_ _b_/2.jpg", "Zoo_ _b_/3.jpg", "con_/1.jpg",
                    "con_/2.jpg", "Con_ 2/1.jpg",
                ])

            let delete = Self.labels.flatMap { label -> [Browser.Step] in
                [.wait("\(Self.names)[0] === '\(label)'"), .click("#classes > li:first-child .quiet")]
            }
            let opening: Browser.Sight<Opened> = try await StudioSamples.look(
                studio, Browser.View(width: width),
                delete + [
                    .wait("\(Self.names).join() === 'Class 1,Class 2'"),
                    .note("focus", "(document.getElementById('examples-file').focus(), 1)"),
                    .choose("#examples-file", file), .wait("\(Page.text("said")).includes('6 of 6')"),
                    .note("said", Page.text("said")), .note("focused", "document.activeElement.id"),
                    .wait("\(Self.counts).join() === '3,2,1'"), .note("stored", Self.stored),
                    .choose("#examples-file", file), .wait("\(Page.text("said")).includes('0 of 6')"),
                    .note("again", Page.text("said")),
                    .note("overflow", "document.scrollingElement.scrollWidth - innerWidth"),
                ])
            let opened = opening.values
            #expect(opened.stored == ["Zoo: <b> 3", "con 2", "Con 1"])
            #expect(opened.said == "“imprint-examples.zip”: added 6 of 6 photos.")
            #expect(
                opened.again
                    == "“imprint-examples.zip”: added 0 of 6 photos. 6 photos are already an example, and a copy teaches nothing new."
            )
            #expect(opened.focused == "examples-file" && opened.overflow <= 0)
            // The browser itself logs the rejected copies.
            #expect(opening.console.allSatisfy { $0.contains("409") })
        }
    }

    private struct Dropped: Decodable, Sendable {
        let said: String
        let stored: [String]
        let isOver: Bool
        let source: String
    }

    @Test("A dropped ZIP file of folders adds its photos to the classes of the folders") func folders() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let photos = try photos(.bright, 4, folder)
            let text = folder.appending(path: "text.jpg")
            try Data("not an image".utf8).write(to: text)
            let archive = try Self.archive("folders", photos + [text], folder)
            let sight: Browser.Sight<Dropped> = try await StudioSamples.look(
                studio, Browser.View(),
                [
                    .click("#class-name"), .type("pear"), .key("Enter"), .wait("\(Self.names)[0] === 'pear'"),
                    .choose("#classes > li:nth-child(1) .photos", photos[1]), .wait("\(Self.counts)[0] === 1"),
                    .drop("#classes > li:nth-child(1)", [archive]),
                    .wait("\(Page.text("said")).includes('3 of 5')"), .note("said", Page.text("said")),
                    .note("stored", Self.stored),
                    .note("isOver", "document.querySelector('.target, .dropping') !== null"),
                    .note("source", "document.body.dataset.source"),
                ])
            let seen = sight.values
            #expect(
                seen.said.hasPrefix(
                    "“folders.zip”: added 3 of 5 photos. 1 photo is already an example, and a copy teaches nothing new. "
                        + "Ignored 1 file that is not a photo in a folder. fruit/cup/4.jpg: "))
            #expect(seen.stored == ["pear 2", "cup 2"] && !seen.isOver && seen.source != "photo")
        }
    }

    /// ZIP files that the page must reject, by the names of their cases in `make_zip.py`, and the start or end of the message.
    static let rejections: [[String: String]] = [
        Dictionary(
            uniqueKeysWithValues: [
                "truncated", "empty", "text", "more", "checksum", "offset", "count", "list size",
            ].map { ($0, "is damaged, incomplete or not a ZIP file. Choose another file.") }),
        [
            "encrypted": "is encrypted.", "method": "compresses “cup/0.jpg” with method 12.",
            "ZIP64": "is in the format ZIP64.", "name": "has file names that are not in UTF-8.",
            "path": "has the path “../cup/1.jpg”, which leads out of it.",
        ],
        [
            "large": "take 69 MB, but may take at most 64 MB.", "size": "take 4097 MB, but may take at most 64 MB.",
            "root": "has no folders with JPEG, PNG, WebP or HEIC files.",
            "classes": "has 51 classes, but at most 50 are possible.", "list": "has a damaged list of classes.",
        ],
    ]

    private struct Rejected: Decodable, Sendable {
        let messages: [String]
        let kind: String
        let stored: [String]
        let added: [String]
    }

    @Test("The page rejects a damaged, hostile or unsuitable ZIP file, and keeps the examples", arguments: rejections)
    func reject(rejections: [String: String]) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let photos = try photos(.bright, 2, folder)
            let cases = rejections.sorted { $0.key < $1.key }
            let open = try cases.flatMap { name, _ -> [Browser.Step] in
                [
                    .choose("#examples-file", try Self.archive(name, photos, folder)),
                    .wait("\(Page.text("said")).includes('“\(name).zip”')"),
                    .note("messages", "(window.messages ??= []).push(\(Page.text("said"))) && window.messages"),
                ]
            }
            let picker = "#classes > li:nth-child(1) .photos"
            let sight: Browser.Sight<Rejected> = try await StudioSamples.look(
                studio, Browser.View(),
                [.choose(picker, photos[0]), .wait("\(Self.counts)[0] === 1")] + open + [
                    .note("kind", "document.querySelector('#teach .message').dataset.kind"),
                    .note("stored", Self.stored),
                    .choose(picker, photos[1]), .wait("\(Self.counts)[0] === 2"), .note("added", Self.stored),
                ])
            let seen = sight.values
            for ((name, expected), message) in zip(cases, seen.messages) {
                #expect(message.contains("“\(name).zip” \(expected)"), "\(message)")
            }
            #expect(seen.messages.count == cases.count && seen.kind == "error" && sight.console == [])
            #expect(seen.stored == ["Class 1 1"] && seen.added == ["Class 1 2"])
        }
    }
}
