internal import Foundation
internal import ImprintImages
internal import Synchronization

/// The photos of a run that could be read at its start and no longer can: it goes on without them, as long as most are left.
final class LostPhotos: Sendable {
    /// How many photos the run began with.
    private let count: Int
    private let reasons = Mutex<[URL: ImageError]>([:])

    init(of count: Int) { self.count = count }

    /// Takes note of a photo.
    /// - Throws: The reason, where more than half of the photos are lost by now.
    func add(_ photo: URL, _ reason: ImageError) throws(ImageError) {
        let lost = reasons.withLock { reasons in
            reasons[photo] = reason
            return reasons.count
        }
        if 2 * lost > count { throw reason }
    }

    /// All of them, in the order of their paths.
    var all: [SkippedImage] {
        reasons.withLock { $0.map(SkippedImage.init) }.sorted { $0.url.path < $1.url.path }
    }
}
