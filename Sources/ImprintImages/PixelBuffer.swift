internal import ImprintCore

/// Pixels in memory, for example from a camera or a drawing library: 8 bits per channel, sRGB, rows from top to bottom.
public struct PixelBuffer: Sendable {
    /// The order of the channels in a pixel, one byte each.
    public enum Layout: String, Sendable, CaseIterable {
        /// One byte, from black to white.
        case gray
        /// Red, green, blue.
        case rgb
        /// Blue, green, red, as in OpenCV.
        case bgr
        /// Red, green, blue and alpha, not premultiplied.
        case rgba
        /// Blue, green, red and alpha, not premultiplied, as from the cameras of Apple devices.
        case bgra

        /// The number of bytes in a pixel.
        public var bytesPerPixel: Int {
            switch self {
            case .gray: 1
            case .rgb, .bgr: 3
            case .rgba, .bgra: 4
            }
        }
    }

    /// The image as stored.
    let image: RasterImage

    /// Creates a buffer from pixels.
    /// - Parameters:
    ///   - width: The number of columns, at least 1.
    ///   - height: The number of rows, at least 1.
    ///   - layout: The order of the channels.
    ///   - bytesPerRow: The number of bytes from the start of a row to the start of the next; nil if rows have no padding.
    ///   - bytes: The rows; bytes after the last row are ignored.
    /// - Throws: `ImageError.invalidPixels` if the size is invalid or there are too few bytes.
    public init<Bytes: Collection<UInt8>>(
        width: Int, height: Int, layout: Layout, bytesPerRow: Int? = nil, bytes: Bytes
    ) throws(ImageError) {
        guard width > 0, height > 0, width <= ImageFile.pixelLimit / height else {
            throw .invalidPixels(
                found: "\(width)x\(height) pixels",
                expected: "at least 1x1 and at most \(ImageFile.pixelLimit / 1_000_000) million")
        }
        let row = width * layout.bytesPerPixel
        let stride = bytesPerRow ?? row
        guard stride >= row else {
            throw .invalidPixels(
                found: "\(counted(stride, "byte")) per row",
                expected: "at least \(row) for \(width) pixels of the layout \(layout.rawValue)")
        }
        let (all, overflow) = stride.multipliedReportingOverflow(by: height - 1)
        guard !overflow, all <= Int.max - row, bytes.count >= all + row else {
            throw .invalidPixels(
                found: counted(bytes.count, "byte"),
                expected: "\(counted(height, "row")) of \(counted(stride, "byte")); the last row may end after "
                    + counted(row, "byte"))
        }
        let samples =
            bytes.withContiguousStorageIfAvailable { Self.samples($0, row: row, stride: stride, rows: height, layout) }
            ?? Array(bytes).withUnsafeBufferPointer { Self.samples($0, row: row, stride: stride, rows: height, layout) }
        image = RasterImage(width: width, height: height, channels: layout.bytesPerPixel, samples: samples)
    }

    private static func samples(
        _ bytes: UnsafeBufferPointer<UInt8>, row: Int, stride: Int, rows: Int, _ layout: Layout
    ) -> [UInt8] {
        var samples = [UInt8](unsafeUninitializedCapacity: row * rows) { target, count in
            for index in 0..<rows {
                let source = UnsafeBufferPointer(rebasing: bytes[(index * stride)..<(index * stride + row)])
                _ = UnsafeMutableBufferPointer(rebasing: target[(index * row)..<((index + 1) * row)])
                    .initialize(fromContentsOf: source)
            }
            count = row * rows
        }
        if layout == .bgr || layout == .bgra {
            let step = layout.bytesPerPixel
            samples.withUnsafeMutableBufferPointer { samples in
                for pixel in Swift.stride(from: 0, to: samples.count, by: step) { samples.swapAt(pixel, pixel + 2) }
            }
        }
        return samples
    }
}
