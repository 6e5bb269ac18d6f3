public import Foundation
internal import ImprintCore

/// Labelled photos in memory.
///
/// ```swift
/// var photos = InMemorySource(labels: ["cat", "dog"])
/// try photos.append(catImage, labels: ["cat"])
/// try photos.append(Data(contentsOf: url), labels: ["dog"], identifier: "dog/1.jpg")
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
    /// The locations of the photos, each of them once.
    private var urls: Set<URL> = []
    /// The hash of the photos so far, so that `digest` need not read their content again.
    private var hash = SHA256()
    private let indices: [String: Int]

    /// Creates a source without photos.
    ///
    /// If a label is not unique, training and evaluation throw `ImageError.invalidSource`.
    /// - Parameter labels: The names of the labels, each only once, in the order of the model's outputs.
    public init(labels: [String]) {
        self.labels = labels
        indices = Dictionary(labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// Adds a decoded image.
    /// - Parameters:
    ///   - image: The image, upright and in sRGB.
    ///   - labels: Its labels, a part of the source's `labels`; only a multi-label model accepts several labels or none.
    ///   - identifier: A unique name of the photo, or nil for its number, from 1.
    /// - Throws: `ImageError.invalidSource` if the source does not have a label, or if the identifier is not unique.
    public mutating func append(
        _ image: RasterImage, labels: [String], identifier: String? = nil
    ) throws(ImageError) {
        try append(.decoded(image), labels, identifier)
    }

    /// Adds the bytes of a JPEG, PNG, WebP or HEIC file; other bytes count as an unreadable photo.
    /// - Parameters:
    ///   - data: The bytes.
    ///   - labels: Its labels, a part of the source's `labels`; only a multi-label model accepts several labels or none.
    ///   - identifier: A unique name of the photo, or nil for its number, from 1.
    /// - Throws: `ImageError.invalidSource` if the source does not have a label, or if the identifier is not unique.
    public mutating func append(_ data: Data, labels: [String], identifier: String? = nil) throws(ImageError) {
        try append(.encoded([UInt8](data)), labels, identifier)
    }

    private mutating func append(
        _ content: PhotoContent, _ names: [String], _ identifier: String?
    ) throws(ImageError) {
        let identifier = identifier ?? "\(items.count + 1)"
        var labelIndices: [Int] = []
        for label in names {
            guard let index = indices[label] else {
                throw .invalidSource(
                    name: name,
                    found: "the label \(quotedName(label)) of the photo \(identifier.debugDescription)",
                    expected: "one of the labels of the source")
            }
            labelIndices.append(index)
        }
        let photo = TrainingPhoto(identifier: identifier, labels: labelIndices, content: content)
        guard urls.insert(photo.url).inserted else {
            throw .invalidSource(
                name: name, found: "two photos with the identifier \(identifier.debugDescription)",
                expected: "a different identifier for each photo")
        }
        items.append(photo)
        let suffix = photo.labels.map { "\t\(labels[$0])" }.joined()
        hash.update("\(identifier)\t\(photo.digest ?? "")\(suffix)\n".utf8Span.span.bytes)
    }

    /// Returns the identifier of a photo.
    public func identifier(of item: TrainingPhoto) -> String { item.identifier }

    /// The SHA-256 digest of a line "identifier, tab, digest of the content, and a tab before each label" for every photo, in hexadecimal.
    public var digest: String { hash.hexadecimal }
}
