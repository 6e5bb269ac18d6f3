import Foundation
import TestSupport
import Testing

/// A headless Chromium that says what a reader of a page sees; `Fixtures/browser.py` steers it.
enum Browser {
    /// Whether there is one, and the Python that steers it.
    static let isHere = Python.path != nil && ProcessInfo.processInfo.environment["IMPRINT_CHROMIUM"] != nil

    /// What a test without it says.
    static let advice: Comment = "IMPRINT_CHROMIUM or IMPRINT_PYTHON names no program; ./run test sets them"

    /// How a page is looked at.
    struct View: Sendable, CustomTestStringConvertible {
        var width = 1280
        var height = 800
        var isDark = false
        var isPrinted = false
        var runsScripts = true

        var testDescription: String {
            "\(width) pixels" + (isDark ? ", dark" : "") + (isPrinted ? ", printed" : "")
                + (runsScripts ? "" : ", no script")
        }

        fileprivate var arguments: [String] {
            ["--width", "\(width)", "--height", "\(height)"] + (isDark ? ["--dark"] : [])
                + (isPrinted ? ["--print"] : [])
                + (runsScripts ? [] : ["--no-script"])
        }
    }

    /// What was seen.
    struct Sight<Values: Decodable>: Decodable {
        /// The values of the expressions.
        let values: Values
        /// What the page complained of.
        let console: [String]
        /// The addresses that were asked for.
        let requests: [String]
    }

    /// Opens a page and evaluates JavaScript expressions in it, each under the name of the property that takes its value.
    /// - Parameter condition: An expression that is to become true first.
    static func look<Values: Decodable>(
        at url: URL, _ view: View = View(), waitingFor condition: String? = nil, timeout: Int = 120,
        for expressions: [String: String], as values: Values.Type = Values.self
    ) throws -> Sight<Values> {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "expressions.json")
            try JSONEncoder().encode(expressions).write(to: file)
            let output = try Python.output(
                of: "BrowserTests/Fixtures/browser.py",
                [url.absoluteString, "--file", file.path, "--timeout", "\(timeout)"] + view.arguments
                    + (condition.map { ["--wait-until", $0] } ?? []))
            return try JSONDecoder().decode(Sight<Values>.self, from: output)
        }
    }
}

extension Browser.Sight: Sendable where Values: Sendable {}
