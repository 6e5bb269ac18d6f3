// swift-format-ignore-file
public typealias Bytef = UInt8
public typealias uInt = UInt32
public typealias uLong = UInt

public let ZLIB_VERSION = "1.2.12"
public let Z_NO_FLUSH: Int32 = 0
public let Z_OK: Int32 = 0
public let Z_STREAM_END: Int32 = 1

public struct z_stream {
    public var next_in: UnsafeMutablePointer<Bytef>!
    public var avail_in: uInt = 0
    public var next_out: UnsafeMutablePointer<Bytef>!
    public var avail_out: uInt = 0
    public init() {}
}

public func crc32(_ crc: uLong, _ buf: UnsafePointer<Bytef>!, _ len: uInt) -> uLong { fatalError() }

public func inflateInit2_(
    _ strm: UnsafeMutablePointer<z_stream>!, _ windowBits: Int32, _ version: UnsafePointer<CChar>!, _ stream_size: Int32
) -> Int32 { fatalError() }

public func inflate(_ strm: UnsafeMutablePointer<z_stream>!, _ flush: Int32) -> Int32 { fatalError() }

@discardableResult
public func inflateEnd(_ strm: UnsafeMutablePointer<z_stream>!) -> Int32 { fatalError() }
