internal import Foundation
internal import Synchronization

/// Notes that the user pressed Ctrl-C, or that the system asks the process to end, so that the job can end in order; asked a
/// second time, the process ends at once.
struct Interrupt: Sendable {
    private static let count = Atomic(0)
    private let numbers: [Int32]

    /// Makes one for signals that ask the job to end; SIGHUP is left out if it is ignored.
    init(_ numbers: [Int32] = [SIGINT, SIGTERM]) {
        // A job under nohup outlives its terminal.
        self.numbers = numbers.filter { $0 != SIGHUP || !Self.isIgnored($0) }
    }

    /// Takes over the signals.
    func begin() {
        // Made here, so that the handler only counts: little else is allowed in one.
        Self.count.store(0, ordering: .relaxed)
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in numbers {
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
        for number in numbers { signal(number, SIG_DFL) }
    }

    /// Whether whoever started this process wants it to go on in spite of a signal.
    private static func isIgnored(_ number: Int32) -> Bool {
        let before = signal(number, SIG_IGN)
        signal(number, before)
        return unsafeBitCast(before, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether the job is to end.
    static var isRequested: Bool { count.load(ordering: .relaxed) > 0 }
}
