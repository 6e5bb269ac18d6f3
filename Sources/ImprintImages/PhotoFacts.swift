public import Foundation

/// What a photo file says of itself, without being decoded.
public struct PhotoFacts: Sendable, Hashable {
    /// The width and height of the stored picture, in pixels.
    public let width: Int
    /// The height of the stored picture, in pixels.
    public let height: Int
    /// What makes the stored picture upright.
    public let orientation: Orientation
    /// What the colour profile calls itself ("Display P3"); nil where there is none, or none that is read.
    public let profile: String?
    /// Whether the file holds an animation.
    public let isAnimated: Bool

    /// Reads what the file says; nil where it cannot be read as an image.
    public init?(reading url: URL) {
        guard let data = try? Data(contentsOf: url) else { return nil }
        let bytes = [UInt8](data)
        switch FileKind(bytes) {
        case .jpeg:
            guard let size = JPEGSegments(bytes).size else { return nil }
            (width, height) = size
            orientation = JPEGSegments(bytes).orientation
            isAnimated = false
        case .png:
            guard let size = PNGChunks(bytes).size else { return nil }
            (width, height) = size
            orientation = PNGChunks(bytes).orientation
            isAnimated = PNGChunks(bytes).contains { $0.type == "acTL" }
        case .otherImage, .notAnImage: return nil
        }
        profile = nil
    }
}

extension JPEGSegments {
    /// The width and height in the frame header.
    fileprivate var size: (Int, Int)? {
        let others: Set<UInt8> = [0xC4, 0xC8, 0xCC]  // tables and extensions among the markers of frames
        let frame = first { (0xC0...0xCF).contains($0.marker) && !others.contains($0.marker) }
        guard let content = frame.map({ Array($0.content) }), content.count >= 5 else { return nil }
        return (Int(content[3]) << 8 | Int(content[4]), Int(content[1]) << 8 | Int(content[2]))
    }
}

extension PNGChunks {
    /// The width and height in the header.
    fileprivate var size: (Int, Int)? {
        guard let header = first(where: { $0.type == "IHDR" }).map({ Array($0.content) }), header.count >= 8 else {
            return nil
        }
        func number(at offset: Int) -> Int { header[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) } }
        return (number(at: 0), number(at: 4))
    }
}
