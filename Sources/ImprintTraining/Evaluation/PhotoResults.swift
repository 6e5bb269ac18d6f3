internal import ImprintCore
internal import ImprintImages

extension Workers {
    /// Returns the result for each photo, or the reason why it is unreadable.
    /// - Parameters:
    ///   - count: The number of photos.
    ///   - onProgress: Called from time to time, on the caller's thread, with the number of finished photos.
    ///   - body: Returns the result for the photo at an index; called on any of the threads.
    /// - Throws: The first error of `body` that is not an `ImageError`.
    func results<Value>(
        ofPhotos count: Int, onProgress: (_ done: Int) -> Void = { _ in }, _ body: (_ index: Int) throws -> Value
    ) throws -> [Result<Value, ImageError>] {
        try parallelMap(count, onProgress: onProgress) { index throws -> Result<Value, ImageError> in
            do {
                return .success(try body(index))
            } catch let error as ImageError {
                return .failure(error)
            }
        }
    }
}
