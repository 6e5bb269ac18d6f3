internal import Foundation
internal import ImprintImages
internal import Synchronization

/// The photos of a run that could be read at its start and no longer can: it goes on without them, as long as most are left.
final class LostPhotos: Sendable {
    private struct State {
        var vanished: VanishedPhotos
        var reasons: [URL: ImageError] = [:]
        var untold: [SkippedImage] = []
    }

    private let state: Mutex<State>

    /// - Parameter labels: The names of the labels, by their index.
    init(training: [ImageFolder.Item], validation: [ImageFolder.Item], labels: [String]) {
        state = Mutex(State(vanished: VanishedPhotos(training: training, validation: validation, labels: labels)))
    }

    /// Takes note of a photo; the first reason counts.
    /// - Throws: `ImageError`, if too few photos are left by now, or the picture is none that is read of a file.
    func add(_ picture: PatchSource, _ reason: ImageError) throws(ImageError) {
        guard let photo = picture.photo else { throw reason }
        let problem = state.withLock { state in
            let image = SkippedImage(url: photo, reason: reason)
            if state.reasons[photo] == nil {
                state.reasons[photo] = reason
                state.untold.append(image)
            }
            _ = state.vanished.add(image)
            return state.vanished.problem
        }
        if let problem { throw problem }
    }

    /// Whether too few validation photos are left to measure on.
    var affectsValidation: Bool { state.withLock { $0.vanished.affectsValidation } }

    /// Why a photo is lost; nil if it is not.
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
