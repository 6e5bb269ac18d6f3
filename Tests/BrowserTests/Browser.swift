import Foundation
import ImprintCore
import TestSupport
import Testing

/// A headless Chromium that reports the visible state of a page; `Fixtures/browser.py` controls it.
enum Browser {
    /// Whether Chromium and the Python that controls it are available.
    static let isAvailable = Python.path != nil && ProcessInfo.processInfo.environment["IMPRINT_CHROMIUM"] != nil

    /// The reason for skipping tests without a browser.
    static let skipReason: Comment = "IMPRINT_CHROMIUM or IMPRINT_PYTHON is not set; ./run test sets them"

    /// The display settings of a page.
    struct View: Sendable, CustomTestStringConvertible {
        var width = 1280
        var height = 800
        var isDark = false
        /// Whether the browser replaces the colours of the page, as for a high-contrast theme of the system.
        var forcesColors = false
        var isPrinted = false
        var runsScripts = true
        var acceptsCertificates = false
        /// The frames of the page's camera, as consecutive JPEGs; nil for no camera.
        var camera: URL?

        var testDescription: String {
            "\(width) pixels" + (isDark ? ", dark" : "") + (isPrinted ? ", printed" : "")
                + (runsScripts ? "" : ", no script")
        }

        fileprivate var arguments: [String] {
            let flags = [
                ("--dark", isDark), ("--forced-colors", forcesColors), ("--print", isPrinted),
                ("--no-script", !runsScripts), ("--accept-certificates", acceptsCertificates),
            ]
            return ["--width", "\(width)", "--height", "\(height)"] + flags.filter(\.1).map(\.0)
                + (camera.map { ["--camera", $0.path] } ?? [])
        }
    }

    /// An action of a user, as `Fixtures/browser.py` executes it.
    enum Step: Encodable, Sendable {
        /// Waits until an expression is true.
        case wait(_ condition: String)
        /// Records the value of an expression under a name.
        case note(_ name: String, _ expression: String)
        /// Presses the mouse on an element until a condition, if any, is true.
        case click(_ selector: String, until: String? = nil)
        /// Drags from one position to another in an element, in fractions of it, with the mouse or a finger.
        case drag(_ selector: String, from: [Double], to: [Double], isTouch: Bool = false)
        /// Presses a key until a condition, if any, is true.
        case key(_ key: String, until: String? = nil, shift: Bool = false, control: Bool = false)
        case type(_ text: String)
        /// Chooses a file in a file input, or a folder if the input takes folders.
        case choose(_ selector: String, URL)
        /// Chooses several files in a file input.
        case chooseAll(_ selector: String, [URL])
        /// Drops files and folders on an element.
        case drop(_ selector: String, [URL])
        /// Records the role and name of all elements that assistive technology sees.
        case accessibility(_ name: String)
        /// Creates an empty file, for which a program waits.
        case create(URL)
        /// Reloads the page; a script runs before the scripts of the page.
        case reload(first: String = "")
        /// Minimizes the window, which hides the page, or restores it.
        case minimize(Bool)
        /// Switches to another page of the browser, counted from 1; the next unused number opens a new page.
        ///
        /// The new page has the same address or, with a signal, the address that `answer(_:)` returns.
        case page(Int, signal: URL? = nil)

        private enum Key: String, CodingKey {
            case wait, note, value, click, until, key, shift, control, type, choose, paths, accessibility, reload,
                first, minimize, page, signal, drag, from, to, touch, drop, create
        }

        func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: Key.self)
            switch self {
            case .wait(let condition): try values.encode(condition, forKey: .wait)
            case .note(let name, let expression):
                try values.encode(name, forKey: .note)
                try values.encode(expression, forKey: .value)
            case .click(let selector, let condition):
                try values.encode(selector, forKey: .click)
                try values.encodeIfPresent(condition, forKey: .until)
            case .drag(let selector, let start, let end, let isTouch):
                try values.encode(selector, forKey: .drag)
                try values.encode(start, forKey: .from)
                try values.encode(end, forKey: .to)
                try values.encode(isTouch, forKey: .touch)
            case .key(let key, let condition, let shift, let control):
                try values.encode(key, forKey: .key)
                try values.encodeIfPresent(condition, forKey: .until)
                try values.encode(shift, forKey: .shift)
                try values.encode(control, forKey: .control)
            case .type(let text): try values.encode(text, forKey: .type)
            case .choose(let selector, let file):
                try values.encode(selector, forKey: .choose)
                try values.encode([file.path], forKey: .paths)
            case .chooseAll(let selector, let files):
                try values.encode(selector, forKey: .choose)
                try values.encode(files.map(\.path), forKey: .paths)
            case .drop(let selector, let files):
                try values.encode(selector, forKey: .drop)
                try values.encode(files.map(\.path), forKey: .paths)
            case .accessibility(let name): try values.encode(name, forKey: .accessibility)
            case .create(let file): try values.encode(file.path, forKey: .create)
            case .reload(let script):
                try values.encode(true, forKey: .reload)
                try values.encode(script, forKey: .first)
            case .page(let number, let signal):
                try values.encode(number, forKey: .page)
                try values.encodeIfPresent(signal?.path, forKey: .signal)
            case .minimize(let isMinimized): try values.encode(isMinimized, forKey: .minimize)
            }
        }
    }

    /// Waits until the steps reach a signal, and lets them continue with the address that `body` returns.
    /// - Throws: `CocoaError` if the steps do not reach it within five minutes, for example because the browser has failed.
    static func answer(_ signal: URL, _ body: () async throws -> URL) async throws {
        for _ in 0..<15_000 where !FileManager.default.fileExists(atPath: signal.path) {
            try await Task.sleep(for: .milliseconds(20))
        }
        guard FileManager.default.fileExists(atPath: signal.path) else { throw CocoaError(.fileReadNoSuchFile) }
        try Data(try await body().absoluteString.utf8).write(
            to: signal.appendingPathExtension("answer"), options: .atomic)
    }

    /// Texts with a contrast to their background below 4.5 : 1 (WCAG 2.2, 1.4.3), with their ratio.
    static let faint = """
        (() => {
          const channels = text => (text.match(/[\\d.]+/g) || []).map(Number);
          const light = color => color.slice(0, 3).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
            .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
          const behind = element => {
            if (!element) return [255, 255, 255];
            const [r, g, b, alpha = 1] = channels(getComputedStyle(element).backgroundColor);
            if (alpha === 1) return [r, g, b];
            const below = behind(element.parentElement);
            return below.map((c, i) => c * (1 - alpha) + [r, g, b][i] * alpha);
          };
          const found = [];
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          while (walker.nextNode()) {
            const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
            if (!text || element.closest("title, .hidden") || !element.checkVisibility()) continue;
            const style = getComputedStyle(element);
            const color = channels(element.closest("svg") ? style.fill : style.color);
            const pair = [light(color), light(behind(element))];
            const ratio = (Math.max(...pair) + .05) / (Math.min(...pair) + .05);
            if (ratio < 4.5) found.push(`${text}: ${ratio.toFixed(2)}`);
          }
          return found;
        })()
        """

    /// The result of a visit.
    struct Sight<Values: Decodable>: Decodable {
        /// The values of the expressions.
        let values: Values
        /// The errors and warnings of the page.
        let console: [String]
        /// The requested addresses.
        let requests: [String]
    }

    /// Opens a page and evaluates JavaScript expressions in it, named like the properties of `Values`.
    /// - Parameters:
    ///   - condition: An expression that must become true first.
    ///   - steps: The actions that follow; their recorded values are values too.
    static func look<Values: Decodable>(
        at url: URL, _ view: View = View(), waitingFor condition: String? = nil, steps: [Step] = [],
        timeout: Int = 300, for expressions: [String: String] = [:], as values: Values.Type = Values.self
    ) throws -> Sight<Values> {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "expressions.json")
            try JSONEncoder().encode(expressions).write(to: file)
            let stepFile = folder.appending(path: "steps.json")
            try JSONEncoder().encode(steps).write(to: stepFile)
            let output = try Python.output(
                of: "BrowserTests/Fixtures/browser.py",
                [url.absoluteString, "--file", file.path, "--steps", stepFile.path, "--timeout", "\(timeout)"]
                    + view.arguments
                    + (condition.map { ["--wait-until", $0] } ?? []))
            return try JSONDecoder().decode(Sight<Values>.self, from: output)
        }
    }

    /// Runs `look` on a thread outside the task pool, whose threads the server of the page needs.
    static func visit<Values: Decodable & Sendable>(
        _ url: URL, _ view: View, waitingFor condition: String? = nil, steps: [Step] = [], timeout: Int = 300,
        for expressions: [String: String] = [:]
    ) async throws -> Sight<Values> {
        try await onDedicatedThread {
            try look(at: url, view, waitingFor: condition, steps: steps, timeout: timeout, for: expressions)
        }
    }
}

extension Browser.Sight: Sendable where Values: Sendable {}
