/// The EXIF orientation (tag 0x0112) of a photo: how its stored rows and columns relate to the upright image.
///
/// The raw values are the same as in EXIF 2.32 and TIFF 6.0. The comment of each case names the transform that makes the stored
/// image upright.
public enum Orientation: Int, Sendable, CaseIterable {
    /// The image is stored upright.
    case up = 1
    /// Mirror left and right.
    case upMirrored = 2
    /// Rotate by 180 degrees.
    case down = 3
    /// Mirror top and bottom.
    case downMirrored = 4
    /// Swap rows and columns (mirror left and right, then rotate 90 degrees counter-clockwise).
    case leftMirrored = 5
    /// Rotate 90 degrees clockwise.
    case right = 6
    /// Mirror left and right, then rotate 90 degrees clockwise.
    case rightMirrored = 7
    /// Rotate 90 degrees counter-clockwise.
    case left = 8

    /// Whether the upright image swaps the width and height of the stored image.
    public var swapsSides: Bool { rawValue >= 5 }

    /// Turns an image upright that is stored with this orientation.
    public func upright(_ image: RasterImage) -> RasterImage {
        guard self != .up else { return image }
        let (width, height) = swapsSides ? (image.height, image.width) : (image.width, image.height)
        let (first, right, down) = steps(width: image.width, height: image.height)
        let samples = [UInt8](unsafeUninitializedCapacity: image.samples.count) { target, count in
            image.samples.withUnsafeBufferPointer { source in
                // With a constant number of channels the compiler unrolls the innermost loop.
                switch image.channels {
                case 1: copy(source, to: target, width, height, channels: 1, first, right, down)
                case 3: copy(source, to: target, width, height, channels: 3, first, right, down)
                default: copy(source, to: target, width, height, channels: 4, first, right, down)
                }
            }
            count = image.samples.count
        }
        return RasterImage(width: width, height: height, channels: image.channels, samples: samples)
    }

    /// Returns the offset of the first upright pixel in a stored image of this size, and the strides to the right and down.
    ///
    /// Upright pixel (x, y) is stored pixel `first + x * right + y * down`.
    private func steps(width: Int, height: Int) -> (first: Int, right: Int, down: Int) {
        let (lastColumn, lastRow) = (width - 1, height - 1)
        return switch self {
        case .up: (0, 1, width)
        case .upMirrored: (lastColumn, -1, width)
        case .down: (lastRow * width + lastColumn, -1, -width)
        case .downMirrored: (lastRow * width, 1, -width)
        case .leftMirrored: (0, width, 1)
        case .right: (lastRow * width, -width, 1)
        case .rightMirrored: (lastRow * width + lastColumn, -width, -1)
        case .left: (lastColumn, width, -1)
        }
    }

    /// Returns the columns and rows in a stored image of this size that hold a part of the upright image.
    func storedPixels(
        of part: NormalizedRectangle, width: Int, height: Int
    ) -> (columns: Range<Int>, rows: Range<Int>) {
        let (columns, rows) = part.pixels(
            width: swapsSides ? height : width, height: swapsSides ? width : height)
        let (first, right, down) = steps(width: width, height: height)
        let corner = first + columns.lowerBound * right + rows.lowerBound * down
        let opposite = first + (columns.upperBound - 1) * right + (rows.upperBound - 1) * down
        let (x, y) = ([corner % width, opposite % width].sorted(), [corner / width, opposite / width].sorted())
        return (x[0]..<(x[1] + 1), y[0]..<(y[1] + 1))
    }
}

@inline(__always)
private func copy(
    _ source: UnsafeBufferPointer<UInt8>, to target: UnsafeMutableBufferPointer<UInt8>, _ width: Int, _ height: Int,
    channels: Int, _ first: Int, _ right: Int, _ down: Int
) {
    var next = 0
    for y in 0..<height {
        var pixel = (first + y * down) * channels
        for _ in 0..<width {
            for channel in 0..<channels { target[next + channel] = source[pixel + channel] }
            next += channels
            pixel += right * channels
        }
    }
}

extension Orientation {
    /// Creates an orientation from an EXIF block (a TIFF header and its first directory); nil if the block has none.
    ///
    /// In a JPEG, "Exif" precedes the block; some writers add it in other formats too. The block comes from a file, so no
    /// offset or count in it can be trusted.
    init?(exif block: ArraySlice<UInt8>) {
        let prefix = Array("Exif\0\0".utf8)
        guard let reader = TIFFReader(block.starts(with: prefix) ? block.dropFirst(prefix.count) : block),
            let directory = reader.integer(at: 4, bytes: 4), let entries = reader.integer(at: directory, bytes: 2)
        else { return nil }
        let orientationTag = 0x0112
        let byteCounts = [3: 2, 4: 4]  // of the field types SHORT, which the specification requires, and LONG
        for entry in 0..<entries {
            let start = directory + 2 + 12 * entry
            guard let tag = reader.integer(at: start, bytes: 2) else { return nil }
            if tag == orientationTag {
                guard let type = reader.integer(at: start + 2, bytes: 2), let bytes = byteCounts[type],
                    let value = reader.integer(at: start + 8, bytes: bytes)
                else { return nil }
                self.init(rawValue: value)
                return
            }
        }
        return nil
    }
}

/// Reads integers from a TIFF block in the byte order of its header.
struct TIFFReader {
    let block: ArraySlice<UInt8>
    let isBigEndian: Bool

    init?(_ block: ArraySlice<UInt8>) {
        switch Array(block.prefix(4)) {
        case [0x49, 0x49, 42, 0]: isBigEndian = false
        case [0x4D, 0x4D, 0, 42]: isBigEndian = true
        default: return nil
        }
        self.block = block
    }

    func integer(at offset: Int, bytes: Int) -> Int? {
        guard offset <= block.count - bytes else { return nil }
        let field = block[(block.startIndex + offset)...].prefix(bytes)
        return isBigEndian
            ? field.reduce(0) { $0 << 8 | Int($1) } : field.reversed().reduce(0) { $0 << 8 | Int($1) }
    }
}
