import Foundation
import ImprintCore
import TestSupport
import Testing

/// Training runs that are killed, and runs with full or read-only disks.
@Suite struct ResumeTests {
    private static let training =
        "train photos --epochs 6 --input-size 16 --width 0.25 --batch-size 4 --augment flip,noise --average 0.9 "
        + "--validation 0.25 --checkpoint run --checkpoint-interval 0 --threads 1"

    @Test("A run killed at 20 random times and resumed writes a bitwise identical model")
    func killed() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let start = ContinuousClock().now
            #expect(try shell("$imprint \(Self.training) --output whole.imprint", folder: folder).status == 0)
            let duration = (ContinuousClock().now - start) / .seconds(1) + 0.05
            try FileManager.default.removeItem(at: folder.appending(path: "run"))
            var stream = RandomStream(seed: 5, "kills")
            var kills = 0
            var runs = 0
            while kills < 20 {
                // The time of a kill is uniformly distributed; a run killed before its first checkpoint starts again.
                let delay = Double(stream.uniform(in: 0...1)) * duration
                let run = try shell(
                    """
                    $imprint \(Self.training) --resume --output m.imprint 2> errors &
                    sleep \(delay)
                    kill -9 $! 2> /dev/null
                    wait $!
                    """, folder: folder)
                let errors = try String(contentsOf: folder.appending(path: "errors"), encoding: .utf8)
                #expect(!errors.contains("Error"), "after \(kills) kills: \(errors)")
                guard run.status != 0 else {
                    runs += 1
                    try expectIdenticalModels(folder, "after \(kills) kills")
                    try FileManager.default.removeItem(at: folder.appending(path: "run"))
                    continue
                }
                #expect(run.status == 128 + SIGKILL)
                kills += 1
            }
            let last = try shell("$imprint \(Self.training) --resume --output m.imprint", folder: folder)
            #expect(last.status == 0, "\(last.errors)")
            try expectIdenticalModels(folder, "after all kills, \(runs) runs ended before")
            // Partial files of the killed runs are deleted.
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "run").path).count == 1)
        }
    }

    private func expectIdenticalModels(_ folder: URL, _ moment: String) throws {
        let resumed = try Data(contentsOf: folder.appending(path: "m.imprint"))
        #expect(resumed == (try Data(contentsOf: folder.appending(path: "whole.imprint"))), "\(moment)")
    }

    @Test("Training interrupted within the first epoch reports how to resume, and resumes", arguments: ["INT", "TERM"])
    func interrupted(signal: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let options = "--epochs 1 --input-size 16 --width 0.25 --batch-size 2 --checkpoint run --output m.imprint"
            #expect(try shell("$imprint train photos \(options)", folder: folder).status == 0)
            let expected = try Data(contentsOf: folder.appending(path: "m.imprint"))
            try FileManager.default.removeItem(at: folder.appending(path: "run"))
            try FileManager.default.removeItem(at: folder.appending(path: "m.imprint"))
            // The first checkpoint shows that training has started. If the run ends before the signal, try again.
            let run = try shell(
                """
                for attempt in 1 2 3 4 5 6 7 8 9 10; do
                    rm -rf run m.imprint
                    $imprint train photos \(options) --checkpoint-interval 0 2> errors &
                    while [ ! -e run/checkpoint.safetensors ] && kill -0 $!; do :; done
                    kill -\(signal) $!
                    wait $! || break
                done
                cat errors
                [ ! -e m.imprint ] && $imprint train photos \(options) --resume --json
                """, folder: folder)
            #expect(run.status == 0, "\(run.output)\(run.errors)")
            #expect(run.output.contains("training was stopped too early"), "\(run.output)")
            #expect(run.output.contains("run/checkpoint.safetensors"), "\(run.output)")
            #expect(run.lines.last?["event"] as? String == "finished")
            #expect(try Data(contentsOf: folder.appending(path: "m.imprint")) == expected)
        }
    }

    @Test(
        "--resume starts a new run if there is no checkpoint, or an empty file instead, and reports it",
        arguments: ["", "mkdir run && : > run/checkpoint.safetensors"])
    func nothingToResume(before: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let run = try shell("\(before)\n$imprint \(Self.training) --resume --output m.imprint", folder: folder)
            #expect(run.status == 0)
            #expect(run.errors.contains("There is no checkpoint in run yet; starting a new run."), "\(run.errors)")
        }
    }

    @Test("A checkpoint instead of a model is an error") func notAModel() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            #expect(try shell("$imprint \(Self.training) --output m.imprint", folder: folder).status == 0)
            let run = try imprint("inspect", "run/checkpoint.safetensors", folder: folder)
            #expect(run.status == 1)
            #expect(run.errors.contains("is the checkpoint of a run, not a model"), "\(run.errors)")
        }
    }

    // MARK: Disks

    /// Whether this user may mount a file system.
    private static let mayMount =
        (try? run(URL(filePath: "/bin/sh"), ["-c", "unshare -Urm mount -t tmpfs none /mnt"]))?.status == 0

    /// Runs a script in a folder with photos and with a disk of the given size at `disk`.
    /// - Returns: The output of the script, and the contents of the file `errors`.
    private func runScript(onDiskOf size: String, _ script: String) throws -> (run: CommandOutput, errors: String) {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 12)
            try FileManager.default.createDirectory(
                at: folder.appending(path: "disk"), withIntermediateDirectories: true)
            try script.write(to: folder.appending(path: "script"), atomically: true, encoding: .utf8)
            let run = try shell(
                "export imprint\nunshare -Urm sh -c 'mount -t tmpfs -o size=\(size) none disk && cd . && sh -e script'",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            return (run, try String(contentsOf: folder.appending(path: "errors"), encoding: .utf8))
        }
    }

    private static let short =
        "train photos --input-size 16 --width 0.25 --batch-size 4 --checkpoint disk/run --checkpoint-interval 0"

    @Test(
        "A full disk is one error, keeps the last checkpoint, and the run can be resumed later",
        .enabled(if: mayMount))
    func fullDisk() throws {
        let (run, errors) = try runScript(
            onDiskOf: "2m",
            """
            $imprint \(Self.short) --epochs 2 --output m.imprint
            cp disk/run/checkpoint.safetensors before
            dd if=/dev/zero of=disk/rest bs=1k 2> /dev/null || true
            if $imprint \(Self.short) --epochs 4 --output m.imprint --resume 2> errors; then exit 3; fi
            cmp before disk/run/checkpoint.safetensors
            [ $(ls -A disk/run | wc -l) = 1 ]
            rm disk/rest
            $imprint \(Self.short) --epochs 4 --output m.imprint --resume --json
            """)
        #expect(run.lines.last?["epochs"] as? Int == 4)
        #expect(errors.components(separatedBy: "Error").count == 2, "\(errors)")
        #expect(errors.contains("disk/run/checkpoint.safetensors: cannot be written (No space left on device)"))
        #expect(errors.contains("Free some space on the disk. Training continues."))
        // The output is not on the full disk, so the model is written.
        #expect(errors.contains("Wrote m.imprint"))
    }

    @Test(
        "If the disk is full when the model is written, it is in the temporary folder, and --resume writes it later",
        .enabled(if: mayMount))
    func fullDiskAtTheEnd() throws {
        let options =
            "train photos --input-size 16 --width 0.25 --epochs 3 --checkpoint run --output disk/m.imprint"
        let (_, errors) = try runScript(
            onDiskOf: "1m",
            """
            mkdir tmp
            export TMPDIR="$PWD/tmp"
            $imprint \(options) --json > whole
            mv disk/m.imprint whole.imprint
            rm -r run
            touch lines
            $imprint \(options) --json --epochs 100000 > lines 2> errors &
            while [ $(wc -l < lines) -lt 2 ] && kill -0 $!; do :; done
            dd if=/dev/zero of=disk/rest bs=1k 2> /dev/null || true
            kill -INT $!
            wait $! && exit 3
            [ ! -e disk/m.imprint ]
            $imprint inspect tmp/imprint-*/m.imprint > saved
            rm disk/rest run/checkpoint.safetensors
            $imprint \(options)
            cmp disk/m.imprint whole.imprint
            rm disk/m.imprint
            $imprint \(options) --resume
            cmp disk/m.imprint whole.imprint
            """)
        #expect(errors.contains("disk/m.imprint: cannot be written (No space left on device)"), "\(errors)")
        #expect(errors.contains("/tmp/imprint-"), "\(errors)")
    }

    @Test(
        "A read-only disk is one error before training, for the output and for checkpoints",
        .enabled(if: mayMount))
    func readOnlyDisk() throws {
        let (_, text) = try runScript(
            onDiskOf: "2m",
            """
            $imprint \(Self.short) --epochs 2 --output m.imprint
            cp disk/run/checkpoint.safetensors before
            mount -o remount,ro disk
            if $imprint \(Self.short) --epochs 4 --output m.imprint --resume 2> errors; then exit 3; fi
            if $imprint train photos --output disk/m.imprint 2>> errors; then exit 4; fi
            cmp before disk/run/checkpoint.safetensors
            """)
        let errors = text.split(separator: "\n")
        #expect(errors.count == 2, "\(errors)")
        #expect(
            errors.first?.contains("disk/run/checkpoint.safetensors: cannot be written (Read-only file system)")
                == true)
        #expect(errors.last?.contains("disk/m.imprint: cannot be written (Read-only file system)") == true)
    }

    @Test(
        "A deleted photo is reported once; a moved folder is one error, and the run can be resumed later")
    func missingPhotos() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 24)
            let options =
                "train photos --input-size 16 --width 0.25 --batch-size 4 --checkpoint run --memory 0 --output m.imprint"
            let run = try shell(
                """
                touch lines
                $imprint \(options) --epochs 60 --json > lines 2> one &
                while [ $(wc -l < lines) -lt 2 ] && kill -0 $!; do :; done
                rm photos/dark/3.png
                wait $! || exit 2
                : > lines
                $imprint \(options) --epochs 100000 --resume --json > lines 2> all &
                while [ $(wc -l < lines) -lt 2 ] && kill -0 $!; do :; done
                mv photos away
                wait $! && exit 3
                mv away photos
                $imprint \(options) --epochs 62 --resume --json > last
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            func text(_ name: String) throws -> String {
                try String(contentsOf: folder.appending(path: name), encoding: .utf8)
            }
            let one = try text("one")
            #expect(one.components(separatedBy: "dark/3.png").count == 2, "\(one)")
            let all = try text("all")
            #expect(all.components(separatedBy: "Error").count == 2, "\(all)")
            let last = CommandOutput(status: 0, output: try text("last"), errors: "").lines.last
            #expect((last?["epochs"] as? Int).map { $0 >= 62 } == true)
        }
    }
}
