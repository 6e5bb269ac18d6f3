internal import Dispatch
internal import Foundation
internal import Synchronization

/// Notes that the user pressed Ctrl-C, or that the system asks the process to end, so that the job can end in order; asked a
/// second time, the process ends at once.
final class Interrupt: Sendable {
    private let requested = Atomic(false)
    // Sources may be used from any thread; the module does not say so.
    private nonisolated(unsafe) let sources: [any DispatchSourceSignal]

    init() {
        sources = [SIGINT, SIGTERM].map { number in
            signal(number, SIG_IGN)
            return DispatchSource.makeSignalSource(signal: number, queue: .global())
        }
        for source in sources {
            source.setEventHandler { [weak self] in
                guard let self else { return }
                if requested.exchange(true, ordering: .relaxed) { exit(1) }
            }
            source.resume()
        }
    }

    var isRequested: Bool { requested.load(ordering: .relaxed) }
}
