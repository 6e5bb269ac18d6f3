import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// Commands with a closed or full output, with signals, and with insufficient memory.
@Suite(.timeLimit(.minutes(10))) struct InterruptionTests {
    private static let training =
        "$imprint train photos --output m.imprint --epochs 2 --input-size 16 --width 0.25 --batch-size 4"

    @Test(
        "Training continues if its output cannot be written; only a missing result line is an error",
        arguments: [("--json | head -c 1", 0), ("--json > /dev/full", 1), ("--json >&-", 1), (">&-", 0), ("2>&-", 0)])
    func unreadOutput(redirection: String, status: Int32) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try shell("\(Self.training) \(redirection)", folder: folder)
            #expect(run.status == status, "\(run.errors)")
            if status == 1 { #expect(run.errors.contains("standard output: cannot be written")) }
            #expect(try imprint("inspect", "m.imprint", folder: folder).status == 0)
        }
    }

    /// Runs a command after the reader of its output has closed the pipe; the status is the exit status of the command.
    private func runUnread(_ command: String, folder: URL) throws -> CommandOutput {
        let script = """
            python3 - "$imprint" \(command) <<'END'
            import os, subprocess, sys
            reader, writer = os.pipe()
            os.close(reader)
            status = subprocess.run(sys.argv[1:], stdout=writer).returncode
            print(status if status >= 0 else 128 - status)
            END
            """
        let run = try shell(script, folder: folder)
        return CommandOutput(
            status: try #require(Int32(run.output.trimmingCharacters(in: .newlines))), output: "", errors: run.errors)
    }

    @Test("A command that writes a file succeeds if the reader of its JSON lines closes the pipe")
    func unreadProgress() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            for (command, file) in [
                (Self.training.replacing("$imprint ", with: ""), "m.imprint"),
                ("export m.imprint --to onnx --output m.onnx", "m.onnx"),
                ("import m.onnx --output n.imprint", "n.imprint"), ("prepare photos --output copy", "copy/dark/0.jpg"),
                ("personalize m.imprint photos --output me", "me"),
                ("merge m.imprint me --output o.imprint", "o.imprint"),
                ("augment photos --contact-sheet sheet.png --count 1 --epochs 1", "sheet.png"),
                ("draw \(packageFolder.path)/datasets/two-circles.json --output drawn --count 2", "drawn"),
            ] {
                let run = try runUnread("\(command) --json", folder: folder)
                #expect(run.status == 0, "\(command): \(run.errors)")
                #expect(FileManager.default.fileExists(atPath: folder.appending(path: file).path), "\(command)")
            }
        }
    }

    @Test(
        "A command that prints results ends with SIGPIPE and without a message if the reader closes the pipe",
        arguments: ["", "--json"])
    func unreadResults(option: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell(Self.training, folder: folder).status == 0)
            for command in [
                "inspect m.imprint", "evaluate m.imprint photos", "classify m.imprint photos/dark/0.png",
                "compare m.imprint m.imprint --images photos", "audit photos",
            ] {
                let run = try runUnread("\(command) \(option)", folder: folder)
                #expect(run.status == 128 + SIGPIPE && run.errors.isEmpty, "\(command): \(run.status) \(run.errors)")
            }
        }
    }

    @Test("Results are complete if standard output is a non-blocking pipe with a slow reader")
    func nonBlockingOutput() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell(Self.training, folder: folder).status == 0)
            let photo = folder.appending(path: "photos/dark/0.png").path
            try String(repeating: photo + "\n", count: 2000).write(
                to: folder.appending(path: "list"), atomically: true, encoding: .utf8)
            let script = """
                python3 - "$imprint" <<'END'
                import array, fcntl, os, subprocess, sys, termios, time
                reader, writer = os.pipe()
                os.set_blocking(writer, False)
                command = [sys.argv[1], "classify", "m.imprint", "--files-from", "list", "--json"]
                process = subprocess.Popen(command, stdout=writer)
                os.close(writer)
                waiting = array.array("i", [0])
                # A pipe has 65,536 bytes.
                while waiting[0] < 60_000 and process.poll() is None:
                    time.sleep(0.05)
                    fcntl.ioctl(reader, termios.FIONREAD, waiting)
                time.sleep(0.5)
                with os.fdopen(reader) as results: lines = results.read().splitlines()
                assert process.wait() == 0, process.returncode
                assert len(lines) == 2000, len(lines)
                END
                """
            let run = try shell(script, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
        }
    }

    @Test("Without validation, the validation metrics of an epoch are null")
    func unvalidatedEpochs() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let epoch = try #require(try shell("\(Self.training) --json", folder: folder).lines.first)
            #expect(
                epoch.keys.sorted() == [
                    "accuracy", "epoch", "event", "learningRate", "loss", "seconds", "validationAccuracy",
                    "validationLoss",
                ])
            #expect(epoch["validationLoss"] is NSNull && epoch["validationAccuracy"] is NSNull)
        }
    }

    @Test(
        "Help that cannot be written is an error",
        arguments: ["--help", "--version", "help train", "models --help", "--generate-completion-script bash"],
        ["> /dev/full", ">&-"])
    func unwritableHelp(arguments: String, redirection: String) throws {
        let run = try shell("$imprint \(arguments) \(redirection)", folder: packageFolder)
        #expect(run.status == 1)
        #expect(run.errors.hasPrefix("Error: standard output: cannot be written"), "\(run.errors)")
    }

    @Test("Results that cannot be written are an error", arguments: ["", "--json"], ["> /dev/full", ">&-"])
    func unwritableResults(option: String, redirection: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell(Self.training, folder: folder).status == 0)
            for command in ["inspect m.imprint", "evaluate m.imprint photos", "classify m.imprint photos/dark/0.png"] {
                let run = try shell("$imprint \(command) \(option) \(redirection)", folder: folder)
                #expect(run.status == 1)
                #expect(run.errors.contains("standard output: cannot be written"), "\(run.errors)")
            }
        }
    }

    @Test(
        "A signal ends training after the current step; the model is from the last complete epoch",
        arguments: [
            "kill -INT $!", "kill -TERM $!",
            // Wrappers send a signal to the process and to its group.
            "kill -INT $!; sleep 0.03; kill -INT $!", "kill -INT $!; kill -TERM $!",
        ])
    func interrupt(signals: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                touch lines
                $imprint train photos --output m.imprint --epochs 100000 --input-size 16 --width 0.25 --json > lines &
                while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
                \(signals)
                wait $!
                """, folder: folder)
            #expect(run.status == 130)
            #expect(run.errors.contains("Interrupted; m.imprint is the model after epoch"), "\(run.errors)")
            let note = "\nStopping. Send the signal again to end immediately, without saving.\n"
            #expect(run.errors.components(separatedBy: note).count == 2, "\(run.errors)")
            let lines = try String(contentsOf: folder.appending(path: "lines"), encoding: .utf8).split(separator: "\n")
            let last = Data(try #require(lines.last).utf8)
            let finished = try #require(try JSONSerialization.jsonObject(with: last) as? [String: Any])
            #expect(finished["epochs"] as? Int == lines.count - 1)
            #expect(finished["stopped"] as? Bool == true)
            #expect(try imprint("inspect", "m.imprint", folder: folder).status == 0)
        }
    }

    @Test("Signals within a second count as one, and a later one ends the command at once with exit code 1")
    func secondSignal() throws {
        try withTemporaryFolder { folder in
            let run = try runWaiting(
                "draw two-circles --output drawn --count 2",
                then: """
                    for wait in [0, 0.03, 1.2]:
                        time.sleep(wait)
                        assert process.poll() is None, process.returncode
                        process.send_signal(2)
                    process.wait(60)
                    """, folder: folder)
            // A failed assertion would print a traceback.
            #expect(run.status == 1 && run.errors.isEmpty, "\(run.errors)")
        }
    }

    @Test(
        "In a terminal, the first signal reports that the command stops, unless it is quiet",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script")), arguments: ["", "--quiet"])
    func interruptNote(option: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            try #"""
            touch lines
            $imprint train photos --output m.imprint --epochs 100000 --input-size 16 --width 0.25 --json $1 > lines &
            while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
            kill -INT $!
            wait $!
            """#.write(to: folder.appending(path: "run"), atomically: true, encoding: .utf8)
            let run = try shell(
                "export imprint\nscript -qec 'sh run \(option)' /dev/null < /dev/null", folder: folder)
            #expect(run.status == 130)
            #expect(
                run.output.contains("Stopping. Press Ctrl-C again to end immediately") == option.isEmpty,
                "\(run.output)")
        }
    }

    @Test(
        "Results are printed even if the report cannot be written",
        arguments: [
            "evaluate m.imprint photos", "audit photos",
        ])
    func unwritableReport(command: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell(Self.training, folder: folder).status == 0)
            // Every file may have at most 1 KB.
            let run = try shell(
                "ulimit -f 1; exec $imprint \(command) --json --report r.html", folder: folder)
            #expect(run.status == 1 && run.errors.contains("r.html: cannot be written"), "\(run.errors)")
            #expect(run.lines.last?["images"] != nil, "\(run.output)")
        }
    }

    @Test("If the folder of photos disappears, training ends with a model, exit code 1 and the reason")
    func movedFolder() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            let run = try shell(
                """
                touch lines
                $imprint train photos --output m.imprint --epochs 100000 --input-size 16 --width 0.25 --memory 0 --json > lines &
                while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
                mv photos away
                wait $!
                """, folder: folder)
            #expect(run.status == 1)
            #expect(run.errors.contains("Error: training ended early because too few photos are left"), "\(run.errors)")
            #expect(run.errors.contains("m.imprint is the model after epoch"), "\(run.errors)")
            let lines = try String(contentsOf: folder.appending(path: "lines"), encoding: .utf8).split(separator: "\n")
            let last = Data(try #require(lines.last).utf8)
            let finished = try #require(try JSONSerialization.jsonObject(with: last) as? [String: Any])
            #expect(finished["ending"] as? String == "photosLost" && finished["stopped"] as? Bool == true)
            #expect(finished["epochs"] as? Int == lines.count - 1)
            #expect(try imprint("evaluate", "m.imprint", "away", folder: folder).status == 0)
        }
    }

    @Test("Files created during training are not replaced; the model and the report get other names")
    func foreignFiles() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            // The only checkpoint is the one at the end, so that none is being saved when its file appears.
            let run = try shell(
                """
                touch lines
                $imprint train photos --output m.imprint --report r.html --checkpoint run --checkpoint-interval 1000 --epochs 100000 \\
                    --input-size 16 --width 0.25 --json > lines &
                while [ $(wc -l < lines) -lt 3 ] && kill -0 $!; do sleep 0.05; done
                echo mine | tee m.imprint > r.html
                mkdir -p run && echo mine > run/checkpoint.safetensors
                kill -INT $!
                wait $!
                """, folder: folder)
            #expect(run.status == 130)
            for name in ["m.imprint", "r.html", "run/checkpoint.safetensors"] {
                #expect(try String(contentsOf: folder.appending(path: name), encoding: .utf8) == "mine\n", "\(name)")
            }
            #expect(run.errors.contains("m.imprint: now contains a file that Imprint did not write"), "\(run.errors)")
            #expect(
                run.errors.contains("the file is not a checkpoint of Imprint, so it is not replaced"), "\(run.errors)")
            #expect(try imprint("inspect", "m-2.imprint", folder: folder).status == 0)
            #expect(
                try String(contentsOf: folder.appending(path: "r-2.html"), encoding: .utf8).hasPrefix("<!doctype html>")
            )
        }
    }

    @Test(
        "A file created while a command works is not replaced; the output gets another name, which the messages state",
        arguments: [
            ("audit photos --report new.html", "new.html", "new-2.html"),
            ("personalize m.imprint more --output new", "new", "new-2"),
            ("quantize m.imprint --photos photos --output new --error-limit 1", "new", "new-2"),
            ("quantize m.imprint --photos photos --output new --error-limit 1 --json", "new", "new-2"),
        ])
    func occupiedOutput(command: String, chosen: String, written: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell(Self.training, folder: folder).status == 0)
            // A label that the model does not have, which personalize reports before it learns.
            #expect(try shell("mkdir more && cp -r photos/dark more/dusk", folder: folder).status == 0)
            let run = try runWaiting(command, then: "open('\(chosen)', 'w').write('mine')", folder: folder)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
            #expect(run.output.contains("\(chosen): now contains a file that Imprint did not write"), "\(run.output)")
            #expect(try String(contentsOf: folder.appending(path: chosen), encoding: .utf8) == "mine")
            #expect(try Data(contentsOf: folder.appending(path: written)).count > 4)
            // The audit prints its findings before it writes the report.
            let results = run.output.split(separator: "\n").filter {
                $0.contains("Wrote ") || $0.contains("\"output\":")
            }
            #expect(results.allSatisfy { $0.contains(written) } && results.isEmpty == command.hasPrefix("audit"))
        }
    }

    @Test("Exceeding the file size limit is an error with the file name, and leaves no partial file")
    func fileSizeLimit() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 16)
            #expect(
                try imprint(
                    "train", "photos", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", folder: folder
                ).status == 0)
            let before = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            let run = try shell("ulimit -f 4\n$imprint export m.imprint --to onnx --output o.onnx", folder: folder)
            #expect(
                run.status == 1 && run.errors.contains("o.onnx: cannot be written (File too large)"), "\(run.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == before)
        }
    }

    @Test("A network that needs too much memory is an error with the required amount")
    func outOfMemory() throws {
        // The file has a few hundred bytes, but its network needs a gigabyte.
        var builder = NetworkBuilder(name: "large", input: TensorShape(height: 16_384, width: 16_384, channels: 1))
        builder.add(GlobalAveragePool())
        builder.add(Dense(outputChannels: 2), named: "head")
        builder.add(Softmax())
        let network = try builder.network()
        let model = ModelFile(
            network: network, parameters: try Parameters(network, seed: 0), labels: ["a", "b"],
            preprocessing: Preprocessing(width: 16_384, height: 16_384, channels: 1))
        try withTemporaryFolder { folder in
            try model.write(to: folder.appending(path: "large.imprint"))
            #expect(try imprint("inspect", "large.imprint", folder: folder).status == 0)
            let run = try shell("ulimit -v 900000\n$imprint classify large.imprint x.png", folder: folder)
            #expect(run.status == 1)
            #expect(run.errors.contains("GB of memory. Use a smaller batch"), "\(run.errors)")
        }
    }
}
