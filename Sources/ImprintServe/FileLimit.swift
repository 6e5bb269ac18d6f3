internal import Foundation

/// The maximum number of files and connections that this process may open at the same time (`ulimit -n`).
enum FileLimit {
    #if os(Linux)
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let resource = RLIMIT_NOFILE
    #endif

    /// Raises the soft limit to at least `count`, within the hard limit.
    /// - Returns: nil if the process may open `count` files; otherwise, the number that it may open.
    static func raise(to count: Int) -> Int? {
        var limits = rlimit()
        // Without a limit, the number is larger than every Int.
        guard getrlimit(resource, &limits) == 0, limits.rlim_cur < rlim_t(count) else { return nil }
        let current = Int(limits.rlim_cur)
        guard limits.rlim_max >= rlim_t(count) else { return Int(limits.rlim_max) }
        limits.rlim_cur = rlim_t(count)
        return setrlimit(resource, &limits) == 0 ? nil : current
    }
}
