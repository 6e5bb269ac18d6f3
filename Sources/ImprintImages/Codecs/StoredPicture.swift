package import Foundation

/// What a file says of its picture before any of it is decoded.
struct ImageHeader {
    let format: ImageFormat
    /// The size of the picture as it is stored, in pixels.
    let width: Int
    let height: Int
    var model = ColorModel.rgb
    var hasAlpha = false
    var isAnimated = false
    /// Whether the rows of a PNG come in several passes.
    var isInterlaced = false
    /// About how many bytes the decoder takes besides the result.
    var decoderByteCount = 0
    var orientation = Orientation.up
    /// What the file says of its colours; nil is sRGB.
    var colors: ColorDescription?

    init(format: ImageFormat, width: Int, height: Int) {
        self.format = format
        self.width = width
        self.height = height
    }

    /// The way to sRGB; nil where the file says nothing.
    var profile: ColorProfile? { ColorProfile.of(colors, model: model) }

    /// Reads what the file says, and checks that its size is within the limit.
    init(_ bytes: [UInt8], file: URL) throws(ImageError) {
        switch FileKind(bytes) {
        case .image(.jpeg): self = try JPEG.header(bytes, file: file)
        case .image(.png): self = try PNG.header(bytes, file: file)
        case .image(.webp): self = try WebP.header(bytes, file: file)
        case .image(.heic): self = try HEIC.header(bytes, file: file)
        case .otherImage(let name): throw .unsupported(file: file, what: name)
        case .notAnImage(let found): throw .notAnImage(file: file, found: found)
        }
        guard width > 0, height > 0 else { throw .truncated(file: file, reason: "the picture has no size") }
        guard width <= ImageFile.pixelLimit / height else {
            throw .tooLarge(file: file, width: width, height: height, limit: ImageFile.pixelLimit)
        }
    }
}

/// A picture as its file stores it: not yet upright, and its colours not yet in sRGB.
package struct StoredPicture: Sendable {
    /// Red, green and blue, with alpha where the file has it.
    let image: RasterImage
    let orientation: Orientation
    /// The way to sRGB; nil where the samples are sRGB.
    let profile: ColorProfile?

    /// Takes a picture in memory, whose samples are sRGB.
    package init(_ image: RasterImage, orientation: Orientation = .up) {
        (self.image, self.orientation, profile) = (image, orientation, nil)
    }

    /// Takes pixels.
    package init(_ pixels: PixelBuffer, orientation: Orientation) { self.init(pixels.image, orientation: orientation) }

    /// Decodes a file; a JPEG or a very large picture may be shrunk to what covers the short side given.
    package init(_ url: URL, coveringShortSide: Int?) throws(ImageError) {
        try self.init(ImageFile.read(url), named: url, coveringShortSide: coveringShortSide)
    }

    /// Decodes the bytes of a file, which errors call by the name given.
    package init(_ bytes: [UInt8], named file: URL, coveringShortSide: Int?) throws(ImageError) {
        try self.init(bytes, ImageHeader(bytes, file: file), file: file, coveringShortSide: coveringShortSide)
    }

    /// Decodes the bytes of a file whose header was read.
    init(_ bytes: [UInt8], _ header: ImageHeader, file: URL, coveringShortSide: Int?) throws(ImageError) {
        orientation = header.orientation
        let reduction = Reduction(header, covering: coveringShortSide)
        let eighths =
            header.format == .jpeg
            ? JPEG.eighths(shortSide: min(header.width, header.height), covering: coveringShortSide) : 8
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
        // No picture in memory has four inks: the decoder converts those.
        profile = header.model == .cmyk ? nil : header.profile
    }

    private init(_ image: RasterImage, _ orientation: Orientation, _ profile: ColorProfile?) {
        (self.image, self.orientation, self.profile) = (image, orientation, profile)
    }

    /// The picture upright and in sRGB, with alpha where the file has it.
    package var upright: RasterImage { orientation.upright(profile?.convert(image) ?? image) }

    /// The same picture, stored in another way than its file says.
    package func oriented(_ orientation: Orientation) -> StoredPicture { StoredPicture(image, orientation, profile) }

    /// A part of the upright picture, in whole pixels.
    package func cropped(to part: NormalizedRectangle) -> StoredPicture {
        guard part != .all else { return self }
        let (columns, rows) = orientation.storedPixels(of: part, width: image.width, height: image.height)
        return StoredPicture(image.cropped(columns, rows), orientation, profile)
    }
}

extension RasterImage {
    /// The pixels of these columns and rows.
    fileprivate func cropped(_ columns: Range<Int>, _ rows: Range<Int>) -> RasterImage {
        var part: [UInt8] = []
        part.reserveCapacity(columns.count * rows.count * channels)
        for row in rows {
            part +=
                samples[
                    ((row * width + columns.lowerBound) * channels)..<((row * width + columns.upperBound) * channels)]
        }
        return RasterImage(width: columns.count, height: rows.count, channels: channels, samples: part)
    }
}
