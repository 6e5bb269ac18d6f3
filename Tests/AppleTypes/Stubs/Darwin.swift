// swift-format-ignore-file
// The names of Darwin that Imprint uses and Glibc lacks, or declares with other types.
@_exported import Glibc

public func sysctlbyname(
    _ name: UnsafePointer<CChar>!, _ oldp: UnsafeMutableRawPointer!, _ oldlenp: UnsafeMutablePointer<Int>!,
    _ newp: UnsafeMutableRawPointer!, _ newlen: Int
) -> Int32 { fatalError() }

public struct malloc_zone_t {}

public func malloc_zone_pressure_relief(_ zone: UnsafeMutablePointer<malloc_zone_t>!, _ goal: Int) -> Int {
    fatalError()
}

public func pthread_create(
    _ thread: UnsafeMutablePointer<pthread_t?>!, _ attributes: UnsafePointer<pthread_attr_t>?,
    _ body: @convention(c) (UnsafeMutableRawPointer) -> UnsafeMutableRawPointer?, _ argument: UnsafeMutableRawPointer?
) -> Int32 { fatalError() }

public let RUSAGE_SELF: Int32 = 0

public func getrusage(_ who: Int32, _ usage: UnsafeMutablePointer<rusage>!) -> Int32 { fatalError() }

extension stat {
    public var st_mtimespec: timespec { fatalError() }
    public var st_ctimespec: timespec { fatalError() }
}
