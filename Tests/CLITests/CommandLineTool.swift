import Foundation

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

/// Runs the tool that was built beside the tests.
func imprint(_ arguments: String..., folder: URL? = nil) throws -> CommandOutput {
    let process = Process()
    process.executableURL = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
        .appending(path: "imprint")
    process.arguments = arguments
    if let folder { process.currentDirectoryURL = folder }
    // The width of help pages must not depend on the terminal.
    process.environment = ProcessInfo.processInfo.environment.merging(["COLUMNS": "80"]) { $1 }
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let errorReader = PipeReader(errors)
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return CommandOutput(status: process.terminationStatus, output: text, errors: errorReader.text())
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
