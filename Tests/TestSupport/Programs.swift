public import Foundation

/// What a run of a program gave.
public struct CommandOutput {
    public let status: Int32
    public let output: String
    public let errors: String

    public init(status: Int32, output: String, errors: String) {
        (self.status, self.output, self.errors) = (status, output, errors)
    }

    /// The JSON objects on standard output, one a line.
    public var lines: [[String: Any]] {
        output.split(separator: "\n").compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
        }
    }
}

/// Runs a program and waits for its end.
public func run(_ program: URL, _ arguments: [String], folder: URL? = nil) throws -> CommandOutput {
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
public func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
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
