import Foundation
import TestSupport
import Testing

#if os(Linux)
    /// The start of `imprint`, before `main`.
    @Suite struct StartupTests {
        @Test("imprint starts with one thread on any number of processors")
        func threads() throws {
            try withTemporaryFolder { folder in
                // Writing to a full pipe blocks the process, so its threads can be counted.
                let run = try shell(
                    """
                    unset OPENBLAS_NUM_THREADS
                    mkfifo pipe
                    exec 3<>pipe
                    head -c 65536 /dev/zero >&3
                    "$imprint" inspect missing 2>&3 &
                    sleep 1
                    ls /proc/$!/task | wc -l
                    kill $!
                    """, folder: folder)
                #expect(run.output.trimmingCharacters(in: .whitespacesAndNewlines) == "1", "\(run.errors)")
            }
        }

        @Test(
            "With a small address space, imprint starts or fails, and does not hang",
            arguments: [100, 200, 300, 400, 1000])
        func addressSpace(megabytes: Int) throws {
            try withTemporaryFolder { folder in
                let run = try shell(
                    """
                    unset OPENBLAS_NUM_THREADS
                    ulimit -v \(megabytes * 1000)
                    timeout 20 "$imprint" --version
                    """, folder: folder)
                // timeout exits with 124 if it had to kill the process.
                #expect(run.status != 124)
                if megabytes == 1000 { #expect(run.status == 0 && run.output == "0.2.0\n", "\(run.errors)") }
            }
        }
    }
#endif
