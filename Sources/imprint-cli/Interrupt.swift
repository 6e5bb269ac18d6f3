internal import ArgumentParser
internal import Foundation
internal import Synchronization

/// Handles signals that end the process, such as Ctrl-C, so that the job can save its results first.
///
/// A signal more than a second after the first one ends the process at once. An earlier one counts as the same interruption: `timeout` and
/// other wrappers send a signal both to the process and to its group.
struct Interrupt: Sendable {
    /// The time of the first signal, in nanoseconds of the monotonic clock; 0 before it.
    private static let firstSignal = Atomic(0)
    /// Whether the first signal prints a note to standard error.
    private static let showsNote = Atomic(false)
    private static let isTerminal = Atomic(false)
    private static let saves = Atomic(true)
    private let signals: [Int32]
    private let saves: Bool

    /// The exit code of an interrupted job that has saved its results: 128 + SIGINT, as shells report it.
    static let exitCode = ExitCode(128 + SIGINT)

    /// Creates a handler of signals; it does not handle SIGHUP if that is ignored.
    /// - Parameter saves: Whether the job saves or prints results after the first signal.
    init(_ signals: [Int32] = [SIGINT, SIGTERM], saves: Bool = true) {
        // A job under nohup continues after its terminal closes.
        self.signals = signals.filter { $0 != SIGHUP || !Self.isIgnored($0) }
        self.saves = saves
    }

    /// Starts handling the signals.
    func begin() {
        Self.firstSignal.store(0, ordering: .relaxed)
        Self.showsNote.store(Terminal.verbosity > .quiet, ordering: .relaxed)
        Self.isTerminal.store(isatty(STDERR_FILENO) != 0, ordering: .relaxed)
        Self.saves.store(saves, ordering: .relaxed)
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        for number in signals {
            signal(number) { _ in Interrupt.handleSignal() }
            sigaddset(&unblocked, number)
        }
        // The parent process may have blocked them.
        pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Records the first signal, or ends the process; it is async-signal-safe, as a signal handler must be.
    private static func handleSignal() {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        let second = 1_000_000_000
        let now = Int(time.tv_sec) * second + Int(time.tv_nsec)
        let (isFirst, first) = firstSignal.compareExchange(expected: 0, desired: now, ordering: .relaxed)
        if isFirst {
            if showsNote.load(ordering: .relaxed) { writeNote() }
        } else if now - first > second {
            _exit(1)
        }
    }

    /// Writes the note; it is async-signal-safe, and does not change `errno`.
    ///
    /// It leaves out the note if standard error is a full pipe: the handler would wait for the reader, and the process could not save.
    private static func writeNote() {
        let code = errno
        defer { errno = code }
        var output = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
        guard poll(&output, 1, 0) == 1 else { return }
        // In a terminal, the note starts below the echo of Ctrl-C or the progress bar.
        let text: StaticString =
            switch (isTerminal.load(ordering: .relaxed), saves.load(ordering: .relaxed)) {
            case (true, true): "\nStopping. Press Ctrl-C again to end immediately, without saving.\n"
            case (true, false): "\nStopping. Press Ctrl-C again to end immediately.\n"
            case (false, true): "Stopping. Send the signal again to end immediately, without saving.\n"
            case (false, false): "Stopping. Send the signal again to end immediately.\n"
            }
        text.withUTF8Buffer { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// Restores the default, with which the signals end the process, unless one has arrived: it may be sent again.
    func end() {
        guard !Self.isRequested else { return }
        for number in signals { signal(number, SIG_DFL) }
    }

    /// Returns whether this process ignores a signal, as inherited from its parent process.
    private static func isIgnored(_ number: Int32) -> Bool {
        let before = signal(number, SIG_IGN)
        signal(number, before)
        return unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether a signal has arrived, so that the job ends.
    static var isRequested: Bool { firstSignal.load(ordering: .relaxed) != 0 }
}
