internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Notes that the user pressed Ctrl-C, so that the job can end in order; a second Ctrl-C ends it at once.
final class Interrupt: Sendable {
    private let requested = Atomic(false)
    // Sources may be used from any thread; the module does not say so.
    private nonisolated(unsafe) let source: any DispatchSourceSignal

    init() {
        signal(SIGINT, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
        source.setEventHandler { [weak self] in
            guard let self else { return }
            if requested.exchange(true, ordering: .relaxed) { exit(1) }
        }
        source.resume()
    }

    var isRequested: Bool { requested.load(ordering: .relaxed) }
}
