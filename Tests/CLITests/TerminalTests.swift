import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import imprint_cli

/// The progress output to terminals and to files.
@Suite struct TerminalTests {
    private static let training =
        "train photos --output m.imprint --epochs 3 --input-size 16 --width 0.25 --validation 0.25"
    /// Whether the program `script` is available, which runs a command in a pseudo-terminal.
    private static let hasTerminals = FileManager.default.isExecutableFile(atPath: "/usr/bin/script")

    /// Runs training in a terminal with `columns` columns and returns its output.
    private func outputInTerminal(
        _ folder: URL, columns: Int = 100, _ environment: String = "TERM=xterm"
    ) throws -> String {
        let run = try shell(
            """
            export imprint
            script -qec 'stty cols \(columns); env -u NO_COLOR \(environment) $imprint \(Self.training)' /dev/null < /dev/null
            """, folder: folder)
        #expect(run.status == 0, "\(run.output)\(run.errors)")
        return run.output
    }

    @Test(
        "In a terminal, the progress bar fits into a line, and important words are coloured",
        .enabled(if: hasTerminals), arguments: [40, 80, 132])
    func bar(columns: Int) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let output = try outputInTerminal(folder, columns: columns)
            let bars = output.components(separatedBy: "\r\u{1B}[2K").dropFirst().filter {
                $0.contains("[=") || $0.contains("[>")
            }
            #expect(bars.contains { $0.hasPrefix("epoch 3/3 [") }, "\(output)")
            #expect(bars.allSatisfy { ($0.split(separator: "\r").first ?? "").count < columns })
            #expect(bars.contains { $0.contains("left") } == (columns > 40))
            #expect(output.contains("\u{1B}[1mWrote m.imprint\u{1B}[0m"))
            #expect(output.contains("\u{1B}[32mbest\u{1B}[0m") || output.contains("\u{1B}[32m  best\u{1B}[0m"))
        }
    }

    @Test(
        "The bar has a length for every fraction, also for 0 out of 0 items",
        arguments: [(0, 0), (0.5, 10), (1, 20), (1.5, 20), (-1, 0), (.nan, 0), (.infinity, 20), (-.infinity, 0)]
            as [(Double, Int)])
    func fractions(fraction: Double, done: Int) {
        #expect(ProgressBar.doneCount(fraction, of: 20) == done)
    }

    @Test(
        "With NO_COLOR or a dumb terminal, the output is plain text", .enabled(if: hasTerminals),
        arguments: ["TERM=xterm NO_COLOR=1", "TERM=dumb"])
    func plain(environment: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let output = try outputInTerminal(folder, environment)
            #expect(output.contains("Wrote m.imprint: accuracy"), "\(output)")
            #expect(!output.contains("\u{1B}[1m") && !output.contains("\u{1B}[32m"))
        }
    }

    @Test("CSV in a terminal has no escape sequences of labels; in a file, it has them", .enabled(if: hasTerminals))
    func csv() throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(labels: ["\u{1B}[31mred", "dark"], photos: ["a.png": 250], to: folder)
            let command = "$imprint classify m.imprint a.png --csv"
            let terminal = try shell("export imprint\nscript -qec '\(command)' /dev/null < /dev/null", folder: folder)
            #expect(terminal.output.contains(",\\u{1B}[31mred,"), "\(terminal.output)\(terminal.errors)")
            #expect(!terminal.output.contains("\u{1B}[31m"))
            #expect(try shell(command, folder: folder).output.contains(",\u{1B}[31mred,"))
        }
    }

    @Test("Output to a file has no progress bar, no colours, and each warning once") func noTerminal() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            try Data("not an image".utf8).write(to: folder.appending(path: "photos/dark/bad.png"))
            try Data("a text".utf8).write(to: folder.appending(path: "photos/dark/notes.txt"))
            let run = try shell("$imprint \(Self.training)", folder: folder)
            #expect(!run.errors.contains("\u{1B}") && !run.errors.contains("\r"))
            let lines = run.errors.split(separator: "\n")
            #expect(lines.count { $0.hasPrefix("epoch ") } == 3)
            #expect(lines.count { $0.contains("bad.png") } == 1)
            let ignored = "Ignored 1 file that is not an image, or that is not in the folder of a label: "
            let name = "/photos/dark/notes.txt."
            #expect(lines.count { $0.hasPrefix(ignored) && $0.hasSuffix(name) } == 1, "\(run.errors)")
            #expect(lines.contains { $0.hasPrefix("Wrote m.imprint: accuracy ") })
            for line in ["accuracy ", "label", "confusion", "Confidences are calibrated"] {
                #expect(run.errors.contains("\n\(line)") || run.errors.contains(" \(line)"), "\(line)")
            }
        }
    }
}
