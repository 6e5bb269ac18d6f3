public import Foundation
internal import ImprintCore

/// Labelled photos in memory.
///
/// ```swift
/// var photos = InMemorySource(labels: ["cat", "dog"])
/// photos.append(catImage, labels: ["cat"])
/// photos.append(try Data(contentsOf: url), labels: ["dog"], identifier: "dog/1.jpg")
/// let trainer = ClassifierTrainer(photos: photos)
/// ```
///
/// In every epoch, training decodes the photos that are not in the cache of preprocessed photos. It finds copies, near-duplicates
/// and bursts as in a folder, but from identifiers instead of file names, and without capture times. Reports do not contain
/// thumbnails of these photos.
public struct InMemorySource: TrainingSource {
    /// "photos in memory".
    public var name: String { "photos in memory" }
    /// The names of the labels.
    public let labels: [String]
    /// The photos, in the order in which they were added.
    public private(set) var items: [TrainingPhoto] = []
    private var identifiers: [URL: String] = [:]
    /// The hash of the photos so far, so that `digest` need not read their content again.
    private var hash = SHA256()
    private let indices: [String: Int]

    /// Creates a source without photos.
    /// - Parameter labels: The names of the labels, each only once, in the order of the model's outputs.
    public init(labels: [String]) {
        self.labels = labels
        indices = Dictionary(labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        precondition(indices.count == labels.count, "the labels must be unique")
    }

    /// Adds a decoded image.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - labels: Its labels, a part of the source's `labels`; only a multi-label model accepts several labels or none.
    ///   - identifier: A unique name of the photo, or nil for its number, from 1.
    public mutating func append(_ image: RasterImage, labels: [String], identifier: String? = nil) {
        append(.decoded(image), labels, identifier)
    }

    /// Adds the bytes of a JPEG, PNG, WebP or HEIC file; other bytes count as an unreadable photo.
    /// - Parameters:
    ///   - data: The bytes.
    ///   - labels: Its labels, a part of the source's `labels`; only a multi-label model accepts several labels or none.
    ///   - identifier: A unique name of the photo, or nil for its number, from 1.
    public mutating func append(_ data: Data, labels: [String], identifier: String? = nil) {
        append(.encoded([UInt8](data)), labels, identifier)
    }

    private mutating func append(_ content: PhotoContent, _ names: [String], _ identifier: String?) {
        let identifier = identifier ?? "\(items.count + 1)"
        var components = URLComponents()
        components.path = "in memory/\(identifier)"
        guard let url = components.url else { preconditionFailure("a path is a URL") }
        precondition(
            identifiers.updateValue(identifier, forKey: url) == nil,
            "the identifier \(identifier.debugDescription) is not unique")
        let labelIndices = Set(
            names.map { name in
                guard let index = indices[name] else {
                    preconditionFailure("\(name.debugDescription) is not one of the labels \(labels)")
                }
                return index
            }
        ).sorted()
        items.append(TrainingPhoto(url, labelIndices, content))
        let suffix = labelIndices.map { "\t\(labels[$0])" }.joined()
        hash.update("\(identifier)\t\(content.digest)\(suffix)\n".utf8Span.span.bytes)
    }

    /// Returns the identifier of a photo.
    public func path(of item: TrainingPhoto) -> String { identifiers[item.url] ?? item.url.displayPath }

    /// The SHA-256 digest of a line "identifier, tab, digest of the content, and a tab before each label" for every photo, in hexadecimal.
    public var digest: String { hash.hexadecimal }
}
