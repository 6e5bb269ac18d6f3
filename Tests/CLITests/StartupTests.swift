import Foundation
import TestSupport
import Testing

#if os(Linux)
    /// What happens in the tool before `main`.
    @Suite struct StartupTests {
        @Test("The tool starts with one thread, whatever the number of processors")
        func threads() throws {
            try withTemporaryFolder { folder in
                // The tool waits while it writes to a pipe that is full.
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
            "With little address space, the tool starts or ends with an error", arguments: [100, 200, 300, 400, 1000])
        func addressSpace(megabytes: Int) throws {
            try withTemporaryFolder { folder in
                let run = try shell(
                    """
                    unset OPENBLAS_NUM_THREADS
                    ulimit -v \(megabytes * 1000)
                    timeout 20 "$imprint" --version
                    """, folder: folder)
                // 124: timeout had to end it.
                #expect(run.status != 124)
                if megabytes == 1000 { #expect(run.status == 0 && run.output == "0.1.0\n", "\(run.errors)") }
            }
        }
    }
#endif
