import Foundation
import TestSupport
import Testing

/// The script `./run` at the top of the package.
@Suite struct RunScriptTests {
    /// Runs the script in a folder, with programs that pretend that all libraries are installed and that every build has this exit status.
    private func runScript(_ arguments: String, buildStatus: Int, in folder: URL) throws -> CommandOutput {
        let programs = folder.appending(path: "programs")
        try FileManager.default.createDirectory(at: programs, withIntermediateDirectories: true)
        for (name, script) in [
            ("swift", "exit \(buildStatus)"), ("dpkg-query", "echo install ok installed"), ("apt-cache", "exit 1"),
            ("brew", "exit 0"),
        ] {
            try writeScript(script, to: programs.appending(path: name))
        }
        return try shell(
            "unset IMPRINT_BUILD; PATH='\(programs.path)':\"$PATH\" '\(packageFolder.appending(path: "run").path)' \(arguments)",
            folder: folder
        )
    }

    @Test("A failed build is a failure of the job build", arguments: [0, 1]) func build(status: Int) throws {
        try withTemporaryFolder { folder in
            let run = try runScript("build", buildStatus: status, in: folder)
            #expect(Int(run.status) == status, "\(run.errors)")
            #expect(run.output == (status == 0 ? ".build/release/imprint\n" : ""))
        }
    }

    @Test("A relative PREFIX starts at the folder of the caller") func prefix() throws {
        try withTemporaryFolder { folder in
            let program = folder.appending(path: "local/bin/imprint")
            try FileManager.default.createDirectory(
                at: program.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data().write(to: program)
            let run = try runScript("uninstall local", buildStatus: 1, in: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: program.path))
        }
    }
}
