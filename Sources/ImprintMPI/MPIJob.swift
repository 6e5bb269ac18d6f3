internal import CImprintMPI
internal import Foundation
package import ImprintCore

/// A training job of several processes that a launcher such as `mpirun` or `srun` has started.
package final class MPIJob: Sendable {
    /// The processes.
    package let processes: ProcessGroup
    /// The time without a heartbeat after which a process counts as dead, in seconds.
    package static let timeout = 10.0
    /// The maximum time that a failed process waits for the others to fail alike or to save a checkpoint, in seconds.
    private static let endLimit = 60.0

    private let onFailure: @Sendable (Failure) -> Void

    /// The index and the number of processes as the launcher states them; nil without a launcher or with a single process.
    package static func launched(
        _ environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> (rank: Int, count: Int)? {
        func value(_ name: String) -> Int? { environment[name].flatMap { Int($0) } }
        // Open MPI; MPICH and others with PMI; SLURM with PMIx.
        var variables: [(rank: String, count: String)] = [
            ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"),
        ]
        // SLURM sets its own variables also without MPI, for example in job arrays.
        if environment["PMIX_RANK"] != nil { variables.append(("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")) }
        for names in variables {
            if let rank = value(names.rank), let count = value(names.count), count > 1 { return (rank, count) }
        }
        return nil
    }

    /// A failure of another process, after which the job ends.
    package enum Failure: Sendable {
        /// The process has sent no heartbeat for `timeout` seconds.
        case timeout(rank: Int)
        /// The process has sent a shorter message, so it does something else than this process.
        case mismatch(rank: Int, found: Int, expected: Int)
        /// MPI cannot exchange messages with the process, for example because its message is longer than expected.
        case exchange(rank: Int, reason: String)
        /// This process has finished, but another one waits for a message of it, or cannot be reached.
        case unfinished
    }

    /// Joins the other processes of the job.
    /// - Parameters:
    ///   - advice: Returns the advice of the program about an error, for the other processes.
    ///   - onFailure: Called on any thread if another process fails, before the job ends; it reports the failure.
    /// - Throws: `MPIError` if the build has no MPI, the library is unsuitable, or the number of processes is not supported.
    package init(
        advice: @escaping @Sendable (any Error) -> ErrorAdvice, onFailure: @escaping @Sendable (Failure) -> Void
    ) throws(MPIError) {
        guard imprint_mpi_is_available() != 0 else { throw .missing }
        let launched = Self.launched()?.count
        if let launched, !ProcessGroup.validCounts.contains(launched) { throw .invalidCount(launched) }
        var (rank, count): (Int32, Int32) = (0, 0)
        guard imprint_mpi_begin(Int32(ProcessChannel.allCases.count), &rank, &count) != 0 else { throw .noThreads }
        if let launched, launched != Int(count) { throw .otherLauncher(found: Int(count), expected: launched) }
        guard ProcessGroup.validCounts.contains(Int(count)) else { throw .invalidCount(Int(count)) }
        self.onFailure = onFailure
        processes = ProcessGroup(
            MPITransport(rank: Int(rank), count: Int(count), onFailure: onFailure), advice: advice)
        let thread = Thread {
            while true {
                var age = 0.0
                let rank = imprint_mpi_send_heartbeat(&age)
                if age > Self.timeout {
                    onFailure(.timeout(rank: Int(rank)))
                    imprint_mpi_abort(1)
                }
                Thread.sleep(forTimeInterval: 0.5)
            }
        }
        thread.name = "MPI heartbeat"
        thread.start()
    }

    /// Waits until all processes end, and leaves the job; ends it with a failure if another process waits for a message of this one.
    package func finish() {
        if imprint_mpi_wait_for_all(0, .infinity) == IMPRINT_MPI_RUNNING {
            onFailure(.unfinished)
            imprint_mpi_abort(1)
        }
        imprint_mpi_finish()
    }

    /// Ends the job after an error in this process.
    ///
    /// If all processes fail alike, for example because a file does not exist, only the first one should report it. The job ends as soon as another
    /// process waits for a message of this one. Otherwise, the others may still be saving a checkpoint, or fail alike.
    /// - Parameter report: Called if this process should report the error.
    package func fail(code: Int32, report: () -> Void) {
        let ending = imprint_mpi_wait_for_all(1, Self.endLimit)
        if processes.isFirst || ending != IMPRINT_MPI_ALL_FAILED { report() }
        if ending == IMPRINT_MPI_RUNNING { imprint_mpi_abort(code) } else { imprint_mpi_finish() }
    }
}

/// An error of starting a job of several processes.
package enum MPIError: Error, CustomStringConvertible {
    /// The build has no MPI.
    case missing
    /// The number of processes is not supported.
    case invalidCount(Int)
    /// The MPI library has another number of processes than the launcher: they do not belong together.
    case otherLauncher(found: Int, expected: Int)
    /// The MPI library does not support several threads.
    case noThreads

    package var description: String {
        switch self {
        case .missing:
            "several processes were started, but this program was built without MPI. Build it with the package trait MPI, or start a single process."
        case .invalidCount(let count):
            "\(count) processes were started, expected 1, 2, 4 or 8. A process can use several cores."
        case .otherLauncher(let found, let expected):
            "the MPI library has \(found) processes, expected the \(expected) that were started. Start them with the launcher of the library that this program was built with."
        case .noThreads:
            "the MPI library does not support calls from several threads (MPI_THREAD_MULTIPLE). Install Open MPI 4 or MPICH 4."
        }
    }
}

/// Messages through MPI.
private struct MPITransport: ProcessTransport {
    let rank: Int
    let count: Int
    let onFailure: @Sendable (MPIJob.Failure) -> Void

    func exchange(
        with partner: Int, sending: UnsafeRawBufferPointer, receiving: UnsafeMutableRawBufferPointer,
        channel: ProcessChannel
    ) {
        var found = 0
        let error = imprint_mpi_exchange(
            Int32(channel.rawValue), Int32(partner), sending.baseAddress, sending.count, receiving.baseAddress,
            receiving.count, &found)
        if error != 0 {
            onFailure(.exchange(rank: partner, reason: String(cString: imprint_mpi_describe(error))))
        } else if found != receiving.count {
            onFailure(.mismatch(rank: partner, found: found, expected: receiving.count))
        } else {
            return
        }
        imprint_mpi_abort(1)
    }
}
