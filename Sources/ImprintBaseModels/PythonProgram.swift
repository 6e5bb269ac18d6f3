internal import Foundation
internal import ImprintCore
internal import Synchronization

/// The user's Python, which runs pip and unpacks wheels.
struct PythonProgram: Sendable {
    let url: URL

    /// The result of a program: its exit status and standard error.
    struct Result: Sendable {
        let status: Int
        let errors: String

        /// The last line of standard error that is not empty.
        var lastLine: String {
            let lines = errors.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            return String((lines.last { !$0.isEmpty } ?? "no message").prefix(300))
        }
    }

    /// Finds the Python to use.
    /// - Parameter program: The program; nil for the one in `IMPRINT_PYTHON`, or else `python3` in `PATH`.
    /// - Throws: `BaseInstallationError.noPython` if it does not exist.
    init(_ program: URL?, environment: [String: String] = ProcessInfo.processInfo.environment) throws {
        let setting = environment["IMPRINT_PYTHON"].flatMap { $0.isEmpty ? nil : $0 }
        let name = program?.path ?? setting ?? "python3"
        let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        let candidates = name.contains("/") ? [name] : folders.map { $0 + "/" + name }
        guard let path = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0) }) else {
            throw BaseInstallationError.noPython(
                program: name, reason: name.contains("/") ? "no such program" : "it is not in PATH")
        }
        url = URL(filePath: path)
    }

    /// Runs Python in the environment of this process and waits until it ends; cancelling the task ends Python too.
    ///
    /// Python runs in isolated mode: it does not import modules from the current folder or from `PYTHONPATH`.
    /// - Parameter temporaryFolder: The folder of its temporary files.
    /// - Throws: `BaseInstallationError.noPython` if it cannot be started, `CancellationError`.
    func run(_ arguments: [String], temporaryFolder: URL) async throws -> Result {
        let state = Mutex((child: pid_t(0), isCancelled: false))
        let url = url
        let result = try await withTaskCancellationHandler {
            try await onDedicatedThread {
                let process = Process()
                process.executableURL = url
                process.arguments = ["-I", "-X", "utf8"] + arguments
                process.environment = ProcessInfo.processInfo.environment.merging(
                    ["TMPDIR": temporaryFolder.path]
                ) { $1 }
                let pipe = Pipe()
                process.standardInput = FileHandle.nullDevice
                process.standardOutput = FileHandle.nullDevice
                process.standardError = pipe
                // The child inherits the blocked signals of this thread, and must end on SIGINT and SIGTERM.
                var none = sigset_t()
                sigemptyset(&none)
                pthread_sigmask(SIG_SETMASK, &none, nil)
                try state.withLock { state in
                    guard !state.isCancelled else { return }
                    do {
                        try process.run()
                    } catch {
                        throw BaseInstallationError.noPython(program: url.path, reason: error.localizedDescription)
                    }
                    state.child = process.processIdentifier
                }
                guard state.withLock({ $0.child > 0 }) else { throw CancellationError() }
                let errors = pipe.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                state.withLock { $0.child = 0 }
                return Result(
                    status: Int(process.terminationStatus), errors: String(decoding: errors, as: UTF8.self))
            }
        } onCancel: {
            state.withLock { state in
                state.isCancelled = true
                if state.child > 0 { kill(state.child, SIGTERM) }
            }
        }
        try Task.checkCancellation()
        return result
    }
}
