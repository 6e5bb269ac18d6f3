internal import ArgumentParser
internal import Foundation
internal import Synchronization

/// Counts signals that end the process, such as Ctrl-C, so that the job can save its results first.
///
/// The second signal ends the process at once.
struct Interrupt: Sendable {
    private static let count = Atomic(0)
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
        var unblocked = sigset_t()
        sigemptyset(&unblocked)
        for number in signals {
            signal(number) { _ in
                if Interrupt.count.add(1, ordering: .relaxed).oldValue > 0 { _exit(1) }
            }
            sigaddset(&unblocked, number)
        }
        // The parent process may have blocked them.
        pthread_sigmask(SIG_UNBLOCK, &unblocked, nil)
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
