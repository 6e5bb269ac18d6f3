import Foundation
import ImprintModel
import TestSupport
import Testing

/// The command `imprint serve`.
@Suite("imprint serve") struct ServeCommandTests {
    /// The executable `imprint`, which SwiftPM builds into the folder of the test bundle.
    private static let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "imprint")

    private struct Line: Decodable {
        let url: URL
        let model: String
        let token: String?
    }

    /// Starts `imprint serve --json` for the brightness model, and calls `body` with the process and its first line of output.
    private func withTool(_ arguments: [String], _ body: (Process, Line) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            try Data("0123456789abcdef\n".utf8).write(to: folder.appending(path: "token.txt"))
            let program = try RunningProgram(
                Self.tool, ["serve", "light.imprint", "--port", "0", "--json", "--threads", "1"] + arguments,
                folder: folder)
            defer { program.stop() }
            try body(program.process, JSONDecoder().decode(Line.self, from: program.firstLine))
        }
    }

    @Test("A signal ends the server with status 0", arguments: [SIGTERM, SIGINT]) func signals(number: Int32) throws {
        try withTool([]) { process, line in
            #expect(line.model == "light" && line.token == nil && line.url.host() == "127.0.0.1")
            let port = try #require(line.url.port)
            let answer = try TestClient(port: port).request("GET", "/v2/models/light", ["Host": "localhost:\(port)"])
            #expect(answer.status == 200)
            kill(process.processIdentifier, number)
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
        }
    }

    @Test("An installed model has its name in paths, also with a dot") func installedName() throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            let script = """
                export IMPRINT_HOME="$PWD/home"
                "$0" models install light.imprint --name my.net > /dev/null && exec "$0" serve my.net --port 0 --json --threads 1
                """
            let program = try RunningProgram(
                URL(filePath: "/bin/sh"), ["-c", script, Self.tool.path], folder: folder)
            defer { program.stop() }
            let line = try JSONDecoder().decode(Line.self, from: program.firstLine)
            #expect(line.model == "my.net")
            let port = try #require(line.url.port)
            let answer = try TestClient(port: port).request("GET", "/v2/models/my.net", ["Host": "localhost:\(port)"])
            #expect(answer.status == 200)
        }
    }

    @Test("The host localhost is the loopback address, without a token") func localhost() throws {
        try withTool(["--host", "localhost"]) { _, line in
            #expect(line.token == nil && line.url.host() == "127.0.0.1")
        }
    }

    @Test(
        "For other machines, the server prints a new token, or reads it from a file",
        arguments: [[], ["--token-file", "token.txt"]])
    func tokens(options: [String]) throws {
        try withTool(["--host", "0.0.0.0", "--name", "a b"] + options) { _, line in
            let token = line.token ?? "0123456789abcdef"
            #expect((line.token == nil) == !options.isEmpty && token.count >= 16)
            let port = try #require(line.url.port)
            func status(_ token: String) throws -> Int {
                try TestClient(port: port).request(
                    "GET", "/v2/models/a%20b", ["Host": "any", "Authorization": "Bearer \(token)"]
                ).status
            }
            #expect(try status(token) == 200)
            #expect(try status("\(token)0") == 401)
        }
    }

    /// Runs the tool with a limit of open files, which `option` makes a hard or soft one.
    private func withFileLimit(_ option: String) -> (program: URL, arguments: [String]) {
        (URL(filePath: "/bin/sh"), ["-c", "ulimit \(option) 200 && exec \"$0\" \"$@\"", Self.tool.path])
    }

    @Test("The server raises the soft limit of open files to 64 more than its connections") func softLimit() throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            let (shell, start) = withFileLimit("-Sn")
            let program = try RunningProgram(
                shell, start + ["serve", "light.imprint", "--port", "0", "--json", "--threads", "1"], folder: folder)
            defer { program.stop() }
            let limits = try String(
                contentsOfFile: "/proc/\(program.process.processIdentifier)/limits", encoding: .utf8)
            let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            #expect(line.split(separator: " ").dropFirst(3).first == "320", "\(line)")
        }
    }

    @Test("More connections than the process may open files are an error", .timeLimit(.minutes(10)))
    func hardLimit() throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            let (shell, start) = withFileLimit("-n")
            let run = try run(shell, start + ["serve", "light.imprint", "--port", "0", "--json"], folder: folder)
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(
                run.errors
                    == "Error: The server cannot have 256 connections: they need 320 open files, and this process may open at most 200. "
                    + "Choose fewer connections, or raise the limit of open files (ulimit -n).\n"
                    + "  --max-connections sets the number of connections.\n", "\(run.errors)")
        }
    }

    @Test("A precision that the model does not have is an error before the server listens", .timeLimit(.minutes(10)))
    func precision() throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            let run = try run(
                Self.tool, ["serve", "light.imprint", "--port", "0", "--precision", "int8", "--json"], folder: folder)
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(
                run.errors
                    == "Error: light.imprint: precision is int8 for a model without quantization, expected float32 or bfloat16.\n"
                    + "  imprint quantize writes a model that computes in int8.\n")
        }
    }

    @Test(
        "Invalid options are usage errors",
        arguments: [
            (["--host", "example.org"], "--host: example.org is not an IP address. Expected localhost or an address"),
            (["--port", "65536"], "--port is 65536, expected 0 to 65535"),
            (["--max-batch", "0"], "--max-batch is 0, expected 1 to 1024"),
            (["--max-delay", "-1"], "--max-delay is -1, expected 0 to 10000"),
            (["--name", "a/b"], "expected a name without /"),
        ])
    func invalid(options: [String], message: String) throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            let run = try run(Self.tool, ["serve", "light.imprint", "--port", "0"] + options, folder: folder)
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test(
        "A token file that is too short or endless is a failure", .timeLimit(.minutes(10)),
        arguments: [
            ("short.txt", "short.txt does not have a token, expected at least 16 printable ASCII characters"),
            ("/dev/zero", "/dev/zero: cannot be read (it is a device, expected a regular file)"),
        ])
    func tokenFiles(file: String, message: String) throws {
        try withTemporaryFolder { folder in
            try brightnessModel().write(to: folder.appending(path: "light.imprint"))
            try Data("secret".utf8).write(to: folder.appending(path: "short.txt"))
            let options = ["light.imprint", "--port", "0", "--token-file", file]
            let run = try run(Self.tool, ["serve"] + options, folder: folder)
            #expect(run.status == 1 && run.errors.contains(message), "\(run.errors)")
        }
    }
}
