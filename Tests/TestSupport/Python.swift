public import Foundation

/// The Python interpreter in the environment variable `IMPRINT_PYTHON`, which runs reference implementations.
public enum Python {
    /// The path of the interpreter; nil if the variable is not set.
    public static let path = ProcessInfo.processInfo.environment["IMPRINT_PYTHON"]

    /// Whether the interpreter exists and has these packages.
    public static func has(_ packages: String...) -> Bool {
        guard let path else { return false }
        let process = Process()
        process.executableURL = URL(filePath: path)
        let program = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
        process.arguments = ["-c", program] + packages
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    /// Runs the script at `script` (relative to the folder Tests) and returns its standard output.
    public static func output(of script: String, _ arguments: [String]) throws -> Data {
        guard let path else { throw CocoaError(.executableNotLoadable) }
        let process = Process()
        let output = Pipe()
        let errors = FileManager.default.temporaryDirectory.appending(path: "imprint-test-\(UUID().uuidString).txt")
        try Data().write(to: errors)
        defer { try? FileManager.default.removeItem(at: errors) }
        process.executableURL = URL(filePath: path)
        process.arguments = [packageFolder.appending(path: "Tests/\(script)").path] + arguments
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: errors)
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            let messages = String(decoding: try Data(contentsOf: errors), as: UTF8.self)
            throw Failure(messages: messages, script: script, arguments: arguments)
        }
        return data
    }

    /// The error if a script fails, with what it wrote to standard error.
    public struct Failure: Error {
        public let messages: String
        let script: String
        let arguments: [String]
    }
}
