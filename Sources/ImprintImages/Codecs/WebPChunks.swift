/// The chunks of a WebP's RIFF container, for metadata that the decoder does not report.
struct WebPChunks: Sequence, IteratorProtocol {
    private let bytes: ArraySlice<UInt8>
    private var position = 12  // past "RIFF", the size, "WEBP"

    /// Whether the file has the number of bytes that its header states.
    let isWhole: Bool

    init(_ bytes: [UInt8]) {
        let end = bytes.count < 12 ? Int.max : 8 + bytes[...].littleEndian(at: 4, bytes: 4)
        isWhole = end <= bytes.count
        // Bytes past the end are not part of the image.
        self.bytes = bytes.prefix(end)
    }

    /// Returns the next chunk; nil after the last complete chunk.
    mutating func next() -> (type: String, content: ArraySlice<UInt8>)? {
        let overhead = 8  // type, length
        guard position + overhead <= bytes.count else { return nil }
        let content = position + overhead
        let length = bytes.littleEndian(at: position + 4, bytes: 4)
        guard length <= bytes.count - content else { return nil }
        defer { position = content + length + length % 2 }
        return (String(decoding: bytes[position..<(position + 4)], as: UTF8.self), bytes[content..<(content + length)])
    }

    func first(_ type: String) -> ArraySlice<UInt8>? { first { $0.type == type }?.content }
}

extension ArraySlice<UInt8> {
    /// Returns the little-endian integer at `offset` in the slice, which must contain it.
    func littleEndian(at offset: Int, bytes: Int) -> Int {
        dropFirst(offset).prefix(bytes).reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
