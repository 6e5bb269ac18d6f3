internal import ArgumentParser
internal import ImprintCore
internal import ImprintImages

/// Computes a result for each photo on all threads, and shows the results in the order of the photos.
///
/// The loop reports unreadable photos and continues with the other photos.
/// - Throws: `ExitCode.failure` at the end if a photo is unreadable; every other error immediately.
func forEachPhoto<Value: Sendable>(
    _ files: [String], _ workers: Workers, compute: (String) throws -> Value, show: (String, Value) throws -> Void
) throws {
    var failures = 0
    try workers.forEachInOrder(files.count) { index in
        Swift.Result { try compute(files[index]) }
    } receive: { index, outcome in
        do {
            try show(files[index], outcome.get())
        } catch let error as ImageError {
            failures += 1
            Terminal.note("Error: \(error)")
        }
    }
    if failures > 0 { throw ExitCode.failure }
}
