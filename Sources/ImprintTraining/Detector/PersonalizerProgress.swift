internal import Imprint

/// The progress of a `DetectorPersonalizer`, which the caller of the run shows.
final class PersonalizerProgress {
    /// The number of processed training patches.
    var done = 0
    private let total: Int
    private let control: PersonalizationControl
    private let onProgress: (Int, Int) -> Void

    init(total: Int, _ control: PersonalizationControl, _ onProgress: @escaping (_ done: Int, _ of: Int) -> Void) {
        (self.total, self.control, self.onProgress) = (total, control, onProgress)
    }

    /// Calls the closure of the caller, which may cancel the run.
    func show() { onProgress(done, total) }

    /// Shows the progress, then waits while the run is paused if `waits` is true.
    /// - Throws: `CancellationError` if the run is cancelled.
    func report(waits: Bool = true) throws {
        show()
        try control.check(waits: waits)
    }
}
