import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

@Suite(.serialized) struct TutorialTests {
    private static let names = [
        "train-a-classifier", "find-a-logo", "personalize-in-an-app", "ship-a-model", "measure-a-layer",
    ]

    private static func page(_ name: String) throws -> TutorialPage {
        try TutorialPage(
            String(contentsOf: packageFolder.appending(path: "docs/tutorials/\(name).md"), encoding: .utf8))
    }

    @Test("The commands of a tutorial print what the page shows", arguments: names)
    func commands(name: String) throws {
        try withTemporaryFolder { folder in
            var reader = try TutorialReader(in: folder)
            for step in try Self.page(name).steps {
                switch step {
                case .file(let name, let text): try reader.save(name, text)
                case .commands(let commands, .nothing): try reader.skip(commands)
                case .commands(let commands, let check):
                    for command in commands {
                        // The packages are installed only for tests that need them.
                        if command.text.hasPrefix("python3 "), !Python.has("numpy", "onnxruntime", "PIL") { continue }
                        let result = try reader.run(command.text)
                        let description = Comment(
                            rawValue: "$ \(command.text)\n\(result.output)\(result.errors)\nThe page shows:\n"
                                + command.output.joined(separator: "\n"))
                        try #require(result.status == 0, description)
                        if case .status = check { continue }
                        #expect(
                            OutputComparison.matches(
                                command.output.trimmingEmptyLines, output: result.output.lines,
                                errors: result.errors.lines), description)
                    }
                }
            }
        }
    }

    @Test("All tutorials are tested, and few of their blocks are not")
    func coverage() throws {
        let folder = packageFolder.appending(path: "docs/tutorials")
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0 != "README.md" }
        #expect(files.sorted() == Self.names.map { "\($0).md" }.sorted())
        let counts = try Self.names.map { try Self.page($0).uncheckedCount }
        #expect(counts.allSatisfy { $0 <= 4 } && counts.reduce(0, +) <= 12, "\(counts)")
    }

    @Test("A page has files and commands with their output")
    func parsing() throws {
        let page = try TutorialPage(
            """
            Save it as `a.svg`:

            ```xml
            <svg/>
            ```

            <!-- not tested: needs the network -->
            ```console
            $ imprint a \\
                b
            $ imprint c
            one

            two
            ```
            """)
        #expect(
            page.steps == [
                .file(name: "a.svg", text: "<svg/>\n"),
                .commands(
                    [
                        .init(text: "imprint a \\\n    b"), .init(text: "imprint c", output: ["one", "", "two"]),
                    ], .nothing(reason: "needs the network")),
            ])
        #expect(page.uncheckedCount == 1)
        #expect(throws: TutorialPage.ParsingError.self) { try TutorialPage("Text.\n\n```swift\nimport A\n```\n") }
    }

    @Test(
        "Output may differ in numbers and in what an ellipsis stands for",
        arguments: [
            ("accuracy 98.7 % on 300 photos", "accuracy  91.0 % on 300 photos", true),
            ("accuracy 98.7 % on 300 photos", "accuracy 81.0 % on 300 photos", false),
            ("accuracy 98.7 % on 300 photos", "accuracy 98.7 % on 200 photos", false),
            ("accuracy 98.7 % on 300 photos", "precision 98.7 % on 300 photos", false),
            ("log loss 0.18", "log loss 0.25", true), ("log loss 0.18", "log loss 0.45", false),
            ("in 0.1 s", "in 27.5 s", true), ("in 0:02.", "in 1:45.", true), ("in 0:02.", "in 2.", false),
            ("conv3x3-64  432.5 GFLOP/s  50 MB", "conv3x3-64  32.5 GFLOP/s  98 MB", true),
            ("conv3x3-64  432.5 GFLOP/s", "conv3x3-128  432.5 GFLOP/s", false),
            ("{\"x\":0.72,\"file\":\"000001.jpg\"}", "{\"x\":0.71,\"file\":\"000001.jpg\"}", true),
            ("{\"x\":0.72,\"file\":\"000001.jpg\"}", "{\"x\":0.72,\"file\":\"000002.jpg\"}", false),
            ("digest …", "digest 5f0c", true), ("a … c", "a b b c", true), ("a … c", "a b", false),
        ])
    func lines(expected: String, found: String, isEqual: Bool) {
        #expect(OutputComparison.matches(expected, found) == isEqual)
    }

    @Test("An ellipsis on its own line stands for any lines, and both streams may be interleaved")
    func streams() {
        func matches(_ expected: [String]) -> Bool {
            OutputComparison.matches(expected, output: ["a", "b", "c"], errors: ["note", "end"])
        }
        #expect(matches(["note", "a", "b", "c", "end"]) && matches(["a", "note", "…", "end"]) && matches(["…"]))
        #expect(!matches(["a", "b", "c"]) && !matches(["a", "c", "…"]) && !matches(["note", "b", "…"]))
    }
}

/// Does what a tutorial tells its reader to do, in a folder beside a clone of Imprint.
private struct TutorialReader {
    private let root: URL
    private var folder: URL

    init(in root: URL) throws {
        self.root = root
        folder = root.appending(path: "work")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (link, target) in [("imprint", packageFolder), ("work/docs", packageFolder.appending(path: "docs"))] {
            try FileManager.default.createSymbolicLink(at: root.appending(path: link), withDestinationURL: target)
        }
        // `./run bench` without a build.
        let job = folder.appending(path: "run")
        try writeScript(#"exec imprint "$@""#, to: job)
    }

    /// Writes a file that the page shows.
    ///
    /// A program must be the one that the tests have compiled.
    func save(_ name: String, _ text: String) throws {
        let file = folder.appending(path: name)
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
        guard file.lastPathComponent == "main.swift" else { return }
        let program = try #require(
            Self.programs[file.deletingLastPathComponent().lastPathComponent], "\(name): is not compiled")
        let source = packageFolder.appending(path: "\(program.source)/main.swift")
        #expect(try String(contentsOf: source, encoding: .utf8) == text, "\(name) differs from \(source.path)")
    }

    /// Runs a command in a shell, in the folder to which earlier commands have changed.
    mutating func run(_ command: String) throws -> CommandOutput {
        let script = """
            PATH="$4:$PATH" IMPRINT_HOME="$5" && export PATH IMPRINT_HOME
            cd "$1" || exit
            eval "$2"
            status=$?
            pwd >"$3"
            exit "$status"
            """
        let position = root.appending(path: "position")
        let result = try TestSupport.run(
            URL(filePath: "/bin/sh"),
            [
                "-c", script, "sh", folder.path, command, position.path, Self.tools.path,
                root.appending(path: "home").path,
            ])
        folder = URL(filePath: try String(contentsOf: position, encoding: .utf8).lines.joined())
        return result
    }

    /// Provides the results of commands that are not run.
    func skip(_ commands: [TutorialPage.Command]) throws {
        for command in commands {
            if command.text.hasPrefix("swift build") { try linkPrograms() }
            if command.text.hasPrefix("imprint train-detector") {
                let label = try #require(command.text.firstMatch(of: /--artwork (\w+)=/)).1
                let file = try #require(command.text.firstMatch(of: /--output (\S+)/)).1
                try makeUntrainedDetector(of: "\(label)").write(to: folder.appending(path: "\(file)"))
            }
        }
    }

    /// Checks the manifest of the page's package, and links the programs that the tests have compiled to where a build would write them.
    private func linkPrograms() throws {
        let targets = try targets(ofPackage: folder)
        let builds = folder.appending(path: ".build/release")
        try FileManager.default.createDirectory(at: builds, withIntermediateDirectories: true)
        for target in targets {
            let name = try #require(target["name"] as? String)
            let program = try #require(Self.programs[name], "\(name): is not compiled")
            try FileManager.default.createSymbolicLink(
                at: builds.appending(path: name), withDestinationURL: program.location())
        }
    }

    /// The folder of the test bundle, which contains the executables of the package.
    private static let tools = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()

    /// The source folder and the executable of each program that pages show.
    private static let programs: [String: (source: String, location: @Sendable () throws -> URL)] = [
        "MyLabels": ("docs/examples/Sources/MyLabels", { try Examples.program("MyLabels") }),
        "Circles": ("Tests/TutorialApp", { tools.appending(path: "TutorialApp") }),
    ]
}

/// Creates a detector of one logo with random parameters.
private func makeUntrainedDetector(of label: String) throws -> ModelFile {
    let network = try Network.logoDetector(logos: 1)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: [label, "none"],
        preprocessing: Preprocessing(width: 96, height: 96, cropAndScale: .scaleFill),
        detector: DetectorHead(levels: [96], stride: 16, span: 44, logos: [.init(label: label)]))
}

extension String {
    /// The lines, without empty ones at the end.
    fileprivate var lines: [String] {
        split(separator: "\n", omittingEmptySubsequences: false).map(String.init).trimmingEmptyLines
    }
}

extension [String] {
    /// The lines without empty ones at the end.
    fileprivate var trimmingEmptyLines: [String] {
        Array(reversed().drop { $0.allSatisfy(\.isWhitespace) }.reversed())
    }
}
