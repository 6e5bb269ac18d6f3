import Foundation
import TestSupport
import Testing

@testable import ImprintCore

@Suite struct SystemMemoryTests {
    @Test("The available memory is at most the physical memory") func available() {
        #expect(SystemMemory.available > 1 << 20)
        #expect(SystemMemory.available <= Int(ProcessInfo.processInfo.physicalMemory))
    }

    /// Writes the files of control groups below a folder and returns the available memory of a process.
    private func available(_ membership: String, _ files: [String: String]) throws -> Int? {
        try withTemporaryFolder { root in
            for (path, content) in files {
                let file = root.appending(path: path)
                try FileManager.default.createDirectory(
                    at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
                try Data((content + "\n").utf8).write(to: file)
            }
            return ControlGroups(root: root.path, membership: membership).availableMemory
        }
    }

    @Test("The available memory is the smallest of the control group and the groups above it") func controlGroups()
        throws
    {
        let group = [
            "a/b/memory.max": "max", "a/b/memory.current": "100",
            "a/memory.max": "1000", "a/memory.current": "700",
            "a/memory.stat": "anon 400\nfile 300\ninactive_file 200\nactive_file 50",
        ]
        #expect(try available("0::/a/b\n", group) == 550)
        let tighter = ["a/b/memory.max": "300", "a/b/memory.current": "100"].merging(group) { first, _ in first }
        #expect(try available("0::/a/b\n", tighter) == 200)
        #expect(try available("0::/other\n", group) == nil)
        // In a container, the group is the root of the mounted ones.
        let container = ["memory.max": "1000", "memory.current": "1200"]
        for path in ["/", "/docker/1f", "/../1f"] { #expect(try available("0::\(path)\n", container) == 0) }
        #expect(try available("", container) == nil)
    }

    @Test("Without a limit of version 2, the control groups of version 1 count") func olderControlGroups() throws {
        let membership = "5:devices:/x\n4:cpuset,memory:/docker/1f\n0::/\n"
        let unlimited = [
            "memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "500",
        ]
        #expect(try available(membership, unlimited) == nil)
        let group = [
            "memory/docker/1f/memory.limit_in_bytes": "1000", "memory/docker/1f/memory.usage_in_bytes": "400",
            "memory/docker/1f/memory.stat": "inactive_file 1\ntotal_inactive_file 30\ntotal_active_file 7",
        ].merging(unlimited) { first, _ in first }
        #expect(try available(membership, group) == 637)
        // The container sees only its own group, at the root of the mounted ones.
        let container = ["memory/memory.limit_in_bytes": "800", "memory/memory.usage_in_bytes": "300"]
        #expect(try available(membership, container) == 500)
        #expect(try available("5:devices:/x\n0::/\n", container) == nil)
    }
}
