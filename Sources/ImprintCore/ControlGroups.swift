internal import Foundation

/// The memory limits of the control groups (cgroups) of a process, such as those of a container; of version 2, or else of version 1.
struct ControlGroups {
    /// The folder at which the groups are mounted.
    let root: String
    /// The groups of the process: the content of /proc/self/cgroup.
    let membership: String

    /// The names of the files of a group.
    private struct Files {
        let limit: String
        let usage: String
        /// The keys of the file cache in memory.stat, including the cache of the groups below.
        let cache: [String]

        static let version2 = Files(
            limit: "memory.max", usage: "memory.current", cache: ["inactive_file", "active_file"])
        static let version1 = Files(
            limit: "memory.limit_in_bytes", usage: "memory.usage_in_bytes",
            cache: ["total_inactive_file", "total_active_file"])
    }

    /// Version 1 states a value near 2⁶³ if a group has no limit.
    private static let unlimited = 1 << 62

    /// The smallest remaining memory of the group of the process and the groups above it; nil without a limit.
    var availableMemory: Int? {
        if let path = path(where: { $0.isEmpty }), let available = available(path, below: root, .version2) {
            return available
        }
        guard let path = path(where: { $0.split(separator: ",").contains("memory") }) else { return nil }
        return available(path, below: "\(root)/memory", .version1)
    }

    /// Returns the path of the group in the hierarchy with certain controllers; version 2 does not list any.
    private func path(where isSearched: (Substring) -> Bool) -> Substring? {
        for line in membership.split(separator: "\n") {
            // The number of the hierarchy, its controllers and the path.
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            if fields.count == 3, isSearched(fields[1]) { return fields[2] }
        }
        return nil
    }

    /// Returns the smallest remaining memory of a group and the groups above it.
    ///
    /// A container may have the path of the host but see only its own group, at `mount`, so missing folders are skipped.
    private func available(_ path: Substring, below mount: String, _ files: Files) -> Int? {
        let names = path.split(separator: "/")
        // A path with ".." is that of a group outside of the mounted ones.
        let count = names.contains("..") ? 0 : names.count
        return (0...count).compactMap { depth in
            available(in: ([mount] + names.prefix(depth).map(String.init)).joined(separator: "/"), files)
        }.min()
    }

    /// Returns the remaining memory of the group of a folder: its limit minus the used memory without file cache; nil if it has no limit.
    private func available(in folder: String, _ files: Files) -> Int? {
        func number(_ name: String) -> Int? {
            SystemMemory.text("\(folder)/\(name)").flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
        guard let limit = number(files.limit), limit < Self.unlimited, let used = number(files.usage) else {
            return nil
        }
        let cache = files.cache.compactMap { SystemMemory.bytes(of: $0, in: "\(folder)/memory.stat") }
        return max(limit - used + cache.reduce(0, +), 0)
    }
}
