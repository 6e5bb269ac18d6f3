import Foundation
import ImprintCore
import ImprintImages

/// What a run of the command line tool gave.
struct CommandOutput {
    let status: Int32
    let output: String
    let errors: String

    /// The JSON objects on standard output, one a line.
    var lines: [[String: Any]] {
        output.split(separator: "\n").compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
        }
    }
}

/// The tool that was built beside the tests.
let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "imprint")

/// Runs the tool.
func imprint(_ arguments: String..., folder: URL? = nil) throws -> CommandOutput {
    try run(tool, arguments, folder: folder)
}

/// Runs a shell script in which `$imprint` is the tool.
func shell(_ script: String, folder: URL) throws -> CommandOutput {
    try run(URL(filePath: "/bin/sh"), ["-c", "imprint='\(tool.path)'\n\(script)"], folder: folder)
}

func run(_ program: URL, _ arguments: [String], folder: URL? = nil) throws -> CommandOutput {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    if let folder { process.currentDirectoryURL = folder }
    // The width of help pages must not depend on the terminal.
    process.environment = ProcessInfo.processInfo.environment.merging(["COLUMNS": "80"]) { $1 }
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try withoutBlockedSignals { try process.run() }
    let errorReader = PipeReader(errors)
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return CommandOutput(status: process.terminationStatus, output: text, errors: errorReader.text())
}

/// A process inherits the signals that the thread which starts it has blocked: for tests that is any thread of a pool, with
/// most of them blocked, and a shell then waits for ever.
func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
}

/// Reads a pipe in the background, so that a process never waits for one pipe while the other is read.
private final class PipeReader: @unchecked Sendable {
    private var data = Data()
    private let group = DispatchGroup()

    init(_ pipe: Pipe) {
        DispatchQueue.global().async(group: group) { [self] in
            data = pipe.fileHandleForReading.readDataToEndOfFile()
        }
    }

    func text() -> String {
        group.wait()
        return String(decoding: data, as: UTF8.self)
    }
}

/// Noisy pictures, bright or dark.
func writePictures(to folder: URL, count: Int) throws {
    for index in 0..<count {
        let label = index % 2 == 0 ? "bright" : "dark"
        var stream = RandomStream(seed: 1, "pictures", index)
        var image = Image(width: 20, height: 24)
        for place in image.samples.indices {
            image.samples[place] = UInt8(stream.uniform(in: label == "dark" ? 0...150 : 105...255))
        }
        let file = folder.appending(path: "\(label)/\(index / 2).png")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try ImageFile.write(image, to: file)
    }
}
