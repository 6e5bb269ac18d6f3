internal import ImprintImages

/// A handler that performs several requests on one image, which it decodes only once.
///
/// ```swift
/// let handler = RequestHandler(.data(upload))
/// let results = try await handler.perform([contentFilter, logoDetector])
/// ```
///
/// It is modelled on Vision's `ImageRequestHandler`.
public struct RequestHandler: Sendable {
    let source: ImageSource

    /// Creates a handler for an image; the handler reads the image when it performs requests.
    public init(_ source: ImageSource) { self.source = source }

    /// Performs requests one after another, on a background thread.
    ///
    /// Call the method from several tasks to use several cores. A large JPEG is decoded at the size that the most demanding request needs,
    /// so confidences may differ slightly from those of a separate request.
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
        let image = try source.stored(coveringShortSide: side)
        return try requests.map { request in
            try Task.checkCancellation()
            return try request.accepted(image)
        }
    }
}
