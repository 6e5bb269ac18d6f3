public import Foundation

/// The exit status and the output of a program.
public struct CommandOutput {
    public let status: Int32
    public let output: String
    public let errors: String

    public init(status: Int32, output: String, errors: String) {
        (self.status, self.output, self.errors) = (status, output, errors)
    }

    /// The JSON objects on standard output, one per line.
    public var lines: [[String: Any]] {
        output.split(separator: "\n").compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
        }
    }
}

/// Runs a program and waits until it exits.
public func run(_ program: URL, _ arguments: [String], folder: URL? = nil) throws -> CommandOutput {
    let process = Process()
    process.executableURL = program
    process.arguments = arguments
    if let folder { process.currentDirectoryURL = folder }
    // The line width of the help must not depend on the terminal.
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

/// A program that runs until `stop`, and the first line of its output.
public final class RunningProgram {
    public let process: Process
    public let firstLine: Data
    /// Stays open, so that the program can print further lines.
    private let output: Pipe

    /// Starts a program, and waits for its first line.
    public init(_ program: URL, _ arguments: [String], folder: URL? = nil) throws {
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = arguments
        if let folder { process.currentDirectoryURL = folder }
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try withoutBlockedSignals { try process.run() }
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
            line.append(byte)
        }
        (self.process, self.output, firstLine) = (process, output, line)
    }

    /// Ends the process if it is running.
    public func stop() {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }
}

/// Writes a shell script that can be run.
///
/// Another process writes the file. If this one did, a process that another test starts at the same time would inherit the open file, and
/// Linux does not run a file that is open for writing.
public func writeScript(_ text: String, to file: URL) throws {
    let program = #"printf '%s\n' '#!/bin/sh' "$2" > "$1" && chmod 755 "$1""#
    let result = try run(URL(filePath: "/bin/sh"), ["-c", program, "sh", file.path, text])
    guard result.status == 0 else { throw CocoaError(.fileWriteUnknown, userInfo: [NSFilePathErrorKey: file.path]) }
}

/// Runs `body`, which starts a process, with all signals unblocked.
///
/// A process inherits the blocked signals of the thread that starts it. Tests run on threads of a pool that block most signals,
/// with which a shell would wait forever.
public func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    var before = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
}

/// Reads a pipe in the background, so that the process does not block on a full pipe while the caller reads another one.
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
