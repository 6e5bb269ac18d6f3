internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// Standard output for results, standard error for people.
enum Terminal {
    /// Whether a person watches standard error.
    static let isInteractive =
        isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"

    /// Makes a job independent of whoever reads what it prints.
    static func prepare() {
        // A closed pipe must not end a job that writes files. `emit` and `show` end the process themselves.
        signal(SIGPIPE, SIG_IGN)
        // Beyond the limit of the size of files, writing fails with an error that names the file.
        signal(SIGXFSZ, SIG_IGN)
        // A stream that is closed would lend its number to the next file that is opened, and print into it.
        for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(stream, F_GETFD) == -1 {
            _ = open("/dev/null", O_RDWR)
        }
    }

    /// How a text stands out.
    enum Style: String {
        case bold = "1"
        case dim = "2"
        case good = "32"
        case warning = "33"
    }

    /// Whether standard error shows styles: where a person watches and has not asked for plain text (no-color.org).
    private static let hasStyles: Bool = {
        let environment = ProcessInfo.processInfo.environment
        return isInteractive && environment["NO_COLOR", default: ""].isEmpty
    }()

    /// Prints a line that people should not miss.
    static func warn(_ line: String) { note((line, .warning)) }

    /// Prints a line for people; if they cannot be reached, the job goes on.
    static func note(_ line: String) { note((line, nil)) }

    /// Prints a line of parts that stand out, where standard error shows styles.
    static func note(_ parts: (text: String, style: Style?)...) {
        let line = parts.map { text, style in
            guard hasStyles, !text.isEmpty, let style else { return visible(text) }
            return "\u{1B}[\(style.rawValue)m\(visible(text))\u{1B}[0m"
        }.joined()
        draw(line + "\n")
    }

    /// Prints lines for people; what is not this tool's own stands `shown` in them.
    static func noteLines(_ text: String) { draw(visible(text, keepsLines: true) + "\n") }

    /// Writes to standard error as it is.
    static func draw(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }

    /// Prints a result for people on lines of its own to standard output; what is not this tool's own stands `shown` in them.
    ///
    /// If the reader has closed the pipe, the process ends quietly with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if it cannot be written.
    static func show(_ text: String) throws {
        if try !print(visible(text, keepsLines: true)) { endBySIGPIPE() }
    }

    /// Prints one JSON object on a line of its own to standard output.
    ///
    /// If the reader has closed the pipe, the process ends quietly with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if it cannot be written.
    static func emit(_ value: some Encodable) throws {
        if try !print(json(value)) { endBySIGPIPE() }
    }

    /// Prints one JSON object about a job whose result is a file; if the reader has closed the pipe, the job continues.
    /// - Throws: `FileError` if it cannot be written for another reason.
    static func report(_ value: some Encodable) throws { _ = try print(json(value)) }

    private static func json(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return visibleJSON(String(decoding: try encoder.encode(value), as: UTF8.self))
    }

    /// Writes a line to standard output.
    /// - Returns: `false` if the reader has closed the pipe.
    private static func print(_ line: String) throws -> Bool {
        var bytes = Array((line + "\n").utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EPIPE {
                return false
            } else if errno != EINTR {
                throw FileError.cannotWrite(
                    path: "standard output", reason: String(cString: strerror(errno)), remedy: "check where it leads")
            }
        }
        return true
    }

    /// Ends the process as writing to a closed pipe does by default.
    private static func endBySIGPIPE() -> Never {
        signal(SIGPIPE, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, SIGPIPE)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(SIGPIPE)
        _exit(128 + SIGPIPE)
    }

    /// The width of the terminal in columns.
    static var columns: Int {
        var size = winsize()
        return ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
    }

    /// "91.2 %" for 0.912.
    static func percent(_ share: some BinaryFloatingPoint) -> String { String(format: "%.1f %%", Double(share) * 100) }
}

/// A line at the bottom of the terminal that shows how far a job is; nothing where nobody watches.
struct ProgressBar {
    private let clock = ContinuousClock()
    private var drawn: ContinuousClock.Instant?

    /// Draws `label [====>   ] details` over what was drawn before, at most twelve times a second.
    ///
    /// Of the details, the last ones that leave no room for a bar of twenty columns are left out.
    mutating func draw(_ label: String, share: Double, _ details: String...) {
        guard Terminal.isInteractive else { return }
        let now = clock.now
        if let drawn, now - drawn < .milliseconds(80), share < 1 { return }
        drawn = now
        func room(_ details: String) -> Int { Terminal.columns - label.count - details.count - 6 }
        let prefixes = (1...details.count).map { details.prefix($0).joined(separator: "  ") }
        let details = prefixes.last { room($0) >= 20 } ?? prefixes[0]
        let room = max(room(details), 4)
        let done = Int(Double(room) * min(max(share, 0), 1))
        let bar = String(repeating: "=", count: done) + (done < room ? ">" : "")
        let line = "\(label) [\(bar.padding(toLength: room, withPad: " ", startingAt: 0))] \(details)"
        Terminal.draw("\r\u{1B}[2K\(line.prefix(max(Terminal.columns - 1, 1)))")
    }

    /// Draws how many of `total` are done.
    mutating func draw(_ label: String, done: Int, of total: Int) {
        draw(label, share: Double(done) / Double(total), "\(done)/\(total)")
    }

    /// Removes the line.
    mutating func clear() {
        guard drawn != nil else { return }
        drawn = nil
        Terminal.draw("\r\u{1B}[2K")
    }
}
