internal import ArgumentParser
internal import Foundation
internal import Synchronization

/// Counts signals that end the process, such as Ctrl-C, so that the job can save its results first.
///
/// The second signal ends the process at once.
struct Interrupt: Sendable {
    private static let count = Atomic(0)
    /// Whether standard error is a terminal, on which the first signal shows a note.
    private static let showsNote = Atomic(false)
    private static let note: StaticString =
        "\nStopping. Press Ctrl-C again to end immediately, without saving.\n"
    private let signals: [Int32]

    /// The exit code of an interrupted job that has saved its results: 128 + SIGINT, as shells report it.
    static let exitCode = ExitCode(128 + SIGINT)

    /// Creates a handler of signals; it does not handle SIGHUP if that is ignored.
    init(_ signals: [Int32] = [SIGINT, SIGTERM]) {
        // A job under nohup continues after its terminal closes.
        self.signals = signals.filter { $0 != SIGHUP || !Self.isIgnored($0) }
    }

    /// Starts counting the signals.
    func begin() {
        // A signal handler may only call async-signal-safe functions.
        Self.count.store(0, ordering: .relaxed)
        Self.showsNote.store(isatty(STDERR_FILENO) != 0 && Terminal.verbosity > .quiet, ordering: .relaxed)
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        for number in signals {
            signal(number) { _ in
                if Interrupt.count.add(1, ordering: .relaxed).oldValue > 0 { _exit(1) }
                if Interrupt.showsNote.load(ordering: .relaxed) { Interrupt.writeNote() }
            }
            sigaddset(&unblocked, number)
        }
        // The parent process may have blocked them.
        pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
    }

    /// Writes the note; it is async-signal-safe, and does not change `errno`.
    private static func writeNote() {
        let code = errno
        note.withUTF8Buffer { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
        errno = code
    }

    /// Restores the default: the signals end the process.
    func end() {
        for number in signals { signal(number, SIG_DFL) }
    }

    /// Returns whether this process ignores a signal, as inherited from its parent process.
    private static func isIgnored(_ number: Int32) -> Bool {
        let before = signal(number, SIG_IGN)
        signal(number, before)
        return unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether a signal has arrived, so that the job ends.
    static var isRequested: Bool { count.load(ordering: .relaxed) > 0 }
}
