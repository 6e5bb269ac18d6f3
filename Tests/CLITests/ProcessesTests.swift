import Foundation
import TestSupport
import Testing

/// Training with several processes, which `mpirun` starts; IMPRINT_MPIRUN names it.
@Suite(
    "mpirun", .enabled(if: mpirun != nil, "IMPRINT_MPIRUN is not set: ./run test sets it if Open MPI is installed"),
    .timeLimit(.minutes(10)))
struct ProcessesTests {
    /// Runs a shell script in which `processes COUNT …` starts that many processes of `imprint`.
    private func run(_ script: String, in folder: URL) throws -> CommandOutput {
        let script = """
            export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
            processes() { '\(mpirun ?? "")' --oversubscribe -np "$1" '\(tool.path)' "${@:2}"; }
            \(script)
            """
        return try TestSupport.run(URL(filePath: "/bin/bash"), ["-c", script], folder: folder)
    }

    private static let training =
        "train photos --network logonet --width 0.125 --input-size 16 --batch-size 16 --seed 1 --threads 1"

    @Test("Any number of processes writes the same model file, also with checkpoints and a report")
    func equal() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 40)
            let output = try run(
                """
                set -e
                '\(tool.path)' \(Self.training) --epochs 3 --output 1.imprint --json >1.jsonl
                for count in 2 4; do
                    processes $count \(Self.training) --epochs 3 --output $count.imprint --json >$count.jsonl
                    cmp 1.imprint $count.imprint
                done
                processes 2 \(Self.training) --epochs 3 --output resumed.imprint --checkpoint run --report report.html
                processes 4 \(Self.training) --epochs 3 --output again.imprint --checkpoint run --resume
                cmp 1.imprint again.imprint
                """, in: folder)
            #expect(output.status == 0, "\(output.errors)")
            // Only the first process prints.
            let events = try (1...4).filter { $0 != 3 }.map {
                try String(contentsOf: folder.appending(path: "\($0).jsonl"), encoding: .utf8).split(separator: "\n")
                    .count
            }
            #expect(Set(events).count == 1 && events[0] > 3, "\(events)")
            #expect(FileManager.default.fileExists(atPath: folder.appending(path: "report.html").path))
        }
    }

    @Test(
        "Errors are printed once",
        arguments: [
            ("processes 3 \(training) --output m.imprint", "3 processes were started, expected 1, 2, 4 or 8"),
            ("processes 2 train missing --output m.imprint", "missing: it does not exist"),
            ("processes 2 \(training) --output m.imprint --folds 3", "--folds trains with a single process"),
            ("processes 2 \(training) --output m.imprint --epochs 0", "--epochs"),
            ("processes 2 bench layers", "only \"imprint bench train\""),
            // Only the first process creates the folder of checkpoints.
            (
                "touch file; processes 2 \(training) --output m.imprint --checkpoint file/run",
                "file/run: cannot be written (Not a directory)"
            ),
        ])
    func errors(script: String, message: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let output = try run(script, in: folder)
            #expect(output.status != 0)
            #expect(output.errors.components(separatedBy: message).count == 2, "\(output.errors)")
            #expect(output.errors.components(separatedBy: "Error:").count == 2, "\(output.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "m.imprint").path))
        }
    }

    @Test("If a process sends a message that is longer or shorter than expected, the job ends with an error")
    func otherProgram() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let output = try run(
                "processes 1 \(Self.training) --output m.imprint : -np 1 '\(tool.path)' bench train --case lenet-28",
                in: folder)
            #expect(output.status != 0)
            #expect(output.errors.contains("run the same program on the same files"), "\(output.errors)")
            // MPI has not ended the job by itself.
            #expect(!output.errors.contains("MPI_ERRORS_ARE_FATAL"), "\(output.errors)")
        }
    }

    /// Runs a training job, sends a signal to one of its processes after the first epoch, and waits for the end of the job.
    private func interrupted(_ signal: String, in folder: URL) throws -> CommandOutput {
        try writeImages(to: folder.appending(path: "photos"), count: 40)
        return try run(
            """
            processes 2 \(Self.training) --epochs 100000 --time-limit 600s --output "$PWD/m.imprint" --checkpoint run \\
                --checkpoint-interval 0 --json >events.jsonl &
            job=$!
            while ! grep -q epoch events.jsonl; do sleep 0.1; done
            kill -\(signal) "$(pgrep -f "^[^ ]*/imprint train .*$PWD/m.imprint" | tail -1)"
            start=$SECONDS
            wait $job
            status=$?
            echo "seconds $((SECONDS - start))"
            exit $status
            """, in: folder)
    }

    @Test("If a process dies, the job ends with an error and can be resumed") func killed() throws {
        try withTemporaryFolder { folder in
            let output = try interrupted("KILL", in: folder)
            #expect(output.status != 0)
            let resumed = try run(
                "'\(tool.path)' \(Self.training) --epochs 100000 --time-limit 10s --output m.imprint --checkpoint run --resume",
                in: folder)
            #expect(resumed.status == 0, "\(resumed.errors)")
        }
    }

    @Test("If a process stalls, the job ends with an error that names it") func stalled() throws {
        try withTemporaryFolder { folder in
            let output = try interrupted("STOP", in: folder)
            #expect(output.status != 0)
            #expect(output.errors.contains("has not answered process"), "\(output.errors)")
            let seconds = try #require(Int(output.output.split(separator: " ").last?.dropLast() ?? ""))
            #expect(seconds >= 10)
        }
    }
}

/// The path of `mpirun`; nil without one.
private let mpirun = ProcessInfo.processInfo.environment["IMPRINT_MPIRUN"]
