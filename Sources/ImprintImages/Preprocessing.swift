internal import CImprintKernels
public import Foundation
internal import ImprintCore

/// The preprocessing of photos for a network, stored in the model file so that training and prediction match.
///
/// A photo is decoded, turned upright, scaled to `width` x `height` and converted to sRGB. Then each sample (0…255) becomes
/// (sample − mean) · scale, channel by channel.
public struct Preprocessing: Codable, Hashable, Sendable {
    /// The width of the input, in pixels.
    public var width: Int
    /// The height of the input, in pixels.
    public var height: Int
    /// 3 for red, green and blue; 1 for grey, the luma of Rec 601.
    public var channels: Int
    /// The scaling of a photo to the input size.
    public var cropAndScale: CropAndScale
    /// The mean to subtract from the samples (0…255) of each channel; one value per channel.
    public var mean: [Float]
    /// The factor for each channel, applied after the mean is subtracted; one value per channel, not 0.
    public var scale: [Float]
    /// The colour space of the samples; always "sRGB".
    public var colorSpace: String

    /// Creates a preprocessing that maps samples to −1…1.
    /// - Parameters:
    ///   - width: The width of the input in pixels, at least 1.
    ///   - height: The height of the input in pixels, at least 1.
    ///   - channels: 3 for red, green and blue; 1 for grey.
    ///   - cropAndScale: The scaling of a photo to the input size.
    public init(width: Int, height: Int, channels: Int = 3, cropAndScale: CropAndScale = .centerCrop) {
        precondition(width > 0 && height > 0, "an input must have at least one pixel, not \(width)x\(height)")
        precondition(channels == 1 || channels == 3, "an input must have 1 or 3 channels, not \(channels)")
        self.width = width
        self.height = height
        self.channels = channels
        self.cropAndScale = cropAndScale
        mean = Array(repeating: 127.5, count: channels)
        scale = Array(repeating: 1 / 127.5, count: channels)
        colorSpace = "sRGB"
    }

    /// The first invalid setting, or nil if all are valid; validates a preprocessing from a file.
    public var problem: String? {
        let side = 1...(1 << 14)
        if !side.contains(width) || !side.contains(height) {
            return "the size \(width)x\(height), expected 1x1 to 16384x16384"
        }
        if channels != 1 && channels != 3 { return "\(channels) channels, expected 1 or 3" }
        if mean.count != channels || scale.count != channels {
            return "\(counted(mean.count, "mean")) and \(counted(scale.count, "scale")), expected \(channels) of each"
        }
        if !(mean + scale).allSatisfy(\.isFinite) { return "a mean or scale that is not finite" }
        if scale.contains(0) { return "a scale of 0, which makes all images the same" }
        if colorSpace != "sRGB" { return "the colour space \"\(colorSpace)\", expected \"sRGB\"" }
        return nil
    }

    /// Reads a photo and scales it to the input size.
    /// - Throws: `ImageError` if the file cannot be read as an image.
    public func prepare(_ url: URL) throws(ImageError) -> RasterImage {
        prepare(try StoredImage(url, coveringShortSide: shortSideToDecode))
    }

    /// The minimum short side of a photo to decode.
    package var shortSideToDecode: Int { ImageFile.shortSideToDecode(covering: max(width, height)) }

    /// Scales a photo to the input size.
    package func prepare(_ stored: StoredImage) -> RasterImage {
        // Alpha must be flattened in sRGB, and the borders of `scaleFit` are not always symmetric.
        guard stored.image.channels == 3, cropAndScale != .scaleFit else { return prepare(stored.upright) }
        // A small image has fewer pixels to rotate and fewer colours to convert.
        let (columns, rows) = stored.orientation.swapsSides ? (height, width) : (width, height)
        let fitted = stored.orientation.upright(cropAndScale.apply(stored.image, width: columns, height: rows))
        return (stored.profile?.convert(fitted) ?? fitted).converted(toChannels: channels)
    }

    /// Scales an upright image to the input size; transparency is flattened on white, as it is for files.
    public func prepare(_ image: RasterImage) -> RasterImage {
        let fitted = cropAndScale.apply(image.flattenedOnWhite(), width: width, height: height)
        return fitted.converted(toChannels: channels)
    }

    /// Writes a preprocessed image in the layout of the network input: [height, width, channels], channels fastest.
    /// - Parameters:
    ///   - image: An image that `prepare(_:)` returned; another size or number of channels is a programming error.
    ///   - values: The target, with room for the samples of the image; the remaining values do not change.
    public func normalize(_ image: RasterImage, into values: UnsafeMutableBufferPointer<Float>) {
        precondition(
            image.width == width && image.height == height && image.channels == channels,
            "the image is \(image.width)x\(image.height)x\(image.channels), not \(width)x\(height)x\(channels)")
        image.samples.withUnsafeBufferPointer { normalize($0, into: values) }
    }

    /// Writes the samples of whole preprocessed images in the layout of the network input.
    package func normalize(_ samples: UnsafeBufferPointer<UInt8>, into values: UnsafeMutableBufferPointer<Float>) {
        precondition(values.count >= samples.count, "\(values.count) values are too few for \(samples.count) samples")
        precondition(
            mean.count == channels && scale.count == channels,
            "there are \(mean.count) means and \(scale.count) scales for \(channels) channels")
        imprint_normalize_samples(
            samples.baseAddress, values.baseAddress, samples.count / channels, channels, mean, scale)
    }
}

extension RasterImage {
    /// Converts the image to grey (1 channel) or colour (3 channels).
    package func converted(toChannels count: Int) -> RasterImage {
        precondition(channels != 4, "flatten transparency first")
        guard count != channels else { return self }
        var converted = [UInt8](repeating: 0, count: width * height * count)
        for pixel in 0..<(width * height) {
            let offset = pixel * channels
            if count == 3 {
                for channel in 0..<3 {
                    converted[pixel * 3 + channel] = samples[offset + min(channel, channels - 1)]
                }
            } else {
                let (red, green, blue) = (Int(samples[offset]), Int(samples[offset + 1]), Int(samples[offset + 2]))
                converted[pixel] = UInt8((299 * red + 587 * green + 114 * blue + 500) / 1000)
            }
        }
        return RasterImage(width: width, height: height, channels: count, samples: converted)
    }
}
