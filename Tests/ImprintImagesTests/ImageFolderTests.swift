import Foundation
import ImprintImages
import TestSupport
import Testing

/// Creates files at the given relative paths, each with its path as content; paths that end in "/" become folders.
func withFiles<Result>(_ paths: [String], _ body: (URL) throws -> Result) throws -> Result {
    try withTemporaryFolder { root in
        for path in paths {
            let url = root.appending(path: path)
            let folder = path.hasSuffix("/") ? url : url.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            if !path.hasSuffix("/") { try Data(path.utf8).write(to: url) }
        }
        return try body(root)
    }
}

@Suite("Image folder") struct ImageFolderTests {
    private func relative(_ folder: ImageFolder, _ urls: [URL]) -> [String] {
        let prefix = folder.url.path(percentEncoded: false)
        return urls.map { String($0.path(percentEncoded: false).dropFirst(prefix.count)).trimmingPrefix("/") }
            .map(String.init)
    }

    @Test("Classes and images come in the order of Unicode scalars") func order() throws {
        let paths = ["b/2.jpg", "b/10.jpg", "b/A.jpg", "a/x.png", "Z/x.jpeg", "ä/x.JPG", "b/a.jpg"]
        try withFiles(paths) { root in
            let folder = try ImageFolder(at: root)
            #expect(folder.labels == ["Z", "a", "b", "ä"])
            #expect(
                relative(folder, folder.items.map(\.url))
                    == ["Z/x.jpeg", "a/x.png", "b/10.jpg", "b/2.jpg", "b/A.jpg", "b/a.jpg", "ä/x.JPG"])
            #expect(folder.items.map(\.label) == [0, 1, 2, 2, 2, 2, 3])
            #expect(folder.ignored.isEmpty)
        }
    }

    @Test("Hidden files are skipped; other files are listed; sub-folders belong to their class") func contents()
        throws
    {
        let paths = [
            "a/1.jpg", "a/.DS_Store", "a/._1.jpg", "a/Thumbs.db", "a/desktop.ini", "a/notes.txt", "a/deep/er/2.png",
            "a/deep/readme.md", "b/3.webp", "b/.hidden/4.jpg", ".git/5.jpg", "__MACOSX/6.jpg", "top.jpg", "labels.json",
        ]
        try withFiles(paths) { root in
            let folder = try ImageFolder(at: root)
            #expect(folder.labels == ["a", "b"])
            #expect(relative(folder, folder.items.map(\.url)) == ["a/1.jpg", "a/deep/er/2.png", "b/3.webp"])
            #expect(
                relative(folder, folder.ignored) == ["labels.json", "top.jpg", "a/deep/readme.md", "a/notes.txt"])
        }
    }

    @Test("An image without an extension is found by its content") func byContent() throws {
        try withFiles(["a/1.jpg", "b/2.jpg"]) { root in
            for name in ["a/IMG_0001", "b/photo.dat"] {
                try Data(ImageFile.encodePNG(RasterImage(width: 1, height: 1))).write(to: root.appending(path: name))
            }
            let folder = try ImageFolder(at: root)
            #expect(relative(folder, folder.items.map(\.url)) == ["a/1.jpg", "a/IMG_0001", "b/2.jpg", "b/photo.dat"])
        }
    }

    @Test("Links to files and class folders are followed, links to deeper folders are not") func links() throws {
        try withFiles(["elsewhere/1.jpg", "root/a/2.jpg"]) { base in
            let root = base.appending(path: "root")
            for (link, destination) in [
                ("a/linked.jpg", "../../elsewhere/1.jpg"), ("b", "../elsewhere"), ("a/circle", ".."),
                ("a/broken.jpg", "absent.jpg"),
            ] {
                try FileManager.default.createSymbolicLink(
                    atPath: root.appending(path: link).path, withDestinationPath: destination)
            }
            let folder = try ImageFolder(at: root)
            // Decoding reports a broken link as an unreadable image.
            #expect(
                relative(folder, folder.items.map(\.url)) == ["a/2.jpg", "a/broken.jpg", "a/linked.jpg", "b/1.jpg"])
        }
    }

    @Test("An unusable folder is an error that names the reason") func unusable() throws {
        func expectError(
            _ paths: [String], _ expected: (URL) -> ImageError, text fragments: String..., minimumLabels: Int = 2,
            at path: String = ""
        ) throws {
            try withFiles(paths) { root in
                let url = path.isEmpty ? root : root.appending(path: path)
                #expect(throws: expected(url)) { try ImageFolder(at: url, minimumLabels: minimumLabels) }
                let text = "\(expected(url))"
                for fragment in fragments + [url.lastPathComponent] { #expect(text.contains(fragment), "\(text)") }
            }
        }
        try expectError([], { .missingFolder(folder: $0) }, text: "does not exist", at: "absent")
        try expectError(["a.jpg"], { .notAFolder(file: $0) }, text: "is a file", at: "a.jpg")
        try expectError([], { .emptyFolder(folder: $0) }, text: "one sub-folder")
        try expectError([".DS_Store", "notes.txt"], { .emptyFolder(folder: $0) }, text: "one sub-folder")
        try expectError(
            ["1.jpg", "2.png", "notes.txt"], { .noLabelFolders(folder: $0, images: 2) }, text: "2 photos", "per label")
        try expectError(
            ["only/1.jpg"], { .tooFewLabels(folder: $0, found: ["only"], minimum: 2) }, text: "only",
            "expected at least 2"
        )
        try expectError(
            ["a/1.jpg", "none/"], { .labelWithoutImages(folder: $0, label: "none") }, text: "\"none\"")
        try expectError(
            ["a/1.jpg", "none/notes.txt"], { .labelWithoutImages(folder: $0, label: "none") }, text: "no photos")
    }

    @Test("A pipe or a device as the folder is an error that names its kind") func specialFiles() throws {
        try withTemporaryFolder { folder in
            let pipe = folder.appending(path: "pipe")
            try #require(mkfifo(pipe.path, 0o600) == 0)
            for (url, kind) in [(pipe, "a pipe"), (URL(filePath: "/dev/null"), "a device")] {
                let expected = ImageError.notAFolder(file: url, kind: kind)
                #expect(throws: expected) { try ImageFolder(at: url) }
                #expect(throws: expected) { try ImageFolder(at: url, logos: ["leaf"]) }
                #expect("\(expected)".contains("is \(kind), expected a folder with one sub-folder"))
            }
        }
    }

    @Test("One class is enough if requested") func oneClass() throws {
        try withFiles(["only/1.jpg"]) { root in
            let folder = try ImageFolder(at: root, minimumLabels: 1)
            #expect(folder.labels == ["only"])
        }
    }

    @Test("Folder names that differ only in Unicode normalization are an error") func equalNames() throws {
        // Some file systems normalize names and cannot hold both.
        try withFiles(["caf\u{E9}/1.jpg", "cafe\u{301}/2.jpg", "tea/3.jpg"]) { root in
            guard try FileManager.default.contentsOfDirectory(atPath: root.path).count == 3 else { return }
            let error = #expect(throws: ImageError.self) { try ImageFolder(at: root) }
            #expect(error.map { "\($0)".contains("2 sub-folders that look the same") } == true)
            #expect(error.map { "\($0)".contains(#""caf\u{E9}""#) && "\($0)".contains(#""cafe\u{301}""#) } == true)
        }
    }

    @Test(
        "A sub-folder whose name shows nothing is an error that shows its characters",
        arguments: ["\u{200B}", " ", "\u{FEFF}", "\u{3164}\u{A0}"])
    func blankNames(name: String) throws {
        try withFiles(["a/1.jpg", "\(name)/2.jpg"]) { root in
            let expected = ImageError.blankLabel(folder: root, name: name)
            #expect(throws: expected) { try ImageFolder(at: root) }
            #expect(throws: expected) { try ImageFolder(at: root, logos: ["a"]) }
        }
        let error = ImageError.blankLabel(folder: URL(filePath: "/photos"), name: "\u{200B} ")
        #expect("\(error)".contains(#"/photos: the sub-folder "\u{200B} " has a blank name"#), "\(error)")
    }

    @Test("Paths keep U+FEFF at the start of the name of a folder or file") func byteOrderMarks() throws {
        let paths = ["ring/1.jpg", "\u{FEFF}ring/1.jpg", "\u{FEFF}ring/\u{FEFF}deep/\u{FEFF}2.jpg"]
        try withFiles(paths) { root in
            let folder = try ImageFolder(at: root)
            #expect(Set(folder.labels.map { Array($0.utf8) }) == [Array("ring".utf8), Array("\u{FEFF}ring".utf8)])
            let found = Set(folder.items.map { Array(folder.identifier(of: $0).utf8) })
            #expect(found == Set(paths.map { Array($0.utf8) }))
        }
        let relative = URL(filePath: "\u{FEFF}ring/1.jpg")
        #expect(relative.displayPath.utf8.suffix(13).elementsEqual("\u{FEFF}ring/1.jpg".utf8))
    }

    @Test("An error about sub-folders that look the same names all of them") func severalEqualNames() {
        let error = ImageError.equalNames(
            folder: URL(filePath: "/photos"), names: ["caf\u{E9}", "K", "cafe\u{301}", "\u{212A}"])
        let expected =
            #"4 sub-folders that look the same, "caf\u{E9}" and "cafe\u{301}"; "K" and "\u{212A}", but consist of"#
        #expect("\(error)".contains(expected), "\(error)")
    }

    @Test(
        "A sub-folder whose name is similar to a logo is an error, because its photos would be backgrounds",
        arguments: [
            (["boat/1.jpg"], "boat"), (["boat/1.jpg", "sea/2.jpg"], "boat"), (["Boat/1.jpg", "Boat /2.jpg"], "Boat "),
            (["Sea/1.jpg", "boats/2.jpg"], nil),
        ] as [([String], String?)])
    func similarToLogo(paths: [String], label: String?) throws {
        try withFiles(paths) { root in
            let folder = Result { () throws(ImageError) in try ImageFolder(at: root, logos: ["Leaf", "Boat"]) }
            switch folder {
            case .success: #expect(label == nil)
            case .failure(let error):
                let expected = label.map {
                    ImageError.similarToLogo(source: root.path(percentEncoded: false), label: $0, logo: "Boat")
                }
                #expect(error == expected)
                #expect("\(error)".contains("count as photos without the logo \"Boat\""))
            }
        }
    }

    @Test("Sub-folders of a logo that differ only in Unicode normalization are an error") func equalLogoNames() throws {
        // Some file systems normalize names and cannot hold both.
        try withFiles(["caf\u{E9}/1.jpg", "cafe\u{301}/2.jpg", "tea/3.jpg"]) { root in
            guard try FileManager.default.contentsOfDirectory(atPath: root.path).count == 3 else { return }
            let error = #expect(throws: ImageError.self) { try ImageFolder(at: root, logos: ["caf\u{E9}"]) }
            #expect(error.map { "\($0)".contains("2 sub-folders that look the same") } == true)
            #expect(try ImageFolder(at: root, logos: ["tea"]).labels == ["none", "tea"])
        }
    }

    @Test("A logo with the label of photos without a logo is an error") func reservedLabel() throws {
        try withFiles(["none/1.jpg", "a/2.jpg", "b/3.jpg"]) { root in
            let error = #expect(throws: ImageError.self) { try ImageFolder(at: root, logos: ["none"]) }
            #expect(error.map { "\($0)".contains("expected another label for the logo") } == true)
        }
    }

    @Test("The digest depends only on names and sizes") func digest() throws {
        func digest(_ paths: [String], change: (URL) throws -> Void = { _ in }) throws -> String {
            try withFiles(paths) { root in
                try change(root)
                return try ImageFolder(at: root).digest
            }
        }
        let first = try digest(["a/1.jpg", "b/2.jpg"])
        #expect(first.count == 64)
        #expect(try digest(["b/2.jpg", "a/1.jpg", "a/notes.txt", "a/.x"]) == first)
        for other in [["a/1.jpg", "b/3.jpg"], ["a/1.jpg", "c/2.jpg"], ["a/1.jpg", "b/2.jpg", "b/3.jpg"]] {
            #expect(try digest(other) != first)
        }
        let grown = try digest(["a/1.jpg", "b/2.jpg"]) { try Data(count: 100).write(to: $0.appending(path: "a/1.jpg")) }
        #expect(grown != first)
    }

    @Test(
        "A name that is not UTF-8 is an error, so no photo or label is silently missing",
        arguments: ["caf\\351", "a/gr\\374n.png", "a/deep\\377/1.png"])
    func namesOfOtherEncodings(path: String) throws {
        try withTemporaryFolder { folder in
            try write(.scene(1), to: folder.appending(path: "a/1.png"))
            try write(.scene(1), to: folder.appending(path: "b/1.png"))
            let script = """
                name=$(printf '\(path)'); case "$name" in *.png) mkdir -p "$(dirname "$name")"; cp b/1.png "$name";; *) mkdir "$name";; esac
                """
            let creation = try run(URL(filePath: "/bin/sh"), ["-c", script], folder: folder)
            // Some file systems do not allow such names.
            guard creation.status == 0 else { return }
            let error = #expect(throws: ImageError.self) { try ImageFolder(at: folder) }
            guard case .undecodableName(_, let name) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
            #expect(name.contains("\\x") && error?.description.contains("Rename it") == true)
            // Hidden files are skipped.
            try withTemporaryFolder { other in
                try write(.scene(1), to: other.appending(path: "a/1.png"))
                let hidden = try run(URL(filePath: "/bin/sh"), ["-c", "touch \".$(printf 'x\\351')\""], folder: other)
                #expect(hidden.status == 0)
                #expect(try ImageFolder(at: other, minimumLabels: 1).items.count == 1)
            }
        }
    }
}
