internal import CImprintKernels
public import Foundation

/// How a photo becomes a network's input: stored in the model file, so that training and prediction do the same.
///
/// A photo is decoded, turned upright, fitted into `width` x `height`, brought to sRGB, and each sample (0…255) becomes
/// (sample − mean) · scale, channel by channel.
public struct Preprocessing: Codable, Hashable, Sendable {
    /// The width of the input, in pixels.
    public var width: Int
    /// The height of the input, in pixels.
    public var height: Int
    /// 3 for red, green and blue; 1 for grey, the luma of Rec 601.
    public var channels: Int
    /// How a photo is fitted into the input.
    public var cropAndScale: CropAndScale
    /// What is subtracted from the samples, one number a channel.
    public var mean: [Float]
    /// What the difference is multiplied by, one number a channel.
    public var scale: [Float]
    /// The colour space of the samples; always "sRGB".
    public var colorSpace: String

    /// Makes rules that map samples to −1…1.
    public init(width: Int, height: Int, channels: Int = 3, cropAndScale: CropAndScale = .centerCrop) {
        precondition(width > 0 && height > 0, "an input has at least one pixel, not \(width)x\(height)")
        precondition(channels == 1 || channels == 3, "an input has 1 or 3 channels, not \(channels)")
        self.width = width
        self.height = height
        self.channels = channels
        self.cropAndScale = cropAndScale
        mean = Array(repeating: 127.5, count: channels)
        scale = Array(repeating: 1 / 127.5, count: channels)
        colorSpace = "sRGB"
    }

    /// What is wrong with the rules, or nil if nothing is; for rules that were read from a file.
    public var problem: String? {
        let side = 1...(1 << 14)
        if !side.contains(width) || !side.contains(height) {
            return "the size \(width)x\(height), expected 1x1 to 16384x16384"
        }
        if channels != 1 && channels != 3 { return "\(channels) channels, expected 1 or 3" }
        if mean.count != channels || scale.count != channels {
            return "\(mean.count) means and \(scale.count) scales, expected \(channels) of each"
        }
        if !(mean + scale).allSatisfy(\.isFinite) { return "a mean or scale that is not a finite number" }
        if scale.contains(0) { return "a scale of 0, which makes all images the same" }
        if colorSpace != "sRGB" { return "the colour space \"\(colorSpace)\", expected \"sRGB\"" }
        return nil
    }

    /// Reads a photo and fits it into the input.
    /// - Throws: `ImageError` if the file cannot be read as an image.
    public func prepare(_ url: URL) throws(ImageError) -> RasterImage {
        prepare(try StoredPicture(url, coveringShortSide: shortSideToDecode))
    }

    /// The short side of a photo to decode at least.
    package var shortSideToDecode: Int { ImageFile.shortSideToDecode(covering: max(width, height)) }

    /// Fits a photo into the input.
    package func prepare(_ stored: StoredPicture) -> RasterImage {
        // A picture with alpha is laid on white in sRGB, and the borders of `scaleFit` are not always symmetric.
        guard stored.image.channels == 3, cropAndScale != .scaleFit else { return prepare(stored.upright) }
        // Once the picture is small, there are fewer pixels to turn and fewer colours to convert.
        let (columns, rows) = stored.orientation.swapsSides ? (height, width) : (width, height)
        let fitted = stored.orientation.upright(cropAndScale.apply(stored.image, width: columns, height: rows))
        return (stored.profile?.convert(fitted) ?? fitted).converted(toChannels: channels)
    }

    /// Fits an upright picture into the input; transparency is laid on white, as it is where a file is read.
    public func prepare(_ image: RasterImage) -> RasterImage {
        let fitted = cropAndScale.apply(image.laidOnWhite(), width: width, height: height)
        return fitted.converted(toChannels: channels)
    }

    /// Writes a prepared image as the network reads it: [height, width, channels], channels fastest.
    public func normalize(_ image: RasterImage, into values: UnsafeMutableBufferPointer<Float>) {
        precondition(
            image.width == width && image.height == height && image.channels == channels,
            "the image is \(image.width)x\(image.height)x\(image.channels), not \(width)x\(height)x\(channels)")
        image.samples.withUnsafeBufferPointer { normalize($0, into: values) }
    }

    /// Writes the samples of whole prepared images as the network reads them.
    package func normalize(_ samples: UnsafeBufferPointer<UInt8>, into values: UnsafeMutableBufferPointer<Float>) {
        precondition(values.count >= samples.count, "\(values.count) numbers are too few for \(samples.count) samples")
        imprint_normalize_samples(
            samples.baseAddress, values.baseAddress, samples.count / channels, channels, mean, scale)
    }
}

extension RasterImage {
    /// The same picture in grey (1 channel) or colour (3 channels).
    func converted(toChannels wanted: Int) -> RasterImage {
        precondition(channels != 4, "transparency is laid on white first")
        guard wanted != channels else { return self }
        var converted = RasterImage(width: width, height: height, channels: wanted)
        for pixel in 0..<(width * height) {
            let place = pixel * channels
            if wanted == 3 {
                for channel in 0..<3 {
                    converted.samples[pixel * 3 + channel] = samples[place + min(channel, channels - 1)]
                }
            } else {
                let (red, green, blue) = (Int(samples[place]), Int(samples[place + 1]), Int(samples[place + 2]))
                converted.samples[pixel] = UInt8((299 * red + 587 * green + 114 * blue + 500) / 1000)
            }
        }
        return converted
    }
}
