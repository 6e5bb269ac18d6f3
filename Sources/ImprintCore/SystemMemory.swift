internal import Foundation

#if os(iOS)
    internal import os
#endif

/// The memory of the machine.
package enum SystemMemory {
    /// The number of bytes that this process can allocate without swapping.
    ///
    /// On Linux, this is free memory and file cache, within the limits of the process and of its control groups. On iOS, it is what
    /// the app can allocate before the system ends it. On macOS, it is half of the physical memory.
    package static var available: Int {
        #if os(Linux)
            let free = bytes(of: "MemAvailable:", in: "/proc/meminfo").map { $0 << 10 }
            return [free, availableInGroup, availableAddressSpace].compactMap { $0 }.min() ?? halfOfAll
        #elseif os(iOS)
            // The Simulator has no limit and reports 0.
            let free = os_proc_available_memory()
            return free > 0 ? free : halfOfAll
        #else
            return halfOfAll
        #endif
    }

    /// Whether the process can allocate a block of this size.
    ///
    /// Swift ends the process if the allocation of an array fails, so check the size of large arrays first. This method does not
    /// check blocks below 1 MB, because some address space is reserved for them.
    package static func allows(_ byteCount: Int) -> Bool {
        guard byteCount >= 1 << 20 else { return true }
        #if os(Linux)
            if let room = availableAddressSpace, byteCount > room - reserve { return false }
        #endif
        return byteCount < 1 << 26 || byteCount <= available
    }

    /// Formats a number of bytes for messages, such as "0.8 GB".
    package static func text(_ byteCount: Int) -> String {
        byteCount < 1_000_000_000
            ? "\((byteCount + 999_999) / 1_000_000) MB" : "\((Double(byteCount) / 1e8).rounded(.up) / 10) GB"
    }

    /// Returns memory that was freed in small blocks to the system, which the C library may not do otherwise.
    package static func returnFreed() {
        #if canImport(Darwin)
            _ = malloc_zone_pressure_relief(nil, 0)
        #else
            // glibc has this function, but its Swift module does not; Musl lacks it.
            guard let function = dlsym(nil, "malloc_trim") else { return }
            typealias Trim = @convention(c) (Int) -> CInt
            _ = unsafeBitCast(function, to: Trim.self)(0)
        #endif
    }

    #if os(Linux)
        /// The address space that is reserved for small blocks.
        private static let reserve = 1 << 24

        /// The remaining address space of the process (`ulimit -v`); nil if it is not limited.
        private static var availableAddressSpace: Int? {
            var limit = rlimit()
            guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < Int.max else {
                return nil
            }
            let pages = text("/proc/self/statm")?.split(separator: " ").first.flatMap { Int($0) } ?? 0
            return max(Int(limit.rlim_cur) - pages * Int(getpagesize()), 0)
        }
    #endif

    private static var halfOfAll: Int { Int(ProcessInfo.processInfo.physicalMemory / 2) }

    /// The remaining memory of the control group, such as a container, and of the groups above it; nil if there is no limit.
    private static var availableInGroup: Int? {
        text("/proc/self/cgroup").flatMap { ControlGroups(root: "/sys/fs/cgroup", membership: $0).availableMemory }
    }

    /// Returns the number after a word at the start of a line.
    static func bytes(of word: String, in file: String) -> Int? {
        let line = text(file)?.split(separator: "\n").first { $0.hasPrefix(word + " ") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    /// Returns the content of a file of the system; nil if it cannot be read.
    static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
}
