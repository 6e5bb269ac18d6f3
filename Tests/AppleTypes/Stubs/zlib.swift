// swift-format-ignore-file
public typealias Bytef = UInt8
public typealias uInt = UInt32
public typealias uLong = UInt
public typealias uLongf = uLong

public let Z_OK: Int32 = 0
public let Z_BUF_ERROR: Int32 = -5

public func crc32(_ crc: uLong, _ buf: UnsafePointer<Bytef>!, _ len: uInt) -> uLong { fatalError() }

public func uncompress(
    _ dest: UnsafeMutablePointer<Bytef>!, _ destLen: UnsafeMutablePointer<uLongf>!, _ source: UnsafePointer<Bytef>!,
    _ sourceLen: uLong
) -> Int32 { fatalError() }
