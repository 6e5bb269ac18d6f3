#ifndef IMPRINT_MPI_H
#define IMPRINT_MPI_H

#include <stddef.h>

/// Returns whether the build has the trait MPI.
int imprint_mpi_is_available(void);

/// Joins the processes of the job and creates one communicator per channel; call it once.
///
/// - rank: receives the index of this process.
/// - count: receives the number of processes.
/// Returns 0 if the MPI library cannot be called from several threads.
int imprint_mpi_begin(int channels, int *rank, int *count);

/// Sends bytes to another process and receives bytes from it. Either may be empty.
///
/// While it waits, the thread sleeps for short times, because several processes may share a core.
///
/// - found_bytes: receives the number of received bytes, which is lower than `received_bytes` if the other process sends a shorter message.
/// Returns 0, or the error of MPI, for example after a longer message. After an error or a shorter message, end the job, because the processes
/// cannot exchange messages any more.
int imprint_mpi_exchange(int channel, int partner, const void *sending, size_t sent_bytes, void *receiving,
                         size_t received_bytes, size_t *found_bytes);

/// Returns the description of an error of MPI, such as "MPI_ERR_TRUNCATE: message truncated"; valid until the next call on the same thread.
const char *imprint_mpi_describe(int error);

/// Sends a heartbeat to all processes, and receives theirs; call it every half second.
///
/// Returns the rank of the process whose last heartbeat is the oldest, and its age in seconds.
int imprint_mpi_send_heartbeat(double *age);

/// The state of the other processes at the end of this one.
typedef enum {
    /// At least one is still running and may wait for this process, or it cannot be reached.
    IMPRINT_MPI_RUNNING,
    /// All have ended, at least one of them without an error.
    IMPRINT_MPI_ENDED,
    /// All have ended with an error.
    IMPRINT_MPI_ALL_FAILED,
} imprint_mpi_ending;

/// Waits until all processes have called it, but at most `seconds`, and not if one of them waits for a message of this process.
imprint_mpi_ending imprint_mpi_wait_for_all(int has_failed, double seconds);

/// Leaves the job; all processes must call it.
void imprint_mpi_finish(void);

/// Ends all processes of the job.
void imprint_mpi_abort(int code);

#endif
