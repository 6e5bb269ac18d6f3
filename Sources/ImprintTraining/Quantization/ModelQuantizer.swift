public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// The settings of `ModelFile.quantized(for:options:threads:onProgress:)`.
public struct QuantizationOptions: Hashable, Sendable {
    /// The largest number of photos, which are spread evenly over the given ones; 200 by default.
    public var photos: Int
    /// The largest `QuantizationError.relativeError` of the outputs before a softmax, on photos that were not used for calibration.
    ///
    /// Layers with large errors stay in float32 until the error is at most this. Default: 0.06.
    public var errorLimit: Double

    /// Creates settings.
    public init(photos: Int = 200, errorLimit: Double = 0.06) {
        precondition(photos >= 4, "photos is \(photos), expected at least 4")
        self.photos = photos
        self.errorLimit = errorLimit
    }
}

/// A quantized model, and the effect of the quantization.
public struct QuantizedModel: Sendable {
    /// The model, whose predictions compute in int8.
    public let model: ModelFile
    /// The number of photos that determined the ranges, and the number of other photos that measured the error.
    public let calibrationPhotos, measuredPhotos: Int
    /// The names of the convolutions and dense layers that compute in int8.
    public let integerLayers: [String]
    /// The names of those that stay in float32, because their error is large.
    public let floatLayers: [String]
    /// The error on the photos that were not used for calibration.
    public let error: QuantizationError
    /// The photos that could not be read.
    public let skipped: [SkippedImage]
}

extension ModelFile {
    /// Returns the model with 8-bit integers in most convolutions and dense layers, for predictions in int8.
    ///
    /// Three quarters of the photos determine the ranges of activations (`Quantizer`). The others measure the error; if it is above the limit,
    /// the layers with the largest errors stay in float32. Weights are rounded, so predictions of the result in float32 also differ from
    /// those of this model.
    /// - Parameters:
    ///   - photos: Photos like those of later predictions; labels are not needed. At least four must be readable.
    ///   - options: The settings.
    ///   - threads: The number of threads; the result does not depend on it.
    ///   - onProgress: Called with a description of the step, and the number of finished and of all its parts.
    /// - Throws: `ImageError` if more than half of the photos cannot be read, `ImprintError.invalidSetting` if there are fewer than four
    ///   photos, if the model is already quantized, or if no layer has an error within the limit, `ImprintError.nonFiniteOutput` if an
    ///   output in float32 is not finite, `NetworkError` if there is not enough memory.
    public func quantized(
        for photos: [URL], options: QuantizationOptions = QuantizationOptions(), threads: Int = 1,
        onProgress: (_ step: String, _ done: Int, _ total: Int) -> Void = { _, _, _ in }
    ) throws -> QuantizedModel {
        guard self.parameters.quantization == nil else {
            throw ImprintError.invalidSetting(
                name: "model", found: "a quantized model", expected: "the model in float32 from which it was made")
        }
        let count = min(photos.count, options.photos)
        let chosen = (0..<count).map { photos[$0 * photos.count / count] }
        var (images, skipped): ([[Quantizer.Image]], [SkippedImage]) = ([], [])
        let outcomes = try Workers(threads).parallelMap(count, onProgress: { onProgress("reading photos", $0, count) })
        {
            index throws -> Result<[RasterImage], ImageError> in
            do throws(ImageError) {
                return .success(try calibrationImages(chosen[index]))
            } catch {
                return .failure(error)
            }
        }
        for (url, outcome) in zip(chosen, outcomes) {
            switch outcome {
            case .success(let levels):
                images.append(
                    levels.map { image in
                        Quantizer.Image(
                            shape: TensorShape(height: image.height, width: image.width, channels: image.channels)
                        ) { values in
                            image.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: values) }
                        }
                    })
            case .failure(let error): skipped.append(SkippedImage(url: url, reason: error))
            }
        }
        guard skipped.count <= images.count else {
            throw ImageError.tooManyUnreadable(images: count, skipped: skipped)
        }
        guard images.count >= 4 else {
            throw ImprintError.invalidSetting(
                name: "photos", found: "\(images.count) readable files", expected: "at least 4 photos")
        }
        let measured = images.indices.filter { $0 % 4 == 3 }.flatMap { images[$0] }
        let calibrating = images.indices.filter { $0 % 4 != 3 }.flatMap { images[$0] }

        // A softmax would hide errors of the other outputs.
        let quantizer = Quantizer(try network.logits(), parameters: parameters, threads: threads)
        onProgress("calibrating", 0, 1)
        let quantized = try quantizer.quantize(for: calibrating)
        let (parameters, floatLayers, error) = try quantizer.limitingError(
            of: quantized, on: measured, to: options.errorLimit
        ) { onProgress("measuring layers", $0, $1) }
        guard error.relativeError.isFinite else { throw ImprintError.nonFiniteOutput(network: network.name) }
        guard parameters.quantization?.weights.isEmpty == false else {
            throw ImprintError.invalidSetting(
                name: "errorLimit", found: "\(options.errorLimit)",
                expected: "a larger number, because the error of each layer in int8 is larger")
        }
        var model = with(parameters, base: digest ?? base, rehearsal: rehearsal)
        model.novelty = novelty
        return QuantizedModel(
            model: model, calibrationPhotos: images.count - images.count / 4, measuredPhotos: images.count / 4,
            integerLayers: parameters.quantization?.weights.keys.sorted() ?? [], floatLayers: floatLayers, error: error,
            skipped: skipped)
    }

    /// Returns the images that the network reads for a photo: one, or the levels of the pyramid of a logo detector.
    private func calibrationImages(_ url: URL) throws(ImageError) -> [RasterImage] {
        if centerPoints != nil || anchors != nil {
            let input = network.input
            let image = try ImageFile.decode(url, coveringShortSide: max(input.width, input.height))
                .flattenedOnWhite().converted(toChannels: 3)
            guard let head = centerPoints else {
                return [CropAndScale.scaleFit.apply(image, width: input.width, height: input.height)]
            }
            let size = head.inputSize(width: image.width, height: image.height, input: input)
            return [CropAndScale.scaleFill.apply(image, width: size.width, height: size.height)]
        }
        guard let detector else { return [try preprocessing.prepare(url)] }
        let side = ImageFile.shortSideToDecode(covering: detector.levels.max() ?? preprocessing.width)
        let image = try ImageFile.decode(url, coveringShortSide: side)
        return detector.levels.map { AnySizeNetwork.level($0, of: image, stride: detector.stride) }
    }
}
