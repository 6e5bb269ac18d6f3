#include "imprint_mpi.h"

#ifdef IMPRINT_MPI

#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

enum { mostChannels = 8, mostProcesses = 64 };

static MPI_Comm channels[mostChannels];
static int channels_in_use;
static MPI_Comm heartbeats, ending;
static int rank, count;
// A heartbeat must not be sent after the end.
static pthread_mutex_t heartbeat_lock = PTHREAD_MUTEX_INITIALIZER;
static int has_finished;

int imprint_mpi_is_available(void) { return 1; }

// Creates a communicator that returns errors; by default, MPI ends the job without an error of this program.
static void create(MPI_Comm *communicator) {
    MPI_Comm_dup(MPI_COMM_WORLD, communicator);
    MPI_Comm_set_errhandler(*communicator, MPI_ERRORS_RETURN);
}

int imprint_mpi_begin(int channel_count, int *own_rank, int *process_count) {
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    *own_rank = rank;
    *process_count = count;
    if (level < MPI_THREAD_MULTIPLE || channel_count > mostChannels) return 0;
    for (int i = 0; i < channel_count; i++) create(&channels[i]);
    channels_in_use = channel_count;
    create(&heartbeats);
    create(&ending);
    return 1;
}

static void nap(long nanoseconds) {
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

// MPI counts bytes with an int.
static const size_t largestMessage = 1 << 30;

// Waits for a receive and a send, and returns the error of MPI.
static int wait_for_both(MPI_Request requests[2], MPI_Status statuses[2]) {
    int done = 0;
    // 64 bits, because a process can wait for days.
    for (int64_t turn = 0;; turn++) {
        int error = MPI_Testall(2, requests, &done, statuses);
        if (error == MPI_ERR_IN_STATUS) {
            for (int i = 0; i < 2; i++) {
                int own = statuses[i].MPI_ERROR;
                if (own != MPI_SUCCESS && own != MPI_ERR_PENDING) return own;
            }
        }
        if (error != MPI_SUCCESS || done) return error;
        if (turn > 2000) {
            nap(50000);
        } else if (turn > 50) {
            sched_yield();
        }
    }
}

int imprint_mpi_exchange(int channel, int partner, const void *sending, size_t sent_bytes, void *receiving,
                         size_t received_bytes, size_t *found_bytes) {
    size_t sent = 0, received = 0;
    *found_bytes = 0;
    while (sent < sent_bytes || received < received_bytes) {
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status statuses[2];
        int error;
        size_t size = received_bytes - received < largestMessage ? received_bytes - received : largestMessage;
        int expected = (int)size;
        if (size > 0) {
            char *target = (char *)receiving + received;
            error = MPI_Irecv(target, (int)size, MPI_BYTE, partner, 0, channels[channel], &requests[0]);
            if (error != MPI_SUCCESS) return error;
            received += size;
        }
        size = sent_bytes - sent < largestMessage ? sent_bytes - sent : largestMessage;
        if (size > 0) {
            const char *source = (const char *)sending + sent;
            error = MPI_Isend(source, (int)size, MPI_BYTE, partner, 0, channels[channel], &requests[1]);
            if (error != MPI_SUCCESS) return error;
            sent += size;
        }
        error = wait_for_both(requests, statuses);
        if (error != MPI_SUCCESS) return error;
        if (expected > 0) {
            int found = 0;
            MPI_Get_count(&statuses[0], MPI_BYTE, &found);
            *found_bytes += (size_t)found;
            // The processes do different things, for example because their photos or their programs differ.
            if (found != expected) return 0;
        }
    }
    return 0;
}

const char *imprint_mpi_describe(int error) {
    static _Thread_local char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    return MPI_Error_string(error, text, &length) == MPI_SUCCESS && length > 0 ? text : "MPI has failed";
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int imprint_mpi_send_heartbeat(double *age) {
    // The times of the last heartbeat of each process, and of this one.
    static double last[mostProcesses], own;
    static char content = 1;
    *age = 0;
    pthread_mutex_lock(&heartbeat_lock);
    if (has_finished) {
        pthread_mutex_unlock(&heartbeat_lock);
        return rank;
    }
    double now = seconds();
    // At the start, or after this process was suspended for a while, which is not the fault of the others.
    if (now - own > 2) {
        for (int i = 0; i < mostProcesses; i++) last[i] = now;
    }
    own = now;
    for (int other = 0; other < count && other < mostProcesses; other++) {
        if (other == rank) continue;
        MPI_Request request;
        int error = MPI_Isend(&content, 1, MPI_CHAR, other, 0, heartbeats, &request);
        // A message of one byte is buffered. It is lost if the other process has ended.
        if (error == MPI_SUCCESS) MPI_Request_free(&request);
    }
    // After an error, the last heartbeats are too old at some point.
    for (;;) {
        int has_message = 0;
        MPI_Status status;
        int error = MPI_Iprobe(MPI_ANY_SOURCE, 0, heartbeats, &has_message, &status);
        if (error != MPI_SUCCESS || !has_message) break;
        char received;
        error = MPI_Recv(&received, 1, MPI_CHAR, status.MPI_SOURCE, 0, heartbeats, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) break;
        if (status.MPI_SOURCE < mostProcesses) last[status.MPI_SOURCE] = now;
    }
    pthread_mutex_unlock(&heartbeat_lock);
    int slowest = rank;
    for (int other = 0; other < count && other < mostProcesses; other++) {
        if (other == rank || now - last[other] <= *age) continue;
        *age = now - last[other];
        slowest = other;
    }
    return slowest;
}

// Returns whether another process waits for this one in an exchange.
static int has_unread_message(void) {
    for (int i = 0; i < channels_in_use; i++) {
        int has_message = 0;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, channels[i], &has_message, &status) == MPI_SUCCESS && has_message) return 1;
    }
    return 0;
}

imprint_mpi_ending imprint_mpi_wait_for_all(int has_failed, double limit) {
    static int failed, all_failed;
    MPI_Request request;
    double end = seconds() + limit;
    failed = has_failed;
    int error = MPI_Iallreduce(&failed, &all_failed, 1, MPI_INT, MPI_MIN, ending, &request);
    while (error == MPI_SUCCESS && seconds() < end) {
        int done = 0;
        error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (error == MPI_SUCCESS && done) return all_failed ? IMPRINT_MPI_ALL_FAILED : IMPRINT_MPI_ENDED;
        if (has_unread_message()) break;
        nap(1000000);
    }
    return IMPRINT_MPI_RUNNING;
}

void imprint_mpi_finish(void) {
    pthread_mutex_lock(&heartbeat_lock);
    has_finished = 1;
    MPI_Finalize();
    pthread_mutex_unlock(&heartbeat_lock);
}

void imprint_mpi_abort(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
    // The standard allows it to return. The launcher then ends the other processes.
    _exit(code);
}

#else

int imprint_mpi_is_available(void) { return 0; }
int imprint_mpi_begin(int channels, int *rank, int *count) { return 0; }
int imprint_mpi_exchange(int channel, int partner, const void *sending, size_t sent_bytes, void *receiving,
                         size_t received_bytes, size_t *found_bytes) {
    *found_bytes = received_bytes;
    return 0;
}
const char *imprint_mpi_describe(int error) { return ""; }
int imprint_mpi_send_heartbeat(double *age) { return 0; }
imprint_mpi_ending imprint_mpi_wait_for_all(int has_failed, double seconds) { return IMPRINT_MPI_RUNNING; }
void imprint_mpi_finish(void) {}
void imprint_mpi_abort(int code) {}

#endif
