internal import Foundation

/// The memory of the machine.
public enum SystemMemory {
    /// How many bytes this process could take without others being pushed out: what is free or used for files alone,
    /// within the limit of the process's control group.
    public static var available: Int {
        #if os(Linux)
            let free = bytes(of: "MemAvailable:", in: "/proc/meminfo").map { $0 << 10 }
            return [free, availableInGroup].compactMap { $0 }.min() ?? halfOfAll
        #else
            return halfOfAll
        #endif
    }

    /// Gives memory that was freed in small pieces back to the system, which the C library may keep otherwise.
    public static func returnFreed() {
        // Of glibc, whose module leaves it out; other libraries do not have it.
        guard let function = dlsym(nil, "malloc_trim") else { return }
        typealias Trim = @convention(c) (Int) -> CInt
        _ = unsafeBitCast(function, to: Trim.self)(0)
    }

    private static var halfOfAll: Int { Int(ProcessInfo.processInfo.physicalMemory / 2) }

    /// What a control group, such as that of a container, leaves of its limit; `nil` where there is none.
    private static var availableInGroup: Int? {
        guard let line = text("/proc/self/cgroup")?.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else {
            return nil
        }
        let folder = "/sys/fs/cgroup" + line.dropFirst(3)
        func number(_ name: String) -> Int? {
            text("\(folder)/\(name)").flatMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        }
        guard let limit = number("memory.max"), let used = number("memory.current") else { return nil }
        let files = ["inactive_file", "active_file"].compactMap { bytes(of: $0, in: "\(folder)/memory.stat") }
        return max(limit - used + files.reduce(0, +), 0)
    }

    /// The number that follows a word at the start of a line.
    private static func bytes(of word: String, in file: String) -> Int? {
        let line = text(file)?.split(separator: "\n").first { $0.hasPrefix(word + " ") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    }

    private static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
}
