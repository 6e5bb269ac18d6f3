package import Foundation

/// The metadata of an image, read before decoding.
struct ImageHeader {
    let format: ImageFormat
    /// The size of the image as stored, in pixels.
    let width: Int
    let height: Int
    var model = ColorModel.rgb
    var hasAlpha = false
    var isAnimated = false
    /// Whether a PNG stores its rows in several passes.
    var isInterlaced = false
    /// The approximate number of bytes that the decoder needs besides the result.
    var decoderByteCount = 0
    var orientation = Orientation.up
    /// The colour description of the file; nil means sRGB.
    var colors: ColorDescription?

    init(format: ImageFormat, width: Int, height: Int) {
        self.format = format
        self.width = width
        self.height = height
    }

    #if canImport(ImageIO)
        /// The colour profile; nil if the file has no colour description.
        ///
        /// The decoder converts the colours.
        var profile: ColorProfile?
    #else
        /// The conversion to sRGB; nil if the file has no colour description.
        var profile: ColorProfile? { ColorProfile.of(colors, model: model) }
    #endif

    /// Creates a header from the bytes of a file, and checks that the size is within the limit.
    init(_ bytes: [UInt8], file: URL) throws(ImageError) {
        switch FileKind(bytes) {
        case .image(.jpeg): self = try JPEG.header(bytes, file: file)
        case .image(.png): self = try PNG.header(bytes, file: file)
        case .image(.webp): self = try WebP.header(bytes, file: file)
        case .image(.heic): self = try HEIC.header(bytes, file: file)
        case .otherImage(let format): throw .unsupported(file: file, found: format.rawValue)
        case let kind: throw .notAnImage(file: file, found: kind.name)
        }
        guard width > 0, height > 0 else { throw .truncated(file: file, reason: "the image has no size") }
        guard width <= ImageFile.pixelLimit / height else {
            throw .tooLarge(file: file, width: width, height: height, limit: ImageFile.pixelLimit)
        }
    }
}

/// An image as stored in its file: not yet upright, and not yet converted to sRGB.
package struct StoredImage: Sendable {
    /// Red, green and blue, with alpha if the file has it.
    let image: RasterImage
    let orientation: Orientation
    /// The conversion to sRGB; nil if the samples are sRGB.
    let profile: ColorProfile?
    /// Whether the image was scaled down during decoding.
    package let isReduced: Bool

    /// Creates a stored image from an image in memory, whose samples are sRGB.
    package init(_ image: RasterImage, orientation: Orientation = .up) {
        self.init(image, orientation, nil, isReduced: false)
    }

    /// Creates a stored image from pixels in memory.
    package init(_ pixels: PixelBuffer, orientation: Orientation) { self.init(pixels.image, orientation: orientation) }

    /// Creates a stored image from a file.
    ///
    /// A JPEG or a very large image may be scaled down during decoding, but its short side stays at least as long as given.
    package init(_ url: URL, coveringShortSide: Int?) throws(ImageError) {
        try self.init(ImageFile.read(url), named: url, coveringShortSide: coveringShortSide)
    }

    /// Creates a stored image from the bytes of a file; errors use the given name.
    package init(_ bytes: [UInt8], named file: URL, coveringShortSide: Int?) throws(ImageError) {
        try self.init(bytes, ImageHeader(bytes, file: file), file: file, coveringShortSide: coveringShortSide)
    }

    /// Creates a stored image from the bytes of a file whose header has been read.
    init(_ bytes: [UInt8], _ header: ImageHeader, file: URL, coveringShortSide: Int?) throws(ImageError) {
        orientation = header.orientation
        let reduction = Reduction(header, covering: coveringShortSide)
        let eighths =
            header.format == .jpeg
            ? JPEG.eighths(shortSide: min(header.width, header.height), covering: coveringShortSide) : 8
        isReduced = reduction != nil || eighths < 8
        image = try DecodingMemory.shared.withBytes(
            header.byteCount(reduction, eighths: eighths), for: header, file: file
        ) { () throws(ImageError) in
            switch header.format {
            case .jpeg: try JPEG.decode(bytes, header, file: file, eighths: eighths)
            case .png: try PNG.decode(bytes, header, file: file, reduction)
            case .webp: try WebP.decode(bytes, header, file: file, reduction)
            case .heic: try HEIC.decode(bytes, file: file, reduction)
            }
        }
        // The decoder has already converted CMYK.
        profile = header.model == .cmyk ? nil : header.profile
    }

    private init(_ image: RasterImage, _ orientation: Orientation, _ profile: ColorProfile?, isReduced: Bool) {
        (self.image, self.orientation, self.profile, self.isReduced) = (image, orientation, profile, isReduced)
    }

    /// Returns whether decoding the image again could not give more of the pixels that a short side of this length needs.
    package func covers(shortSide side: Int) -> Bool { !isReduced || min(image.width, image.height) >= side }

    /// The upright image in sRGB, with alpha if the file has it.
    package var upright: RasterImage { orientation.upright(profile?.convert(image) ?? image) }

    /// Returns the same image with a different orientation.
    package func oriented(_ orientation: Orientation) -> StoredImage {
        StoredImage(image, orientation, profile, isReduced: isReduced)
    }

    /// Returns the part of the upright image that `cropped(to:)` returns: `part`, extended to whole pixels.
    package func croppedPart(_ part: NormalizedRectangle) -> NormalizedRectangle {
        guard part != .all else { return part }
        let (width, height) = orientation.swapsSides ? (image.height, image.width) : (image.width, image.height)
        let (columns, rows) = part.pixels(width: width, height: height)
        return NormalizedRectangle(
            x: Float(columns.lowerBound) / Float(width), y: Float(rows.lowerBound) / Float(height),
            width: Float(columns.count) / Float(width), height: Float(rows.count) / Float(height))
    }

    /// Crops the upright image to `part`, extended to whole pixels.
    package func cropped(to part: NormalizedRectangle) -> StoredImage {
        guard part != .all else { return self }
        let (columns, rows) = orientation.storedPixels(of: part, width: image.width, height: image.height)
        return StoredImage(image.cropped(columns, rows), orientation, profile, isReduced: isReduced)
    }
}

extension RasterImage {
    /// Returns the pixels of these columns and rows.
    fileprivate func cropped(_ columns: Range<Int>, _ rows: Range<Int>) -> RasterImage {
        var part: [UInt8] = []
        part.reserveCapacity(columns.count * rows.count * channels)
        for row in rows {
            let start = (row * width + columns.lowerBound) * channels
            part += samples[start..<start + columns.count * channels]
        }
        return RasterImage(width: columns.count, height: rows.count, channels: channels, samples: part)
    }
}
