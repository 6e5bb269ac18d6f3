internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages

/// Classifies photos on all threads, and writes the results in the order of the photos.
///
/// Photos that cannot be processed are errors in the output, and the loop continues with the other photos. After Ctrl-C or SIGTERM, the loop
/// finishes the photos that it has started.
/// - Parameters:
///   - photos: The photos.
///   - workers: The threads.
///   - output: Writes the results.
///   - verb: The word for the work in the progress bar, such as "classifying".
///   - line: The JSON line of a result.
///   - classify: Returns the result of a photo.
/// - Throws: `ExitCode.failure` at the end if a named photo cannot be processed, one of the list with --strict, or none of the photos;
///   `Interrupt.exitCode` after a signal; all other errors immediately.
func forEachPhoto(
    _ photos: PhotoSource, _ workers: Workers, _ output: PhotoOutput, verb: String,
    line: (PhotoResult) -> any Encodable, classify: (PhotoInput) throws -> PhotoResult
) throws {
    var progress = PhotoProgress(verb: verb, total: photos.count)
    var isFailure = false
    let interrupt = Interrupt()
    interrupt.begin()
    defer { interrupt.end() }
    try output.begin()
    defer { progress.clear() }
    do {
        try workers.forEachInOrder(window: 4 * workers.count) { isStopped in
            try photos.next { isStopped() || Interrupt.isRequested }
        } _: { photo in
            Swift.Result {
                if let problem = photo.problem { throw PhotoFailure(description: "\(photo.path): \(problem)") }
                return try photo.wrappingFailures { try output.prepared(classify(photo), of: photo) }
            }
        } receive: { photo, outcome in
            progress.done += 1
            do {
                try output.write(outcome.get(), of: photo, line: line)
            } catch let error where error is ImageError || error is PhotoFailure {
                progress.clear()
                progress.failures += 1
                isFailure = isFailure || photos.isStrict || !photo.isListed
                try output.write(error, of: photo)
            }
            progress.draw()
        }
    } catch {
        progress.clear()
        // Keep the results so far, and report the error of the loop.
        _ = try? output.finish(isComplete: false)
        throw error
    }
    progress.clear()
    for line in try output.finish(isComplete: photos.isAtEnd) { Terminal.note(line) }
    if Interrupt.isRequested {
        Terminal.note(
            "Interrupted after \(counted(progress.done, "photo")); all results until then are complete.")
        throw Interrupt.exitCode
    }
    if photos.hasList && progress.failures > 0 {
        Terminal.warn("\(progress.failures) of \(counted(progress.done, "photo")) could not be processed.")
    }
    let hasOnlyFailures = progress.failures > 0 && progress.failures == progress.done
    if isFailure || hasOnlyFailures { throw ExitCode.failure }
}

extension PhotoInput {
    /// Calls `body`, and turns errors that depend on the photo and do not name it into a `PhotoFailure` with its path.
    fileprivate func wrappingFailures<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            switch error {
            case ImprintError.nonFiniteOutput, ImprintError.unsupportedImageSize, ImageError.unencodable:
                throw PhotoFailure(description: "\(path): \(error)")
            default: throw error
            }
        }
    }
}

/// The progress of a run whose results go to a file or a pipe.
private struct PhotoProgress {
    let verb: String
    /// The number of photos, if it is known.
    let total: Int?
    var done = 0
    var failures = 0
    private var bar = ProgressBar()
    /// Whether to show the progress; results on standard output in the same terminal already show it.
    private let isShown = isatty(STDOUT_FILENO) == 0

    init(verb: String, total: Int?) { (self.verb, self.total) = (verb, total) }

    mutating func draw() {
        guard isShown else { return }
        if let total {
            bar.draw(verb, done: done, of: total)
        } else {
            bar.draw("\(verb) photo \(done)")
        }
    }

    mutating func clear() { bar.clear() }
}
