internal import Foundation

/// How often this process has asked for memory.
enum AllocationCounter {
    private typealias Count = @convention(c) () -> Int64

    /// The counter of the library of the package Benchmarks, where that was loaded in front of the C library.
    private static let counter: Count? = {
        #if os(Linux)
            dlsym(nil, "allocation_count").map { unsafeBitCast($0, to: Count.self) }
        #else
            nil
        #endif
    }()

    /// How many blocks were asked for since the process began; nil if they are not counted.
    static var count: Int64? {
        // The library can be loaded if it cannot count, and then says −1.
        guard let count = counter?(), count >= 0 else { return nil }
        return count
    }
}

/// The most memory that this process has held.
enum PeakMemory {
    /// Gives back what is free, and forgets the peak so far, where the system can.
    static func reset() {
        // Swift's view of the C library lacks what glibc's malloc has beyond the standard.
        if let trim = dlsym(nil, "malloc_trim") {
            _ = unsafeBitCast(trim, to: (@convention(c) (Int) -> Int32).self)(0)
        }
        // Linux takes 5 to mean: the peak of the resident memory is what is resident now.
        guard let file = FileHandle(forWritingAtPath: "/proc/self/clear_refs") else { return }
        try? file.write(contentsOf: Data("5".utf8))
    }

    /// The peak of the resident memory, in bytes; nil if the system does not tell.
    static var bytes: Int? {
        #if os(Linux)
            // A file of no size, which has to be read as it comes.
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
