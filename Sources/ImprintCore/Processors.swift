internal import Foundation

/// The processors that this process may use.
package enum Processors {
    /// The numbers of threads that a setting or option may have.
    package static let threadRange = 1...max(256, coreCount)

    /// The number of logical processors: the cores, times two if each core runs two threads.
    package static let count: Int = max(allowed.count, 1)

    /// The number of physical cores; loops that fill a core's vector units do not run faster on more threads.
    package static let coreCount: Int = {
        #if os(Linux)
            let siblings = allowed.map { processor in
                read("/sys/devices/system/cpu/cpu\(processor)/topology/thread_siblings_list") ?? "\(processor)"
            }
            return max(Set(siblings).count, 1)
        #else
            var cores: Int32 = 0
            var size = MemoryLayout.size(ofValue: cores)
            let isKnown = sysctlbyname("hw.physicalcpu", &cores, &size, nil, 0) == 0 && cores >= 1
            return isKnown ? Int(cores) : count
        #endif
    }()

    /// The numbers of the processors that the process may use (its CPU affinity).
    private static let allowed: [Int] = {
        #if os(Linux)
            let line = read("/proc/self/status")?.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
            if let list = line?.split(separator: ":").last { return numbers(in: String(list)) }
        #endif
        return Array(0..<ProcessInfo.processInfo.activeProcessorCount)
    }()

    /// Returns the processor numbers in a list such as "0-3,8".
    static func numbers(in list: String) -> [Int] {
        list.split(separator: ",").flatMap { part -> [Int] in
            let ends = part.split(separator: "-").compactMap { Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
            guard let first = ends.first, let last = ends.last, first <= last else { return [] }
            return Array(first...last)
        }
    }

    private static func read(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
}
