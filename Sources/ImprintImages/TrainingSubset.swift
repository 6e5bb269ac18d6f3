internal import ImprintCore

/// Some of the photos of a source, with all of its labels.
package struct TrainingSubset: TrainingSource {
    private let base: any TrainingSource
    /// The selected photos.
    package let items: [TrainingPhoto]
    /// The SHA-256 digest of a line "path, tab, size in bytes, and a tab before each label" for every selected photo, in hexadecimal.
    package let digest: String

    /// Selects photos of a source.
    /// - Parameter items: Photos of the source, in its order.
    package init(_ base: any TrainingSource, items: [TrainingPhoto]) {
        var hash = SHA256()
        for item in items {
            let names = item.labels.map { "\t\(base.labels[$0])" }.joined()
            hash.update("\(base.identifier(of: item))\t\(item.byteCount)\(names)\n".utf8Span.span.bytes)
        }
        (self.base, self.items, digest) = (base, items, hash.hexadecimal)
    }

    /// The name of the source.
    package var name: String { base.name }
    /// The labels of the source.
    package var labels: [String] { base.labels }

    /// Returns the identifier of a photo in the source.
    package func identifier(of item: TrainingPhoto) -> String { base.identifier(of: item) }
}
