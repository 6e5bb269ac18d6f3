public import Foundation
public import ImprintImages

/// Artwork to train from: what a label's logo looks like, and what may be behind it.
public struct CompositedArtwork: Sendable {
    /// The label that the logo stands for.
    public var label: String
    /// What it looks like; each picture shows one of these.
    public var artwork: [Artwork]
    /// Photos to put it on, none of which shows it; those of the other label where there are none.
    public var backgrounds: [URL]

    /// Makes artwork to train from.
    public init(label: String, artwork: [Artwork], backgrounds: [URL] = []) {
        precondition(!artwork.isEmpty, "a logo has at least one artwork")
        self.label = label
        self.artwork = artwork
        self.backgrounds = backgrounds
    }
}
