import Foundation
import TestSupport
import Testing

/// The Python that the environment variable `IMPRINT_PYTHON` names, for comparison with the formats' own packages.
enum Python {
    static let path = ProcessInfo.processInfo.environment["IMPRINT_PYTHON"]

    /// What the script of that name in Fixtures prints, given `arguments`.
    static func script(_ name: String, _ arguments: String...) throws -> Data {
        let script = packageFolder.appending(path: "Tests/ImprintFormatsTests/Fixtures/\(name)")
        return try run([script.path] + arguments)
    }

    struct Failure: Error { let arguments: [String] }

    private static func run(_ arguments: [String]) throws -> Data {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(filePath: try #require(path))
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(arguments: arguments) }
        return data
    }
}
