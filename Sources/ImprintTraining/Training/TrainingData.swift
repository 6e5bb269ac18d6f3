public import Foundation
public import ImprintImages
public import ImprintSynthesis

/// What a `Trainer` learns from: labelled photos, and pictures of logos that are made of their artwork.
///
/// ```swift
/// let photos = try ImageFolder(at: folder, minimumClasses: 1)
/// let data = TrainingData.photos(photos).composited(
///     artwork: ["Leaf": [try Artwork(contentsOf: leaf)], "Crest": [try Artwork(contentsOf: crest)]])
/// for try await case .finished(let result) in Trainer(data: data).start() {
///     try result.weights.write(to: model)
/// }
/// ```
public struct TrainingData: Sendable {
    /// The photos, one sub-folder per label.
    public let photos: ImageFolder
    /// What the logos look like, by label; empty where there are photos alone.
    public private(set) var artwork: [String: [Artwork]] = [:]
    /// Photos to put the logos on, or drawn patterns if it is empty; the photos without a logo if it is nil.
    public private(set) var backgrounds: [URL]?

    /// Photos alone: the network tells the labels of a folder apart.
    public static func photos(_ folder: ImageFolder) -> TrainingData { TrainingData(photos: folder) }

    /// The same photos, and pictures that are made of artwork: the network then spots the logos, and also says if they are.
    ///
    /// The photos are those of exactly one label without artwork, which show none of the logos, and of any of the labels with artwork,
    /// which may be missing. Several calls add up. Of the configuration, `validation`, `keepsGroupsTogether`, `epochs` (20 are the
    /// whole recipe), `seed`, `threads`, `memoryLimit` and `precision` count; docs/spotting.md tells the rest.
    /// - Parameters:
    ///   - artwork: What the logos look like, by label; each picture shows one of the forms of one logo, and the logos take turns.
    ///   - backgrounds: Photos to put the logos on, none of which shows one, or none at all for drawn patterns; the photos without a
    ///     logo if it is nil.
    public func composited(artwork: [String: [Artwork]], backgrounds: [URL]? = nil) -> TrainingData {
        precondition(
            !artwork.isEmpty && artwork.values.allSatisfy { !$0.isEmpty },
            "there is at least one logo, and each has at least one artwork")
        var data = self
        data.artwork.merge(artwork) { $0 + $1 }
        if let backgrounds { data.backgrounds = (data.backgrounds ?? []) + backgrounds }
        return data
    }
}
