internal import Foundation

/// A counter of this process's memory allocations.
enum AllocationCounter {
    private typealias Count = @convention(c) () -> Int64

    /// The counter in the library of the package Benchmarks, if it was loaded before the C library.
    private static let counter: Count? = {
        #if os(Linux)
            dlsym(nil, "allocation_count").map { unsafeBitCast($0, to: Count.self) }
        #else
            nil
        #endif
    }()

    /// The number of allocations since the process began; nil if they are not counted.
    static var count: Int64? {
        // The library returns −1 if it is loaded but cannot count.
        guard let count = counter?(), count >= 0 else { return nil }
        return count
    }
}

/// The peak memory of this process.
package enum PeakMemory {
    /// Returns free memory to the system, and resets the peak, if the system supports it.
    static func reset() {
        // Swift does not import malloc_trim from glibc.
        if let trim = dlsym(nil, "malloc_trim") {
            _ = unsafeBitCast(trim, to: (@convention(c) (Int) -> Int32).self)(0)
        }
        // On Linux, 5 resets the peak of the resident memory to its current value.
        guard let file = FileHandle(forWritingAtPath: "/proc/self/clear_refs") else { return }
        try? file.write(contentsOf: Data("5".utf8))
    }

    /// The peak of the resident memory, in bytes; nil if the system does not report it.
    package static var bytes: Int? {
        #if os(Linux)
            // Files in /proc report a size of 0, so read to the end.
            guard let file = FileHandle(forReadingAtPath: "/proc/self/status"), let data = try? file.readToEnd() else {
                return nil
            }
            let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 << 10 }
        #else
            var usage = rusage()
            return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : nil
        #endif
    }
}
