import Foundation
import TestSupport
import Testing

/// The inputs of classify and detect: files, folders, lists of paths and shards.
@Suite struct PhotoInputTests {
    private static let photos: KeyValuePairs<String, UInt8> = [
        "photos/b.png": 20, "photos/a/2.png": 240, "photos/a/1.png": 30, "photos/ü.png": 200, "other.png": 10,
    ]
    /// The photos of the folder in the order of the output.
    private static let inFolder = ["photos/a/1.png", "photos/a/2.png", "photos/b.png", "photos/ü.png"]

    private func withPhotos(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: Self.photos, to: folder)
            try body(folder)
        }
    }

    private func files(_ run: CommandOutput) -> [String?] { run.lines.map { $0["file"] as? String } }

    @Test(
        "Files, folders and lists can be mixed; results are in the order of the inputs",
        arguments: [
            ("photos", inFolder), ("other.png photos/", ["other.png"] + inFolder),
            ("photos other.png photos/b.png", inFolder + ["other.png", "photos/b.png"]),
            ("--files-from list.txt", ["other.png", "photos/b.png"]),
            ("photos --files-from list.txt --threads 3", inFolder + ["other.png", "photos/b.png"]),
            ("--files-from - < list.txt", ["other.png", "photos/b.png"]),
            ("--files-from - --json -0 < null.txt", ["other.png", "photos/b.png"]),
            ("--files-from windows.txt", ["other.png", "photos/ü.png"]),
            ("--files-from - < /dev/null", []), ("photos --shard 2/3", ["photos/a/2.png"]),
            ("photos/b.png --files-from list.txt --shard 1/2", ["photos/b.png", "photos/b.png"]),
            ("photos/b.png --shard 2/2", []),
        ])
    func inputs(arguments: String, expected: [String]) throws {
        try withPhotos { folder in
            for (name, text) in [
                "list.txt": "\nother.png\n\nphotos/b.png", "null.txt": "other.png\0\0photos/b.png\0",
                "windows.txt": "\u{FEFF}other.png\r\n\r\nphotos/ü.png\r\n",
            ] {
                try Data(text.utf8).write(to: folder.appending(path: name))
            }
            let json = arguments.contains("--json") ? "" : "--json"
            let run = try shell("$imprint classify m.imprint \(json) \(arguments)", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(files(run) == expected)
            let counts = run.lines.map { line in (line["observations"] as? [Any])?.count }
            #expect(counts.allSatisfy { $0 == 2 })
        }
    }

    @Test(
        "A sub-folder that cannot be read is an error, and the other photos are processed",
        .disabled(if: geteuid() == 0, "root can read every folder"))
    func unreadableFolder() throws {
        try withPhotos { folder in
            func setPermissions(_ permissions: Int) throws {
                try FileManager.default.setAttributes(
                    [.posixPermissions: permissions], ofItemAtPath: folder.appending(path: "photos/a").path)
            }
            try setPermissions(0)
            defer { try? setPermissions(0o700) }
            let run = try shell("$imprint classify m.imprint photos --json", folder: folder)
            #expect(run.status == 1 && files(run) == ["photos/a", "photos/b.png", "photos/ü.png"], "\(run.errors)")
            #expect(
                run.errors.contains("photos/a: the folder cannot be read (Permission denied). Check its permissions."))
        }
    }

    @Test("A photo given as a list of photos is an error that names its kind") func photoAsList() throws {
        try withPhotos { folder in
            let run = try shell("$imprint classify m.imprint --files-from other.png", folder: folder)
            #expect(run.status == 1, "\(run.errors)")
            #expect(run.errors.contains("it is a PNG image, expected a list of paths, one per line"), "\(run.errors)")
        }
    }

    @Test(
        "JSON, annotations and YAML data sets as a list of photos are one error that states what the file is",
        arguments: [
            (
                "a.json", #"{"info": {}, "images": [], "annotations": [], "categories": []}"#,
                "bounding boxes in the COCO format"
            ),
            ("a.json", "[\n{\"image\": \"a.png\", \"annotations\": []}\n]", "bounding boxes in the Create ML format"),
            ("data.yaml", "path: .\ntrain: images\nnames:\n  0: leaf\n", "bounding boxes in the YOLO format"),
            ("a.jsonl", "{\"photo\": \"a.png\"}\n{\"photo\": \"b.png\"}\n", "it is JSON, expected a list of paths"),
            ("a.txt", "[\n1,\n2\n]\n", "it is JSON, expected a list of paths"),
        ])
    func otherTextAsList(name: String, text: String, found: String) throws {
        try withPhotos { folder in
            try Data(text.utf8).write(to: folder.appending(path: name))
            let run = try shell("$imprint classify m.imprint --files-from \(name)", folder: folder)
            #expect(run.status == 1 && run.errors.contains(found), "\(run.errors)")
            #expect(
                run.errors.contains("imprint train-detector --annotations") == found.contains("boxes"), "\(run.errors)")
            #expect(!run.errors.contains("Error: {") && !run.errors.contains("a.png"), "\(run.errors)")
        }
    }

    @Test(
        "A list may start with a path that starts like the signature of an image, a model or a PDF, or like JSON",
        arguments: ["GIF89a.png", "GGUF.png", "%PDF.png", "[1].png", "{1}.png"])
    func signatures(name: String) throws {
        try withPhotos { folder in
            let run = try shell(
                "cp other.png \(name); echo \(name) > list; $imprint classify m.imprint --files-from list --json",
                folder: folder)
            #expect(run.status == 0 && files(run) == [name], "\(run.errors)")
        }
    }

    @Test("A model file that is emptied during a run does not change the results") func overwrittenModel() throws {
        try withPhotos { folder in
            let run = try shell(
                """
                $imprint classify m.imprint photos/b.png other.png photos/ü.png --csv > expected || exit 2
                mkfifo list
                $imprint classify m.imprint --files-from list --csv > found &
                exec 3> list
                echo photos/b.png >&3
                attempts=0
                until grep -q png found || [ $attempts -gt 600 ]; do sleep 0.05; attempts=$((attempts + 1)); done
                : > m.imprint
                printf 'other.png\\nphotos/ü.png\\n' >&3
                exec 3>&-
                wait $! && cmp expected found
                """, folder: folder)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
        }
    }

    @Test(
        "A URL in a list is an error that says to download the file, or the path of a local one",
        arguments: zip(
            ["https://example.org/a.png", "file:///photos/a.png"],
            [
                "Imprint reads and writes only local files. Download a remote file first.",
                "Write /photos/a.png instead.",
            ]))
    func urls(url: String, fix: String) throws {
        try withPhotos { folder in
            let run = try shell("echo \(url) | $imprint classify m.imprint --files-from - --json", folder: folder)
            #expect(run.status == 1 && run.lines.count == 1, "\(run.errors)")
            let error = "\(url): it is a URL, expected a path. \(fix)"
            #expect(run.lines.first?["error"] as? String == error)
        }
    }

    @Test("A list from a closed standard input is an error, not an empty list")
    func closedInput() throws {
        try withPhotos { folder in
            let run = try shell("$imprint classify m.imprint --files-from - <&-", folder: folder)
            #expect(run.status == 1 && run.errors.contains("standard input: cannot be read"), "\(run.errors)")
        }
    }

    @Test("The shards of any number contain each photo once", arguments: [1, 2, 3, 7])
    func shards(count: Int) throws {
        try withPhotos { folder in
            let all = (0..<11).map { "photos/\(["b", "a/1", "a/2"][$0 % 3]).png" }
            try Data(all.joined(separator: "\n").utf8).write(to: folder.appending(path: "list.txt"))
            let shards = try (1...count).map { number in
                files(
                    try imprint(
                        "classify", "m.imprint", "--files-from", "list.txt", "--json", "--shard", "\(number)/\(count)",
                        folder: folder))
            }
            for (index, photo) in all.enumerated() { #expect(shards[index % count][index / count] == photo) }
            #expect(shards.map(\.count).reduce(0, +) == all.count)
        }
    }

    @Test("A list with bad lines gives one JSON line for each photo in order; only --strict makes it a failure")
    func failures() throws {
        try withPhotos { folder in
            var list = Data("missing.png\nother.png\nphotos\n".utf8)
            list += [0x63, 0xE9, 0x5C, 0x0A]
            list +=
                Data("x\0y\n".utf8) + Data(String(repeating: "z", count: 100_000).utf8)
                + Data("\nm.imprint\nother.png".utf8)
            try list.write(to: folder.appending(path: "list.txt"))
            for (option, status) in [("--threads 1", 0), ("--threads 3", 0), ("--strict", 1)] as [(String, Int32)] {
                let run = try shell(
                    "$imprint classify m.imprint --files-from list.txt --json \(option)", folder: folder)
                #expect(run.status == status)
                let names = files(run).map { $0?.hasPrefix("zzz") == true ? "zzz" : $0 }
                #expect(
                    names == [
                        "missing.png", "other.png", "photos", "c\\xE9\\x5C", "x\0y", "zzz", "m.imprint", "other.png",
                    ])
                let errors = run.lines.map { $0["error"] as? String }
                for (error, expected) in zip(
                    errors,
                    [
                        "the file does not exist", nil, "is a folder", "not UTF-8", "NUL", "32768", "expected an image",
                        nil,
                    ])
                {
                    #expect(expected.map { error?.contains($0) == true } ?? (error == nil), "\(error ?? "nil")")
                }
                #expect(run.errors.contains("6 of 8 photos could not be processed."), "\(run.errors)")
                #expect(run.errors.split(separator: "\n").count == 7)
            }
            let named = try imprint(
                "classify", "m.imprint", "missing.png", "--files-from", "list.txt", folder: folder)
            #expect(named.status == 1 && named.output.split(separator: "\n").count == 2)
        }
    }

    @Test(
        "If all photos of a list fail, the exit code is 1; an empty list is no failure",
        arguments: [("missing.png\nm.imprint", 1), ("missing.png\nother.png", 0), ("", 0)] as [(String, Int32)],
        ["--json", "--csv", "--quiet"])
    func onlyFailures(_ example: (list: String, status: Int32), option: String) throws {
        try withPhotos { folder in
            try Data(example.list.utf8).write(to: folder.appending(path: "list.txt"))
            let run = try imprint("classify", "m.imprint", "--files-from", "list.txt", option, folder: folder)
            #expect(run.status == example.status, "\(run.errors)")
        }
    }

    @Test("A photo whose prediction is not finite is an error of this photo only") func notFinite() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(weight: 3e38, photos: ["white.png": 255, "grey.png": 128], to: folder)
            let run = try imprint("classify", "m.imprint", "white.png", "grey.png", "--json", folder: folder)
            #expect(run.status == 1 && files(run) == ["white.png", "grey.png"], "\(run.errors)")
            #expect((run.lines.first?["error"] as? String)?.contains("white.png: the network \"brightness\"") == true)
            #expect((run.lines.last?["observations"] as? [Any])?.count == 2)
            #expect(run.errors.contains("Error: white.png: the network \"brightness\" has an output"))
        }
    }

    @Test(
        "Wrong inputs are an error before the first photo",
        arguments: [
            ("", 64, "m.imprint is read as the model, and there are no photos"),
            ("other.png -0", 64, "--null: there is no list"),
            ("photos --shard 0/2", 64, "expected I/N"), ("photos --shard 3/2", 64, "expected I/N"),
            ("photos --shard 2", 64, "expected I/N"), ("--files-from missing.txt", 1, "missing.txt: cannot be read"),
            ("--files-from photos", 1, "photos: cannot be read"), ("empty", 1, "it holds none"),
            (
                "--files-from /dev/zero", 1,
                "has no path in more than 1048576 bytes, expected a list of paths; add --null"
            ),
            ("--files-from /dev/zero -0", 1, "has no path in more than 1048576 bytes, expected a list of paths"),
            ("--files-from ''", 64, "A path is empty"), ("photos --json --csv", 64, "found both"),
        ])
    func wrongInputs(arguments: String, status: Int, message: String) throws {
        try withPhotos { folder in
            let run = try shell("mkdir empty; $imprint classify m.imprint \(arguments)", folder: folder)
            #expect(run.status == Int32(status) && run.output.isEmpty)
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }

    /// A running command whose input and output the test controls.
    private final class Conversation {
        let process = Process()
        private let (input, output) = (Pipe(), Pipe())

        init(_ arguments: [String], folder: URL) throws {
            process.executableURL = tool
            process.arguments = arguments
            process.currentDirectoryURL = folder
            (process.standardInput, process.standardOutput) = (input, output)
            process.standardError = FileHandle.nullDevice
            try withoutBlockedSignals { try process.run() }
        }

        func send(_ text: String) throws { try input.fileHandleForWriting.write(contentsOf: Data(text.utf8)) }

        func close() throws { try input.fileHandleForWriting.close() }

        /// Returns the output up to the next line break; nil if it does not arrive within a minute.
        func line() throws -> String? {
            var text = Data()
            let descriptor = output.fileHandleForReading.fileDescriptor
            while text.last != UInt8(ascii: "\n") {
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&request, 1, 60_000) > 0, let byte = try output.fileHandleForReading.read(upToCount: 1),
                    !byte.isEmpty
                else { return nil }
                text += byte
            }
            return String(decoding: text.dropLast(), as: UTF8.self)
        }
    }

    @Test(
        "A program that sends one path and waits for its result gets it before it sends the next path",
        arguments: ["1", "2", "5"])
    func oneAtATime(threads: String) throws {
        try withPhotos { folder in
            let conversation = try Conversation(
                ["classify", "m.imprint", "--files-from", "-", "--json", "--threads", threads], folder: folder)
            defer { conversation.process.terminate() }
            for photo in ["other.png", "missing.png", "photos/b.png", "photos/ü.png"] {
                try conversation.send(photo + "\n")
                let line = try #require(try conversation.line())
                #expect(line.contains("\"file\":\"\(photo)\""), "\(line)")
            }
            try conversation.close()
            #expect(try conversation.line() == nil)
            conversation.process.waitUntilExit()
            #expect(conversation.process.terminationStatus == 0)
        }
    }

    @Test("An interruption while the command waits for input ends it with code 130", arguments: [SIGINT, SIGTERM])
    func interrupted(signal: Int32) throws {
        try withPhotos { folder in
            let conversation = try Conversation(
                ["classify", "m.imprint", "--files-from", "-", "--json"], folder: folder)
            try conversation.send("other.png\nother")
            #expect(try conversation.line()?.hasSuffix("}") == true)
            kill(conversation.process.processIdentifier, signal)
            #expect(try conversation.line() == nil)
            conversation.process.waitUntilExit()
            #expect(conversation.process.terminationStatus == 130)
        }
    }

    @Test(
        "The memory does not grow with the length of the list",
        .enabled(if: Python.path != nil, "needs Python"))
    func memory() throws {
        try withPhotos { folder in
            // Each path has 3,000 bytes, so the long list has 24 MB.
            let path = String(repeating: "missing/", count: 375)
            func peak(_ count: Int) throws -> Int {
                let list = folder.appending(path: "list.txt")
                try Data(repeatElement(path, count: count).joined(separator: "\n").utf8).write(to: list)
                let output = try Python.output(
                    of: "CLITests/Fixtures/peak-memory.py",
                    [tool.path, "classify", folder.appending(path: "m.imprint").path, "--files-from", list.path])
                let values = String(decoding: output, as: UTF8.self).split(whereSeparator: \.isWhitespace)
                // All photos are missing.
                #expect(values.last == "1")
                return try #require(values.first.flatMap { Int($0) })
            }
            let (short, long) = (try peak(200), try peak(8_000))
            #expect(long - short < 12_000_000, "\(short) \(long)")
        }
    }
}
