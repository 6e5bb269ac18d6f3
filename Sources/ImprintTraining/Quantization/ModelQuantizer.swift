public import Foundation
internal import Imprint
internal import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// The settings of `ModelFile.quantized(for:options:threads:onProgress:)`.
public struct QuantizationOptions: Hashable, Sendable {
    /// The largest number of photos, which are spread evenly over the given ones; at least 4, and 200 by default.
    public var photoCount: Int
    /// The largest `QuantizationError.relativeError` of the logits, on photos that were not used for calibration.
    ///
    /// The logits are the outputs before a softmax or sigmoid. Layers with large errors stay in float32 until the error is at most this. More
    /// than 0, and 0.06 by default.
    public var errorLimit: Double
    /// The hyperparameters of fine-tuning after quantization; nil, the default, for no fine-tuning.
    public var fineTuning: Quantizer.FineTuning?

    /// Creates settings.
    public init(photoCount: Int = 200, errorLimit: Double = 0.06, fineTuning: Quantizer.FineTuning? = nil) {
        self.photoCount = photoCount
        self.errorLimit = errorLimit
        self.fineTuning = fineTuning
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
    /// The error on these photos before fine-tuning, with all layers in int8; nil without fine-tuning.
    public let errorBeforeFineTuning: QuantizationError?
    /// The photos that could not be read.
    public let skipped: [SkippedImage]
}

extension ModelFile {
    /// Returns the model with 8-bit integers in most convolutions and dense layers, for predictions in int8.
    ///
    /// Three quarters of the photos determine the ranges of activations (`Quantizer`). The others measure the error; if it is above the limit,
    /// the layers with the largest errors stay in float32. Fine-tuning, if the options ask for it, reduces the error before that. Weights are
    /// rounded, so predictions of the result in float32 also differ from those of this model.
    /// - Parameters:
    ///   - photos: Photos like those of later predictions; labels are not needed. At least four must be readable.
    ///   - options: The settings.
    ///   - threads: The number of threads; the result does not depend on it.
    ///   - onProgress: Called with a description of the step, and the number of finished and of all its parts.
    /// - Throws: `ImageError` if more than half of the photos cannot be read, `ImprintError.invalidSetting` if there are fewer than four
    ///   photos or the options allow fewer, if the error limit is not more than 0, if the model is already quantized, or if no layer has an
    ///   error within the limit,
    ///   `ImprintError.nonFiniteOutput` if an output in float32 is not finite, `NetworkError` if there is not enough memory.
    public func quantized(
        for photos: [URL], options: QuantizationOptions = QuantizationOptions(), threads: Int = 1,
        onProgress: (_ step: String, _ done: Int, _ total: Int) -> Void = { _, _, _ in }
    ) throws -> QuantizedModel {
        try quantized(for: photos, options: options, threads: threads, onProgress: onProgress, checkCancellation: {})
    }

    /// Quantizes the model on a thread of its own, as the function without `async`.
    ///
    /// If the task is cancelled, the quantization ends after the current photos, and throws `CancellationError`.
    /// - Parameters:
    ///   - photos: Photos like those of later predictions; labels are not needed. At least four must be readable.
    ///   - options: The settings.
    ///   - threads: The number of threads; the result does not depend on it.
    ///   - onProgress: Called with a description of the step, and the number of finished and of all its parts, on the thread of the
    ///     quantization.
    /// - Throws: The errors of the function without `async`, and `CancellationError`.
    public func quantized(
        for photos: [URL], options: QuantizationOptions = QuantizationOptions(), threads: Int = 1,
        onProgress: @escaping @Sendable (_ step: String, _ done: Int, _ total: Int) -> Void = { _, _, _ in }
    ) async throws -> QuantizedModel {
        try await onCancellableThread { checkCancellation in
            try quantized(
                for: photos, options: options, threads: threads, onProgress: onProgress,
                checkCancellation: checkCancellation)
        }
    }

    /// - Parameter checkCancellation: Called before each photo and each training sample, from any thread; throws if the quantization should
    ///   end.
    private func quantized(
        for photos: [URL], options: QuantizationOptions, threads: Int,
        onProgress: (_ step: String, _ done: Int, _ total: Int) -> Void,
        checkCancellation: @escaping @Sendable () throws -> Void
    ) throws -> QuantizedModel {
        try checkQuantizable(options)
        let photos = try calibrationPhotos(
            photos, limit: options.photoCount, threads: threads, onProgress: onProgress,
            checkCancellation: checkCancellation)
        let measured = photos.measured.flatMap(\.images)

        // A softmax or a sigmoid would hide errors of the outputs.
        let quantizer = Quantizer(try network.logits(), parameters: parameters, threads: threads)
        onProgress("calibrating", 0, 1)
        var quantized = try quantizer.quantize(for: photos.calibrating.flatMap(\.images))
        var errorBefore: QuantizationError?
        // Fine-tuning precedes the choice of float32 layers: with a smaller error, fewer layers have to remain in float32.
        if let fineTuning = options.fineTuning {
            errorBefore = try quantizer.error(of: quantized, on: measured)
            quantized = try quantizer.fineTuned(
                quantized, on: photos.calibrating.map(\.sample), measuring: measured, options: fineTuning
            ) { onProgress("fine-tuning", $0, $1) }
        }
        let (parameters, floatLayers, error) = try quantizer.limitingError(
            of: quantized, on: measured, to: options.errorLimit
        ) { onProgress("measuring layers", $0, $1) }
        guard error.relativeError.isFinite else { throw ImprintError.nonFiniteOutput(network: network.name) }
        guard parameters.quantization?.weights.isEmpty == false else {
            throw ImprintError.invalidSetting(
                name: "errorLimit", found: messageText(options.errorLimit),
                expected:
                    "a larger number: the outputs differ by more than this even if only one layer computes in int8")
        }
        let model = with(parameters, baseDigest: digest ?? baseDigest, rehearsal: rehearsal)
        return QuantizedModel(
            model: model, calibrationPhotos: photos.calibrating.count, measuredPhotos: photos.measured.count,
            integerLayers: parameters.quantization?.weights.keys.sorted() ?? [], floatLayers: floatLayers, error: error,
            errorBeforeFineTuning: errorBefore, skipped: photos.skipped)
    }

    /// Checks that the model is in float32, and that the options allow enough photos.
    private func checkQuantizable(_ options: QuantizationOptions) throws(ImprintError) {
        guard parameters.quantization == nil else {
            throw .invalidSetting(
                name: "the precision of the model", found: "int8",
                expected: "float32, as in the model from which it was quantized")
        }
        guard options.photoCount >= Self.minimumPhotos else {
            throw .invalidSetting(
                name: "photoCount", found: "\(options.photoCount)", expected: "at least \(Self.minimumPhotos)")
        }
        guard options.errorLimit > 0 else {
            throw .invalidSetting(
                name: "errorLimit", found: messageText(options.errorLimit), expected: "more than 0")
        }
    }

    /// Reads at most `limit` photos, spread evenly over the given ones, and divides them into calibration and measurement.
    private func calibrationPhotos(
        _ photos: [URL], limit: Int, threads: Int, onProgress: (_ step: String, _ done: Int, _ total: Int) -> Void,
        checkCancellation: @escaping @Sendable () throws -> Void
    ) throws -> CalibrationPhotos {
        let count = min(photos.count, limit)
        let chosen = (0..<count).map { photos[$0 * photos.count / count] }
        let outcomes = try Workers(threads).parallelMap(count, onProgress: { onProgress("reading photos", $0, count) })
        {
            index throws -> Result<[RasterImage], ImageError> in
            try checkCancellation()
            do throws(ImageError) {
                return .success(try calibrationImages(chosen[index]))
            } catch {
                return .failure(error)
            }
        }
        var (read, skipped): ([CalibrationPhotos.Photo], [SkippedImage]) = ([], [])
        for (url, outcome) in zip(chosen, outcomes) {
            switch outcome {
            case .success(let levels):
                read.append(
                    CalibrationPhotos.Photo(
                        images: levels.map { quantizerImage($0, checkCancellation) },
                        sample: trainingSample(levels, checkCancellation)))
            case .failure(let error): skipped.append(SkippedImage(url: url, reason: error))
            }
        }
        guard skipped.count <= read.count else {
            throw ImageError.tooManyUnreadable(images: count, skipped: skipped)
        }
        guard read.count >= Self.minimumPhotos else {
            throw ImprintError.invalidSetting(
                name: "photos", found: counted(read.count, "readable file"),
                expected: "at least \(Self.minimumPhotos) photos")
        }
        return CalibrationPhotos(read, skipped: skipped)
    }

    /// Returns an image as the quantizer reads it.
    private func quantizerImage(
        _ image: RasterImage, _ checkCancellation: @escaping @Sendable () throws -> Void
    ) -> Quantizer.Image {
        let shape = TensorShape(height: image.height, width: image.width, channels: image.channels)
        return Quantizer.Image(shape: shape) { [preprocessing] values in
            try checkCancellation()
            image.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: values) }
        }
    }

    /// The minimum number of photos: every fourth one measures the error.
    private static let minimumPhotos = 4

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

    /// The data augmentation of fine-tuning.
    private static let augmentation = Augmentation([.flip, .crop])

    /// Returns a sample for fine-tuning from the images that the network reads for a photo.
    ///
    /// Images with another size than the network's input, as for detectors, are cropped to it.
    private func trainingSample(
        _ images: [RasterImage], _ checkCancellation: @escaping @Sendable () throws -> Void
    ) -> Quantizer.Sample {
        { [network, preprocessing] seed, values in
            try checkCancellation()
            var random = RandomStream(seed: seed, "fine-tuning augmentation")
            let (image, input) = (images[random.index(below: images.count)], network.input)
            let sample =
                (image.width, image.height) == (input.width, input.height)
                ? try Self.augmentation.apply(to: image, using: &random)
                : image.randomCrop(width: input.width, height: input.height, &random)
            sample.samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: values) }
        }
    }
}

/// The photos of a quantization: three quarters determine the ranges of activations, and the others measure the error.
private struct CalibrationPhotos {
    struct Photo {
        /// The images that the network reads for the photo.
        let images: [Quantizer.Image]
        /// The augmented images of fine-tuning.
        let sample: Quantizer.Sample
    }

    let calibrating: [Photo]
    let measured: [Photo]
    let skipped: [SkippedImage]

    /// Divides photos: every fourth one measures the error.
    init(_ photos: [Photo], skipped: [SkippedImage]) {
        calibrating = photos.indices.filter { $0 % 4 != 3 }.map { photos[$0] }
        measured = photos.indices.filter { $0 % 4 == 3 }.map { photos[$0] }
        self.skipped = skipped
    }
}

extension RasterImage {
    /// Returns a random part of the image; pixels outside repeat the nearest pixel of the border.
    fileprivate func randomCrop(width: Int, height: Int, _ random: inout RandomStream) -> RasterImage {
        let left = random.index(below: max(self.width - width, 0) + 1)
        let top = random.index(below: max(self.height - height, 0) + 1)
        var crop = RasterImage(width: width, height: height, channels: channels)
        for y in 0..<height {
            for x in 0..<width {
                let pixel = min(top + y, self.height - 1) * self.width + min(left + x, self.width - 1)
                for channel in 0..<channels {
                    crop.samples[(y * width + x) * channels + channel] = samples[pixel * channels + channel]
                }
            }
        }
        return crop
    }
}
