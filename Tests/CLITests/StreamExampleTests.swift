import Foundation
import TestSupport
import Testing

/// The scripts in docs/examples/streams, which run `imprint classify` in batch engines.
@Suite struct StreamExampleTests {
    private static let scripts = packageFolder.appending(path: "docs/examples/streams").path
    private static let paths = ["a.png", "b.png", "missing.png", "dir/c d.png", "a.png", "text.png", "b.png"]

    /// Writes a model, photos and paths.txt to a temporary folder.
    private func withStream(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeBrightnessModel(photos: ["a.png": 20, "b.png": 240, "dir/c d.png": 130], to: folder)
            try Data("text".utf8).write(to: folder.appending(path: "text.png"))
            try Data((Self.paths.joined(separator: "\n") + "\n").utf8).write(to: folder.appending(path: "paths.txt"))
            try body(folder)
        }
    }

    /// Runs a shell script in which `imprint` is on the PATH, `$scripts` is the folder of the examples and `$python` is `IMPRINT_PYTHON`.
    private func run(_ script: String, in folder: URL) throws -> CommandOutput {
        let variables = """
            export PATH='\(tool.deletingLastPathComponent().path)':"$PATH" PYSPARK_PYTHON='\(Python.path ?? "")' RAY_DEDUP_LOGS=0
            export SPARK_LOCAL_IP=127.0.0.1 RAY_USAGE_STATS_ENABLED=0
            # Two partitions, so that each has a photo that can be read.
            export PYSPARK_SUBMIT_ARGS='--master local[2] pyspark-shell'
            scripts='\(Self.scripts)' python="$PYSPARK_PYTHON"

            """
        return try shell(variables + script, folder: folder)
    }

    /// Checks that a script succeeds and prints the lines of a single process.
    private func check(_ script: String) throws {
        try withStream { folder in
            let expected = try imprint("classify", "m.imprint", "--files-from", "paths.txt", "--json", folder: folder)
            #expect(expected.lines.count == Self.paths.count)
            let found = try run(script, in: folder)
            #expect(found.status == 0, "\(found.errors)")
            #expect(found.output == expected.output, "\(found.errors)")
        }
    }

    @Test(
        "GNU parallel prints the same lines as one process",
        .enabled(if: isInstalled("parallel"), "GNU parallel is not installed"))
    func parallel() throws {
        try check("PATHS_PER_PROCESS=2 \"$scripts/parallel.sh\" paths.txt imprint classify m.imprint")
    }

    @Test("A SLURM array writes the same lines as one process, and skips the complete shards of an earlier run")
    func slurm() throws {
        let submit = """
            export SLURM_ARRAY_TASK_COUNT=2 SLURM_CPUS_PER_TASK=2
            submit() {
                for SLURM_ARRAY_TASK_ID in 1 2; do
                    export SLURM_ARRAY_TASK_ID
                    bash "$scripts/slurm.sh" paths.txt results imprint classify "$@"
                done
            }

            """
        try check(submit + "submit m.imprint && paste -d '\\n' results/1-of-2.jsonl results/2-of-2.jsonl | sed '/^$/d'")
        try withStream { folder in
            let failed = try run(submit + "submit missing.imprint || ls results", in: folder)
            #expect(failed.output == "1-of-2.jsonl.partial\n2-of-2.jsonl.partial\n", "\(failed.errors)")
            let repeated = try run(
                submit
                    + "echo kept > results/1-of-2.jsonl; submit m.imprint && cat results/1-of-2.jsonl && wc -l < results/2-of-2.jsonl",
                in: folder)
            #expect(repeated.output.split(separator: "\n") == ["kept", "3"], "\(repeated.errors)")
            #expect(repeated.errors.contains("results/1-of-2.jsonl is complete."))
        }
    }

    @Test(
        "PySpark writes the same lines as one process, and fails if the command fails",
        .enabled(if: Python.has("pyspark"), "IMPRINT_PYTHON is not set, or has no pyspark; install it with pip"))
    func spark() throws {
        let submit = "\"$python\" \"$scripts/spark_lines.py\" paths.txt results imprint classify --threads 1"
        try check("\(submit) m.imprint && cat results/part-*")
        try withStream { folder in
            let failed = try run("\(submit) missing.imprint", in: folder)
            #expect(failed.status != 0)
        }
    }

    @Test(
        "Ray Data writes the same lines as one process, and fails if the command fails",
        .enabled(
            if: Python.has("ray", "pandas", "pyarrow"),
            "IMPRINT_PYTHON is not set, or has no Ray Data; install ray[data] with pip"))
    func ray() throws {
        let submit = "\"$python\" \"$scripts/ray_lines.py\" paths.txt results.jsonl 2 imprint classify --threads 1"
        try check("\(submit) m.imprint && cat results.jsonl")
        try withStream { folder in
            let failed = try run("\(submit) missing.imprint", in: folder)
            #expect(failed.status != 0)
        }
    }
}

/// Whether a program is on the PATH.
private func isInstalled(_ program: String) -> Bool {
    (try? run(URL(filePath: "/bin/sh"), ["-c", "command -v \(program)"]).status) == 0
}
