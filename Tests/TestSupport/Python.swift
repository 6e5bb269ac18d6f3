public import Foundation

/// The Python that the environment variable `IMPRINT_PYTHON` names, for comparison with other programs.
public enum Python {
    /// Its path; nil where none is named.
    public static let path = ProcessInfo.processInfo.environment["IMPRINT_PYTHON"]

    /// Whether it is there and has these packages.
    public static func has(_ packages: String...) -> Bool {
        guard let path else { return false }
        let process = Process()
        process.executableURL = URL(filePath: path)
        let question = "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
        process.arguments = ["-c", question] + packages
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    /// What the script at `script` (relative to the folder Tests) prints, given `arguments`.
    public static func output(of script: String, _ arguments: [String]) throws -> Data {
        guard let path else { throw CocoaError(.executableNotLoadable) }
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: path)
        process.arguments = [packageFolder.appending(path: "Tests/\(script)").path] + arguments
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(script: script, arguments: arguments) }
        return data
    }

    /// A script that did not end well; what it had to say is on standard error.
    public struct Failure: Error {
        let script: String
        let arguments: [String]
    }
}
