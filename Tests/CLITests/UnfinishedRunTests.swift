import Foundation
import TestSupport
import Testing

/// Runs that end early, and the finished models at their paths.
@Suite(.timeLimit(.minutes(10))) struct UnfinishedRunTests {
    private static let options = "--input-size 16 --width 0.25 --batch-size 4 --output m.imprint"

    /// A shell function that interrupts a run after three more epochs, and keeps its lines and its messages.
    private static let interrupt = """
        interrupt() {
            : > lines
            $imprint train photos \(options) --epochs 100000 --checkpoint run --json "$@" > lines 2> errors &
            while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
            kill -INT $!
            wait $!
        }

        """

    @Test("An interrupted run writes its files beside those of a finished run, and the completed run replaces them")
    func interrupted() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            func text(_ name: String) throws -> String {
                try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            }
            func finishedLine() throws -> [String: Any]? {
                CommandOutput(status: 0, output: try text("lines"), errors: "").lines.last
            }
            func isUnchanged(_ name: String) -> Bool {
                FileManager.default.contentsEqual(
                    atPath: folder.appending(path: name).path, andPath: folder.appending(path: "copy-\(name)").path)
            }
            let first = try shell(
                """
                \(Self.interrupt)
                $imprint train photos \(Self.options) --epochs 1 --report r.html || exit 2
                cp m.imprint copy-m.imprint
                cp r.html copy-r.html
                interrupt --report r.html
                """, folder: folder)
            #expect(first.status == 130, "\(first.errors)")
            #expect(isUnchanged("m.imprint") && isUnchanged("r.html"))
            let errors = try text("errors")
            #expect(
                errors.contains("m.imprint: contains a model file, which a run that ended early does not replace"),
                "\(errors)")
            #expect(errors.contains("m-2.imprint is the model after epoch"), "\(errors)")
            let output = try #require(try finishedLine()?["output"] as? String)
            #expect(output.hasSuffix("m-2.imprint"))
            #expect(FileManager.default.fileExists(atPath: folder.appending(path: "r-2.html").path))
            // The model of the same run after fewer epochs is not a finished model.
            try FileManager.default.copyItem(
                at: folder.appending(path: "m-2.imprint"), to: folder.appending(path: "copy-m-2.imprint"))
            try FileManager.default.copyItem(
                at: folder.appending(path: "r-2.html"), to: folder.appending(path: "copy-r-2.html"))
            let second = try shell("\(Self.interrupt)interrupt --resume --report r.html", folder: folder)
            #expect(second.status == 130, "\(second.errors)")
            #expect(isUnchanged("m.imprint") && !isUnchanged("m-2.imprint"))
            #expect(isUnchanged("r.html") && !isUnchanged("r-2.html"))
            for name in ["m-3.imprint", "r-3.html"] {
                #expect(!FileManager.default.fileExists(atPath: folder.appending(path: name).path))
            }
            let epochs = try #require(try finishedLine()?["epochs"] as? Int)
            let last = try shell(
                "$imprint train photos \(Self.options) --epochs \(epochs + 1) --checkpoint run --resume --json",
                folder: folder)
            #expect(last.status == 0, "\(last.errors)")
            #expect(last.lines.last?["output"] as? String == "m.imprint" && !isUnchanged("m.imprint"))
        }
    }

    @Test("An interrupted run replaces an empty file, and the model of its own earlier epochs")
    func ownModel() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                \(Self.interrupt)
                : > m.imprint
                interrupt
                cp m.imprint before
                interrupt --resume
                cmp before m.imprint
                ls
                """, folder: folder)
            #expect(run.errors.contains("before m.imprint differ") || run.output.contains("before m.imprint differ"))
            #expect(!run.output.contains("m-2.imprint"), "\(run.output)")
        }
    }

    @Test("Resuming a finished run with other photos is an error, and replaces no model")
    func finishedRun() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let train = "$imprint train photos \(Self.options) --epochs 1"
            let run = try shell(
                """
                \(train) --checkpoint run && \(train) --checkpoint run --resume || exit 2
                cp photos/dark/0.png photos/dark/9.png
                \(train) || exit 3
                cp m.imprint other.imprint
                \(train) --checkpoint run --resume
                echo "exit code $?"
                cmp m.imprint other.imprint
                """, folder: folder)
            #expect(run.status == 0 && run.output.contains("exit code 64"), "\(run.errors)")
            let finding =
                "is the checkpoint of a run with nothing left to train, and its photos have changed since (1 new)."
            #expect(run.errors.components(separatedBy: finding).count == 2, "\(run.errors)")
            let hint = "Without --resume and with another folder for --checkpoint, a new run trains on these photos."
            #expect(run.errors.contains(hint), "\(run.errors)")
        }
    }

    @Test("A finished run that resumes without a further epoch replaces only files of its own, and trains on as before")
    func otherModel() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let train = "$imprint train photos \(Self.options) --report r.html"
            let run = try shell(
                """
                \(train) --epochs 1 --checkpoint run && cp m.imprint own.imprint || exit 2
                \(train) --epochs 2 --seed 9 && cp m.imprint other.imprint && cp r.html other.html || exit 3
                \(train) --epochs 1 --checkpoint run --resume --json || exit 4
                cmp m.imprint other.imprint && cmp r.html other.html && cmp m-2.imprint own.imprint || exit 5
                \(train) --epochs 1 --checkpoint run --resume --json || exit 6
                [ ! -e m-3.imprint ] && [ -e r-2.html ] && [ ! -e r-3.html ] || exit 7
                $imprint export own.imprint --to imprint --precision float16 --output half.imprint --json || exit 8
                cp half.imprint m.imprint && \(train) --epochs 1 --checkpoint run --resume --json || exit 9
                cmp m.imprint half.imprint || exit 10
                \(train) --epochs 2 --checkpoint run --resume --json
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let warning =
                "m.imprint: contains a model file, which a resumed run that had nothing left to train does not replace"
            #expect(run.errors.components(separatedBy: warning).count == 4, "\(run.errors)")
            let outputs = run.lines.filter { $0["event"] as? String == "finished" && $0["epochs"] != nil }
                .compactMap { $0["output"] as? String }
            #expect(
                outputs.map { URL(filePath: $0).lastPathComponent }
                    == ["m-2.imprint", "m-2.imprint", "m-2.imprint", "m.imprint"])
        }
    }

    @Test("An interrupted run that resumes with fewer epochs than it has replaces no model or report of another run")
    func fewerEpochs() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try shell(
                """
                \(Self.interrupt)
                train="$imprint train photos \(Self.options) --report r.html"
                $train --epochs 2 --seed 9 && cp m.imprint other.imprint && cp r.html other.html || exit 2
                interrupt
                rm m-2.imprint
                $train --epochs 1 --checkpoint run --resume --json || exit 3
                cmp m.imprint other.imprint && cmp r.html other.html || exit 4
                [ -e m-2.imprint ] && [ -e r-2.html ] || exit 5
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let warning =
                "m.imprint: contains a model file, which a resumed run that had nothing left to train does not replace"
            #expect(run.errors.contains(warning), "\(run.errors)")
            let output = try #require(run.lines.last?["output"] as? String)
            #expect(output.hasSuffix("m-2.imprint"))
        }
    }

    @Test("An interrupted run replaces its own model and report after a photo was added")
    func ownModelAfterChange() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                \(Self.interrupt)
                interrupt --report r.html
                cp m.imprint before.imprint && cp r.html before.html || exit 2
                cp photos/dark/0.png photos/dark/new.png
                interrupt --report r.html --resume
                cmp before.imprint m.imprint && exit 3
                cmp before.html r.html && exit 4
                [ ! -e m-2.imprint ] && [ ! -e r-2.html ] || exit 5
                """, folder: folder)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
        }
    }

    @Test("A run that replaces the checkpoint of a run ended by a limit reports its epochs")
    func replacedCheckpoint() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let train = "$imprint train photos \(Self.options) --checkpoint run"
            let run = try shell(
                """
                \(train) --epochs 100000 --time-limit 1s --json || exit 2
                \(train) --epochs 1
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let finished = run.lines.first { $0["event"] as? String == "finished" }
            let epochs = try #require(finished?["epochs"] as? Int)
            let warning = "This run replaces the checkpoint of a finished run (\(epochs) of 100000 epochs); --resume"
            #expect(run.errors.contains(warning), "\(run.errors)")
        }
    }

    @Test("A run that resumes with some other photos warns, also with --quiet, and its last line has their numbers")
    func changedPhotos() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let train = "$imprint train photos \(Self.options) --checkpoint run --resume --json"
            let run = try shell(
                """
                \(train) --epochs 1 || exit 2
                mv photos/dark/0.png photos/dark/9.png
                cp photos/dark/1.png photos/dark/8.png
                \(train) --epochs 2 --quiet
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let warning = "The photos have changed since the checkpoint (2 new, 1 missing): the epoch starts again"
            #expect(run.errors.components(separatedBy: warning).count == 2, "\(run.errors)")
            let finished = run.lines.filter { $0["event"] as? String == "finished" }
            #expect(finished.count == 2 && finished.first?["changedPhotos"] == nil)
            #expect(
                finished.last?["changedPhotos"] as? [String: Int] == [
                    "new": 2, "missing": 1, "edited": 0, "unreadable": 0,
                ],
                "\(run.output)")
        }
    }
}
