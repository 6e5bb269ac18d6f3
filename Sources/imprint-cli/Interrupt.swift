internal import Foundation
internal import Synchronization

/// Notes that the user pressed Ctrl-C, or that the system asks the process to end, so that the job can end in order; asked a
/// second time, the process ends at once.
struct Interrupt: Sendable {
    private static let count = Atomic(0)

    /// Takes over the signals.
    func begin() {
        // Made here, so that the handler only counts: little else is allowed in one.
        Self.count.store(0, ordering: .relaxed)
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGINT, SIGTERM] {
            signal(number) { _ in
                if Interrupt.count.add(1, ordering: .relaxed).oldValue > 0 { _exit(1) }
            }
            sigaddset(&signals, number)
        }
        // Whoever started this process may have blocked them.
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }

    /// Leaves the signals to the system again: they end the process.
    func end() {
        for number in [SIGINT, SIGTERM] { signal(number, SIG_DFL) }
    }

    /// Whether the job is to end.
    static var isRequested: Bool { count.load(ordering: .relaxed) > 0 }
}
