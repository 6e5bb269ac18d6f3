internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// Output to standard output (results) and to standard error (messages).
enum Terminal {
    /// Whether standard error is a terminal that supports escape sequences.
    static let isInteractive =
        isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"

    /// Sets up signals and standard streams so that a job does not depend on the readers of its output.
    static func prepare() {
        // A closed pipe must not end a job that writes files. `emit` and `show` end the process themselves.
        signal(SIGPIPE, SIG_IGN)
        // If a file exceeds the size limit, writing fails with an error that names the file.
        signal(SIGXFSZ, SIG_IGN)
        // The next opened file would reuse the descriptor of a closed stream, and messages would be written into that file. Standard input and
        // output are opened for the opposite direction: using them still fails with EBADF, so no photos or results are lost without an error.
        for (stream, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_WRONLY)] {
            if fcntl(stream, F_GETFD) == -1 { _ = open("/dev/null", mode) }
        }
    }

    /// The messages that a command prints to standard error: --quiet, the default, and --verbose.
    enum Verbosity: Comparable {
        /// Only warnings, errors and questions.
        case quiet
        case normal
        /// Also details such as the kernels, the learning rate of each epoch, and the peak memory.
        case verbose
    }

    /// The parser sets it before the command runs; afterwards it does not change.
    nonisolated(unsafe) static var verbosity = Verbosity.normal

    /// A text style (ANSI SGR code).
    enum Style: String {
        case bold = "1"
        case dim = "2"
        case good = "32"
        case warning = "33"
    }

    /// Whether standard error shows styles: it is interactive, and `NO_COLOR` is not set (no-color.org).
    private static let hasStyles: Bool = {
        let environment = ProcessInfo.processInfo.environment
        return isInteractive && environment["NO_COLOR", default: ""].isEmpty
    }()

    /// Prints a warning to standard error.
    static func warn(_ line: String) { draw(line: [(line, .warning)]) }

    /// Prints an error to standard error.
    static func fail(_ line: String) { draw(line: [(line, nil)]) }

    /// Prints the lines of an error to standard error; untrusted text in them must be `shown`.
    static func failLines(_ text: String) { draw(visible(text, keepsLines: true) + "\n") }

    /// Prints a result or the text of a question to standard error, even with --quiet.
    static func always(_ line: String) { draw(line: [(line, nil)]) }

    /// Prints a line to standard error, except with --quiet; the job continues if that fails.
    static func note(_ line: String) { note((line, nil)) }

    /// Prints a line of styled parts to standard error, except with --quiet.
    static func note(_ parts: (text: String, style: Style?)...) {
        if verbosity > .quiet { draw(line: parts) }
    }

    /// Prints lines to standard error, except with --quiet; untrusted text in them must be `shown`.
    static func noteLines(_ text: String) {
        if verbosity > .quiet { draw(visible(text, keepsLines: true) + "\n") }
    }

    /// Prints a line to standard error, only with --verbose.
    static func detail(_ line: @autoclosure () -> String) {
        if verbosity == .verbose { draw(line: [(line(), .dim)]) }
    }

    private static func draw(line parts: [(text: String, style: Style?)]) {
        let line = parts.map { text, style in
            guard hasStyles, !text.isEmpty, let style else { return visible(text) }
            return "\u{1B}[\(style.rawValue)m\(visible(text))\u{1B}[0m"
        }.joined()
        draw(line + "\n")
    }

    /// Writes a text to standard error without escaping.
    static func draw(_ text: String) { try? FileHandle.standardError.write(contentsOf: Data(text.utf8)) }

    /// Prints a result as text to standard output; untrusted text in it must be `shown`.
    ///
    /// If the reader has closed the pipe, the process ends with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if writing fails.
    static func show(_ text: String) throws {
        if try !print(visible(text, keepsLines: true)) { endBySIGPIPE() }
    }

    /// Prints lines of a machine-readable format to standard output, escaped only if it is a terminal.
    ///
    /// If the reader has closed the pipe, the process ends with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if writing fails.
    static func put(_ lines: String) throws {
        let isTerminal = isatty(STDOUT_FILENO) == 1
        if try !print(isTerminal ? visible(lines, keepsLines: true) : lines) { endBySIGPIPE() }
    }

    /// Prints a text of the program, such as help, to standard output without escaping.
    ///
    /// If the reader has closed the pipe, the process ends with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if writing fails.
    static func help(_ text: String) throws {
        if try !print(text) { endBySIGPIPE() }
    }

    /// Prints one JSON object as a line to standard output.
    ///
    /// If the reader has closed the pipe, the process ends with SIGPIPE, as other command-line tools do.
    /// - Throws: `FileError` if writing fails.
    static func emit(_ value: some Encodable) throws {
        if try !print(json(value)) { endBySIGPIPE() }
    }

    /// Prints one JSON object of a job that writes a file; the job continues if the reader has closed the pipe.
    /// - Throws: `FileError` if writing fails for another reason.
    static func report(_ value: some Encodable) throws { _ = try print(json(value)) }

    /// Prints a result as text of a job that writes files; the job continues if the reader has closed the pipe.
    /// - Throws: `FileError` if writing fails for another reason.
    static func reportText(_ text: String) throws { _ = try print(visible(text, keepsLines: true)) }

    private static func json(_ value: some Encodable) throws -> String {
        // As in model files, values that JSON cannot represent are strings.
        visibleJSON(try ImprintModel.json(value))
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
            } else if errno == EAGAIN {
                // The parent process has made the pipe non-blocking, and the reader is slower.
                var output = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
                poll(&output, 1, -1)
            } else if errno != EINTR {
                throw FileError.cannotWrite(
                    path: "standard output",
                    reason: errno == EBADF ? "it is not open for writing" : errorText(errno),
                    remedy: "Check where it leads.")
            }
        }
        return true
    }

    /// Ends the process with SIGPIPE, the default effect of writing to a closed pipe.
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

    /// Formats a fraction as a percentage: "91.2 %" for 0.912.
    static func percent(_ fraction: some BinaryFloatingPoint) -> String {
        String(format: "%.1f %%", Double(fraction) * 100)
    }
}

/// A progress bar in the last line of an interactive terminal.
struct ProgressBar {
    private let clock = ContinuousClock()
    private var drawn: ContinuousClock.Instant?

    /// Draws `label [====>   ] details` over the previous line, at most twelve times a second.
    ///
    /// Trailing details are omitted if they leave no room for a bar of twenty columns.
    mutating func draw(_ label: String, fraction: Double, _ details: String...) {
        guard Terminal.isInteractive, Terminal.verbosity > .quiet else { return }
        let now = clock.now
        if let drawn, now - drawn < .milliseconds(80), !(fraction >= 1) { return }
        drawn = now
        func room(_ details: String) -> Int { Terminal.columns - label.count - details.count - 6 }
        let prefixes = (1...details.count).map { details.prefix($0).joined(separator: "  ") }
        let details = prefixes.last { room($0) >= 20 } ?? prefixes[0]
        let room = max(room(details), 4)
        let done = Self.doneCount(fraction, of: room)
        let bar = String(repeating: "=", count: done) + (done < room ? ">" : "")
        let line = "\(label) [\(bar.padding(toLength: room, withPad: " ", startingAt: 0))] \(details)"
        Terminal.draw("\r\u{1B}[2K\(line.prefix(max(Terminal.columns - 1, 1)))")
    }

    /// Returns how many columns of a bar are done; 0 for NaN, the fraction of 0 out of 0 items.
    static func doneCount(_ fraction: Double, of columns: Int) -> Int {
        // NaN is not greater than 0.
        fraction > 0 ? Int(Double(columns) * min(fraction, 1)) : 0
    }

    /// Draws a text instead of a bar, for work of unknown length.
    mutating func draw(_ text: String) {
        guard Terminal.isInteractive, Terminal.verbosity > .quiet else { return }
        let now = clock.now
        if let drawn, now - drawn < .milliseconds(80) { return }
        drawn = now
        Terminal.draw("\r\u{1B}[2K\(text.prefix(max(Terminal.columns - 1, 1)))")
    }

    /// Draws the progress of `done` out of `total` items.
    mutating func draw(_ label: String, done: Int, of total: Int) {
        draw(label, fraction: Double(done) / Double(total), "\(done)/\(total)")
    }

    /// Removes the bar.
    mutating func clear() {
        guard drawn != nil else { return }
        drawn = nil
        Terminal.draw("\r\u{1B}[2K")
    }
}
