import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// Labels and file names with control sequences for terminals and with line breaks.
@Suite struct HostileNamesTests {
    private static let labels = [
        "cat\u{1B}]0;title\u{7}\u{1B}[2J", "dog\nForged: line\r\t", "\u{9B}2Jcod\u{202E}\u{2066}tac\u{2028}\u{7F}",
        String(repeating: "long ", count: 30) + "end",
    ]

    /// Calls `body` with a folder that contains the model m.imprint and photos of each label, all with such names.
    private func withNames(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let network = try Network.logonet(labels: Self.labels.count, inputSize: 16, width: 0.1)
            try ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: Self.labels,
                preprocessing: Preprocessing(width: 16, height: 16),
                categories: try Categories(["pet\u{1B}[0m\nForged: line": Array(Self.labels.prefix(2))])
            ).write(to: folder.appending(path: "m.imprint"))
            for (labelIndex, label) in (Self.labels + ["new\u{1B}c\nForged: line"]).enumerated() {
                let photos = folder.appending(path: labelIndex < Self.labels.count ? "photos" : "more").appending(
                    path: label)
                try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
                for index in 0..<3 {
                    try ImageFile.write(
                        RasterImage(width: 16, height: 16, filledWith: UInt8(40 * labelIndex + 10 * index)),
                        to: photos.appending(path: "\(index)\u{1B}[1m\nForged: line.png"))
                }
                try Data("text".utf8).write(to: photos.appending(path: "bad\u{1B}c\nForged: line.png"))
            }
            try body(folder)
        }
    }

    @Test(
        "The text output escapes control characters and line breaks in names",
        arguments: [
            ("classify m.imprint photos/*/0*.png", "dog\\u{A}Forged: line\\u{D}\\u{9} "),
            ("classify m.imprint photos/*/bad*.png", "bad\\u{1B}c\\u{A}Forged: line.png"),
            ("classify m.imprint photos/*/0*.png --categories auto", "pet\\u{1B}[0m\\u{A}Forged: line "),
            (
                "inspect m.imprint",
                "cat\\u{1B}]0;title\\u{7}\\u{1B}[2J, dog\\u{A}Forged: line\\u{D}\\u{9}, \\u{9B}2Jcod\\u{202E}"
            ),
            ("inspect m.imprint", "categories   pet\\u{1B}[0m\\u{A}Forged: line\n"),
            ("evaluate m.imprint photos --images", "dog\\u{A}Forged: li"),
            ("audit photos", "cat\\u{1B}]0;title\\u{7}\\u{1B}[2J"),
            ("compare m.imprint m.imprint --images photos", "Forged: line.png"),
            ("augment photos --contact-sheet s.png --count 2", "\\u{1B}[1m\\u{A}Forged: line.png"),
            (
                "train photos --output t.imprint --epochs 1 --network logonet --input-size 16 --width 0.1 --validation 0",
                "dog\\u{A}Forged: line"
            ),
            (
                "personalize m.imprint more --output d && $imprint inspect d",
                "new labels   new\\u{1B}c\\u{A}Forged: line\n"
            ),
            (
                "personalize m.imprint more --output d && $imprint merge m.imprint d --output n.imprint",
                "New labels: new\\u{1B}c\\u{A}"
            ),
            ("inspect m.imprint \"$(printf 'x\\033[2J\\nForged: line')\"", "'x\\u{1B}[2J\\u{A}Forged: line'"),
            (
                "inspect \"$(printf '%s\\033[2J\\nForged: line' -h)\"",
                "Error: -h\\u{1B}[2J\\u{A}Forged: line is not an option"
            ),
            ("evaluate m.imprint more", "new\\u{1B}c\\u{A}Forged: line"),
            // The continuation lines of an error are indented.
            ("evaluate m.imprint \"$(printf 'x\\r\\nForged: line')\"", "x\\u{D}\n  Forged: line"),
        ])
    func textOutput(command: String, expected: String) throws {
        try withNames { folder in
            let run = try shell("$imprint \(command)", folder: folder)
            let text = run.output + run.errors
            #expect(text.contains(expected), "\(text.debugDescription)")
            #expect(!text.unicodeScalars.contains { $0 != "\n" && isTerminalControl($0) }, "\(text.debugDescription)")
            #expect(!text.split(separator: "\n").contains { $0.hasPrefix("Forged") }, "\(text.debugDescription)")
        }
    }

    @Test("The text output shortens long labels")
    func long() throws {
        try withNames { folder in
            for command in ["classify m.imprint photos/cat*/0*.png", "inspect m.imprint"] {
                let text = try shell("$imprint \(command)", folder: folder).output
                #expect(text.contains("…") && text.contains("long end"), "\(text)")
                #expect(!text.contains(String(repeating: "long ", count: 16)), "\(text)")
            }
        }
    }

    @Test("The text output escapes zero-width characters in labels, and JSON keeps them") func zeroWidth() throws {
        try withTemporaryFolder { folder in
            let labels = ["ri\u{200B}ng", "cat"]
            let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
            try ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: labels,
                preprocessing: Preprocessing(width: 16, height: 16)
            ).write(to: folder.appending(path: "m.imprint"))
            let text = try shell("$imprint inspect m.imprint", folder: folder)
            #expect(text.output.contains("labels       ri\\u{200B}ng, cat\n"), "\(text.output)\(text.errors)")
            let json = try shell("$imprint inspect m.imprint --json", folder: folder)
            #expect(json.lines.first?["labels"] as? [String] == labels, "\(json.output)\(json.errors)")
        }
    }

    @Test("JSON contains all names unchanged, with escaped control characters")
    func json() throws {
        try withNames { folder in
            let run = try shell("$imprint classify m.imprint photos/*/0*.png --json", folder: folder)
            #expect(run.status == 0 && run.lines.count == Self.labels.count, "\(run.errors)")
            for line in run.lines {
                let seen = try #require(line["observations"] as? [[String: Any]])
                #expect(Set(seen.compactMap { $0["label"] as? String }) == Set(Self.labels))
                #expect((line["file"] as? String)?.hasSuffix("/0\u{1B}[1m\nForged: line.png") == true)
            }
            #expect(!run.output.unicodeScalars.contains { $0 != "\n" && isTerminalControl($0) }, "\(run.output)")
        }
    }

    @Test("The columns of tables are aligned for any names")
    func columns() throws {
        try withNames { folder in
            let lines = try shell("$imprint evaluate m.imprint photos", folder: folder).output.split(separator: "\n")
            let header = try #require(lines.firstIndex { $0.contains("precision") })
            #expect(Set(lines[header...(header + Self.labels.count)].map(\.count)).count == 1, "\(lines)")
        }
    }
}

/// Whether a character controls terminals or the direction of text.
private func isTerminalControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x00...0x1F, 0x7F...0x9F, 0x61C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
}
