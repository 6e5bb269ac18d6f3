internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintMPI

/// The processes that train a model together, if a launcher such as `mpirun` has started several.
///
/// The first process prints and writes files; the others print only errors that the first one does not have.
enum TrainingProcesses {
    /// The job, after `join` has been called with several processes.
    nonisolated(unsafe) private static var job: MPIJob?
    /// The standard error stream of this process, if it is not the first one.
    nonisolated(unsafe) private static var errors: Int32?

    /// The processes; nil for a single process.
    static var group: ProcessGroup? { job?.processes }
    /// Whether this process prints and writes files.
    static var isFirst: Bool { group?.isFirst ?? true }

    /// Silences this process if it is not the first one of a training job, before anything is printed.
    static func silenceOthers() {
        guard ["train", "train-detector", "bench"].contains(CommandLine.arguments.dropFirst().first),
            let (rank, _) = MPIJob.launched(), rank > 0
        else { return }
        errors = dup(STDERR_FILENO)
        let nowhere = open("/dev/null", O_WRONLY)
        for stream in [STDOUT_FILENO, STDERR_FILENO] { dup2(nowhere, stream) }
        close(nowhere)
    }

    /// Joins the other processes, if several were started.
    /// - Throws: `MPIError`.
    static func join() throws {
        guard let (own, count) = MPIJob.launched() else { return }
        job = try MPIJob(advice: advice) { failure in
            switch failure {
            case .timeout(let rank):
                report(
                    "Error: process \(rank) of \(count) has not answered process \(own) for \(Int(MPIJob.timeout)) seconds. "
                        + "Start the job again; with --checkpoint and --resume, it continues from the last checkpoint.")
            case .mismatch(let rank, let found, let expected):
                report(
                    "Error: process \(rank) sent \(found) bytes to process \(own), expected \(expected). Check that all processes run the "
                        + "same program on the same files.")
            case .exchange(let rank, let reason):
                report(
                    "Error: process \(own) cannot exchange messages with process \(rank): \(reason.sentence) Check that all processes "
                        + "run the same program on the same files, and that their machines can reach each other.")
            case .unfinished:
                report(
                    "Error: process \(own) has finished, but another process waits for it or cannot be reached. Check that all processes "
                        + "run the same program on the same files.")
            }
        }
    }

    /// Returns the hint and the kind of an error, which processes that do not have it need for their message and exit code.
    @Sendable private static func advice(_ error: any Error) -> ErrorAdvice {
        ErrorAdvice(hint: hint(for: error), isWrongUsage: error is ValidationError || isWrongUsage(error))
    }

    /// Waits for the other processes at the end of the command.
    static func finish() { job?.finish() }

    /// Ends the job after an error of this process, and prints the error unless all processes have it.
    static func fail(_ message: String, code: Int32) {
        guard let job else {
            if !message.isEmpty { Terminal.failLines(message) }
            // The launcher ends the first process, which prints the error, as soon as another one ends.
            if errors != nil { sleep(1) }
            return
        }
        job.fail(code: code) {
            if !message.isEmpty { report(message) }
        }
    }

    /// Prints an error, even if this process is silent.
    private static func report(_ message: String) {
        if let errors { dup2(errors, STDERR_FILENO) }
        Terminal.failLines(message)
    }
}
