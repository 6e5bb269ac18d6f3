internal import ImprintImages

/// Performs requests on one picture, which is read and decoded once for all of them.
///
/// ```swift
/// let handler = ImageRequestHandler(.data(upload))
/// let results = try await handler.perform([isUnsuitable, whatIsIt])
/// ```
///
/// Vision's class of the same name is its model.
public struct RequestHandler: Sendable {
    private let source: ImageSource

    /// Takes a picture; it is not read before it is needed.
    public init(_ source: ImageSource) { self.source = source }

    /// Performs requests one after the other, off the caller's thread; tasks beside each other use all cores.
    ///
    /// A large JPEG is decoded as large as the most demanding request needs it. A request beside others may thus see a little more detail
    /// than it does alone.
    /// - Returns: What the rule of each request accepts, best first; in the order of the requests.
    /// - Throws: `ImageError` if the picture cannot be read, `ImprintError.invalidSetting` where a region is no part of a picture,
    ///   `ImprintError.missingMetric` where a model does not know what a rule needs, `ImprintError.noConfidence` where a model cannot be used, and
    ///   `CancellationError` where the task is cancelled, which is looked at before each part of the work.
    @concurrent
    public func perform(_ requests: [ClassificationRequest]) async throws -> [[Classification]] {
        try Task.checkCancellation()
        let requests = try requests.map(PreparedRequest.init)
        guard let side = requests.map(\.shortSideToDecode).max() else { return [] }
        let picture = try source.stored(coveringShortSide: side)
        return try requests.map { request in
            try Task.checkCancellation()
            return try request.accepted(picture)
        }
    }
}
