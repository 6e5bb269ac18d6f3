internal import Foundation
internal import ImprintImages
internal import Synchronization

/// The photos of a run that could be read at its start and no longer can: it goes on without them, as long as most are left.
final class LostPhotos: Sendable {
    private struct State {
        var reasons: [URL: ImageError] = [:]
        var untold: [SkippedImage] = []
    }

    /// How many photos the run began with.
    private let count: Int
    private let state = Mutex(State())

    init(of count: Int) { self.count = count }

    /// Takes note of a photo; the first reason counts.
    /// - Throws: The reason, where more than half of the photos are lost by now, or the picture is none that is read of a file.
    func add(_ picture: PatchSource, _ reason: ImageError) throws(ImageError) {
        guard let photo = picture.photo else { throw reason }
        let lost = state.withLock { state in
            if state.reasons.updateValue(state.reasons[photo] ?? reason, forKey: photo) == nil {
                state.untold.append(SkippedImage(url: photo, reason: reason))
            }
            return state.reasons.count
        }
        if 2 * lost > count { throw reason }
    }

    /// Why a photo is lost; `nil` where it is not.
    func reason(for picture: PatchSource) -> ImageError? {
        picture.photo.flatMap { photo in state.withLock { $0.reasons[photo] } }
    }

    /// Those that were lost since it was asked last, in the order of their paths.
    func takeNew() -> [SkippedImage] {
        let new = state.withLock { state in
            defer { state.untold = [] }
            return state.untold
        }
        return new.sorted { $0.url.path < $1.url.path }
    }
}
