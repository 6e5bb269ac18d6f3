internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintSynthesis
internal import ImprintTraining

/// Finds logos from their artwork, without training; it can replace the model in use until a detector is trained.
struct ArtworkMatching: Sendable {
    /// The minimum confidence of a detected logo.
    static let threshold: Float = 0.5

    private let matcher: ArtworkMatcher
    /// Runs one photo at a time, because each needs about 350 MB.
    private let queue = Queue()

    private actor Queue {
        func run<Value: Sendable>(_ work: @Sendable () throws -> Value) rethrows -> Value { try work() }
    }

    /// The labels of the logos.
    var labels: [String] { matcher.labels }

    /// Prepares the artwork on another thread.
    @concurrent
    static func prepare(_ artwork: [String: [Artwork]], threads: Int) async throws -> ArtworkMatching {
        do {
            return ArtworkMatching(matcher: try ArtworkMatcher(artwork, threads: threads))
        } catch let error as ArtworkError {
            throw RequestError("Matching is not possible: \(error)", .unprocessableContent)
        }
    }

    private init(matcher: ArtworkMatcher) { self.matcher = matcher }

    /// Returns how likely a photo shows each logo, and all logos that it finds, including those below the threshold.
    func search(_ photo: Data) async throws -> (classifications: [Classification], objects: [DetectedObject]) {
        try await queue.run { [matcher] in
            let side = ImageFile.shortSideToDecode(covering: TemplateMatcher.levels.max() ?? 0)
            return try matcher.search(ImageSource.data(photo).stored(coveringShortSide: side).upright)
        }
    }
}

extension ExampleTrainer {
    /// Uses matching of the artwork instead of the model, until a model is trained or restored.
    ///
    /// If the artwork changes while it is prepared, it is prepared again.
    /// - Parameter readArtwork: Returns the current artwork by label, and the number of its changes.
    /// - Throws: `RequestError` if there is no artwork, which also ends matching.
    func startMatching(_ readArtwork: () -> (artwork: [String: [Artwork]], changes: Int)) async throws {
        let version = state.withLock { $0.classifierVersion }
        var current = readArtwork()
        var prepared: (matching: ArtworkMatching, changes: Int)?
        while prepared?.changes != current.changes {
            guard !current.artwork.isEmpty else {
                stopMatching()
                throw RequestError("There is no artwork to match. Add an image of the logo first.", .conflict)
            }
            let matching = try await ArtworkMatching.prepare(current.artwork, threads: threads)
            prepared = (matching, current.changes)
            current = readArtwork()
        }
        try state.withLock { state in
            guard state.classifierVersion == version else {
                throw RequestError("Training has ended meanwhile, and the new model is in use.", .conflict)
            }
            state.matching = prepared?.matching
        }
    }

    /// Uses the model again instead of matching.
    func stopMatching() {
        state.withLock { state in
            if state.matching != nil { state.matching = nil }
        }
    }

    /// Matching of the artwork; nil if the classifier is in use.
    var matching: ArtworkMatching? { state.withLock { $0.matching } }
}
