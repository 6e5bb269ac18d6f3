#if canImport(ImageIO)
    internal import zlib
#else
    internal import CPNG
#endif

/// The content of compressed data in the format zlib or gzip.
struct InflatedData {
    /// The content up to its end.
    let bytes: [UInt8]
    let end: End

    /// The reason why the content ends.
    enum End {
        case complete
        /// The content has more bytes than the limit.
        case limit
        /// The data is damaged or cut short.
        case damaged
    }

    /// Decompresses data.
    /// - Parameter limit: The maximum number of bytes of the content, because a few kilobytes can decompress to gigabytes.
    init(_ data: [UInt8], limit: Int) {
        let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
        stream.initialize(to: z_stream())
        defer { stream.deallocate() }
        // 15 bits are the largest window, and 32 more accept the headers of zlib and gzip.
        guard inflateInit2_(stream, 15 + 32, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
            (bytes, end) = ([], .damaged)
            return
        }
        defer { inflateEnd(stream) }
        var content: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 14)
        var status = Z_OK
        data.withUnsafeBufferPointer { data in
            stream.pointee.next_in = UnsafeMutablePointer(mutating: data.baseAddress)
            stream.pointee.avail_in = uInt(clamping: data.count)
            while status == Z_OK, content.count <= limit {
                let count = chunk.withUnsafeMutableBufferPointer { chunk -> Int in
                    stream.pointee.next_out = chunk.baseAddress
                    stream.pointee.avail_out = uInt(chunk.count)
                    status = inflate(stream, Z_NO_FLUSH)
                    return chunk.count - Int(stream.pointee.avail_out)
                }
                content += chunk.prefix(count)
            }
        }
        bytes = content
        end = content.count > limit ? .limit : status == Z_STREAM_END ? .complete : .damaged
    }
}
