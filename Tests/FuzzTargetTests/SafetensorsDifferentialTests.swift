import Foundation
import TestSupport
import Testing

@Suite(
    "Comparison with the reference reader of safetensors files",
    .enabled(
        if: Python.has("safetensors", "numpy"), "IMPRINT_PYTHON names no Python with safetensors; ./run test sets it"))
struct SafetensorsDifferentialTests {
    /// The number of mutated files; `IMPRINT_MUTANTS` sets another one for longer runs.
    private static let count = ProcessInfo.processInfo.environment["IMPRINT_MUTANTS"].flatMap { Int($0) } ?? 5000
    private static let reader = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "SafetensorsReader")

    private func compare(_ reader: URL, mutants: Int) throws -> CommandOutput {
        let script = packageFolder.appending(path: "Fuzzing/differential/compare.py").path
        return try run(
            URL(filePath: try #require(Python.path)), [script, reader.path, "--mutants", "\(mutants)", "--seed", "2"])
    }

    @Test("Both readers agree on mutated files, apart from documented rules")
    func mutants() throws {
        let result = try compare(Self.reader, mutants: Self.count)
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.contains("0 differences in \(Self.count) mutants"))
        #expect(result.output.contains("accepted by both") && result.output.contains("rejected by both"))
    }

    @Test(
        "A reader that accepts or rejects other files fails the comparison",
        arguments: [#"+\t0"#, #"-\tduplicateKey\tits header contains the key "a" twice"#])
    func faultyReader(line: String) throws {
        try withTemporaryFolder { folder in
            let reader = folder.appending(path: "reader")
            try writeScript("while read -r path; do printf '%b\\n' '\(line)'; done", to: reader)
            let result = try compare(reader, mutants: 100)
            #expect(result.status == 1)
            #expect(result.errors.contains("mutant 2 "))
        }
    }
}
