import Foundation
import ImprintCore
import ImprintInterop
import TestSupport
import Testing

@testable import imprint_cli

/// Results that cannot be written to the chosen path after a long job.
@Suite(.timeLimit(.minutes(10))) struct RescuedOutputTests {
    private static let training =
        "train photos --output out/m.imprint --epochs 100000 --input-size 16 --width 0.25 --batch-size 4 --json"

    @Test(
        "If the folder of the model is deleted during training, the model is in the temporary folder, with exit code 1")
    func training() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                mkdir out tmp
                export TMPDIR="$PWD/tmp"
                touch lines
                $imprint \(Self.training) > lines &
                while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
                rm -r out
                kill -INT $!
                wait $!
                """, folder: folder)
            #expect(run.status == 1)
            #expect(
                run.errors.contains("/out/m.imprint: cannot be written (No such file or directory)"),
                "\(run.errors)")
            let lines = try String(contentsOf: folder.appending(path: "lines"), encoding: .utf8)
            let finished = try #require(CommandOutput(status: 0, output: lines, errors: "").lines.last)
            let output = try #require(finished["output"] as? String)
            #expect(output.contains("/tmp/imprint-") && output.hasSuffix("/m.imprint"))
            #expect(run.errors.contains("The result is in \(output) instead"), "\(run.errors)")
            #expect(try imprint("inspect", output, folder: folder).status == 0)
        }
    }

    @Test(
        "If the folder of the output is deleted during the work, the result is in the temporary folder, with exit code 1",
        arguments: [
            "personalize m.imprint more --output out/new",
            "quantize m.imprint --photos photos --output out/new --error-limit 1",
            "evaluate m.imprint photos --report out/new", "audit photos --report out/new",
            "train photos --output n.imprint --epochs 1 --input-size 16 --width 0.25 --report out/new",
            "train photos --folds 2 --random-split --epochs 1 --input-size 16 --width 0.25 --report out/new",
            "train photos --folds 2 --random-split --epochs 1 --input-size 16 --width 0.25 --predictions out/new",
        ])
    func otherCommands(command: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let setUp = try shell(
                """
                mkdir out tmp more && cp -r photos/dark more/dusk
                $imprint train photos --output m.imprint --epochs 2 --input-size 16 --width 0.25
                """, folder: folder)
            #expect(setUp.status == 0, "\(setUp.errors)")
            let run = try runWaiting(
                command, then: "shutil.rmtree('out')", environment: #"TMPDIR="$PWD/tmp""#, folder: folder)
            #expect(run.status == 1)
            #expect(
                run.output.contains("/out/new: cannot be written (No such file or directory)"), "\(run.output)")
            #expect(run.output.contains("/tmp/imprint-"), "\(run.output)")
            let saved = try shell("ls tmp/imprint-*/new", folder: folder)
            #expect(saved.status == 0, "\(saved.errors)")
        }
    }

    @Test("The result is written once to the chosen path, or once elsewhere, or the error is thrown", arguments: 0...2)
    func writeResult(failures: Int) throws {
        try withTemporaryFolder { folder in
            let chosen = folder.appending(path: "m.imprint")
            let error = FileError.cannotWrite(path: chosen.path, reason: "the disk is full", remedy: "Free some space.")
            var written: [URL] = []
            func write(_ url: URL) throws -> Int {
                written.append(url)
                // The chosen path comes first, then the temporary folder, then the home folder.
                if written.count <= (failures == 2 ? 3 : failures) { throw error }
                try Data("model".utf8).write(to: url)
                return 7
            }
            guard failures < 2 else {
                #expect(throws: error) { try imprint_cli.writeResult(to: chosen.path, .model, write) }
                let folders = written.dropFirst().map { $0.deletingLastPathComponent() }
                #expect(!folders.isEmpty && !folders.contains { FileManager.default.fileExists(atPath: $0.path) })
                return
            }
            let result = try imprint_cli.writeResult(to: chosen.path, .model, write)
            #expect(result.value == 7 && result.isElsewhere == (failures == 1) && written.count == failures + 1)
            #expect((result.path == chosen.path) == (failures == 0) && result.path.hasSuffix("/m.imprint"))
            #expect(try String(contentsOfFile: result.path, encoding: .utf8) == "model")
            if result.isElsewhere {
                try FileManager.default.removeItem(at: URL(filePath: result.path).deletingLastPathComponent())
            }
        }
    }
}
