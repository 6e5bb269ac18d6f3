internal import ImprintImages
internal import Synchronization

/// A handler that performs several requests on one image, which it decodes only once.
///
/// ```swift
/// let handler = RequestHandler(.data(upload))
/// let objects = try await handler.perform([logoRequest])
/// let classifications = try await handler.perform([contentRequest, styleRequest])
/// ```
///
/// The handler decodes the image at the first call, and keeps the decoded image until the last copy of the handler is released. A large JPEG,
/// or another image of more than 24 million pixels, is decoded at the largest size that any request of the call needs, so confidences can differ
/// slightly from those of separate requests. A later call that needs a larger size decodes the image again, so start with the call for the
/// largest size.
///
/// A handler is a value, modelled on Vision's `ImageRequestHandler`. Its copies share the decoded image, and any number of tasks can use them
/// at the same time.
public struct RequestHandler: Sendable {
    let image: DecodedImage

    /// Creates a handler for an image; the handler reads the image when it performs requests.
    public init(_ source: ImageSource) { image = DecodedImage(source) }

    /// Performs classification requests one after another, on a background thread.
    ///
    /// Call the method from several tasks to use several cores.
    /// - Parameter requests: The requests, with the same or with different classifiers.
    /// - Returns: For each request, in order, the classifications that its rule accepts, by descending confidence.
    /// - Throws:
    ///   - `ImageError` if the image cannot be read.
    ///   - `ImprintError.invalidSetting` if a region of interest is not within the image.
    ///   - `ImprintError.missingMetric` if a model lacks a metric that a rule needs.
    ///   - `ImprintError.nonFiniteOutput` if an output of a network is not finite.
    ///   - `ImprintError.unsupportedImageSize` if the network of a detector does not accept an image of this size.
    ///   - `CancellationError` if the task is cancelled, which is checked before each request.
    @concurrent
    public func perform(_ requests: [ClassificationRequest]) async throws -> [[Classification]] {
        try Task.checkCancellation()
        let requests = try requests.map(PreparedRequest.init)
        guard let side = requests.map(\.shortSideToDecode).max() else { return [] }
        let image = try image.stored(coveringShortSide: side)
        return try requests.map { request in
            try Task.checkCancellation()
            return try request.accepted(image)
        }
    }
}

/// An image that is decoded when it is first needed.
final class DecodedImage: Sendable {
    private let source: ImageSource
    private let decoded = Mutex<StoredImage?>(nil)

    init(_ source: ImageSource) { self.source = source }

    /// Returns the image; decodes it if it is not decoded yet, or if it was scaled down to less than the short side.
    ///
    /// The lock is held during decoding, so that tasks at the same time decode the image only once.
    func stored(coveringShortSide side: Int) throws(ImageError) -> StoredImage {
        try decoded.withLock { decoded throws(ImageError) in
            if let decoded, decoded.covers(shortSide: side) { return decoded }
            let image = try source.stored(coveringShortSide: side)
            decoded = image
            return image
        }
    }
}
