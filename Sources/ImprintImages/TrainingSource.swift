public import Foundation
internal import ImprintCore

/// A source of labelled photos for training and evaluation: a folder, a list, or photos in memory.
///
/// `ImageFolder`, `LabelList` and `InMemorySource` conform. To read other photos, for example from a database, conform to this protocol:
///
/// ```swift
/// struct Scans: TrainingSource {
///     let name = "scans"
///     let labels = ["invoice", "letter"]
///     let items: [TrainingPhoto]
///     let digest: String
///
///     init(_ database: Database) {
///         items = database.scans.map { scan in
///             TrainingPhoto(identifier: scan.id, labels: [scan.isLetter ? 1 : 0]) { try database.image(of: scan.id) }
///         }
///         digest = database.version
///     }
///
///     func identifier(of item: TrainingPhoto) -> String { item.identifier }
/// }
/// ```
///
/// Training and evaluation throw `ImageError.invalidSource` if the labels or the photos of a source are inconsistent.
public protocol TrainingSource: Sendable {
    /// The name of the source in messages, such as the path of the folder.
    var name: String { get }
    /// The names of the labels, each only once; a model has one output per label in this order.
    var labels: [String] { get }
    /// The photos, in an order that is the same for every run.
    var items: [TrainingPhoto] { get }
    /// A digest of the photos and their labels, which the model file records.
    ///
    /// It decides whether a resumed run has the same photos.
    var digest: String { get }
    /// Returns the identifier of a photo, which is unique in the source and the same for every run.
    ///
    /// Checkpoints record it, so that a photo stays in the training or the validation set if a run is resumed.
    func identifier(of item: TrainingPhoto) -> String
    /// The files that are not used, such as files of the folder that are not images.
    var ignored: [URL] { get }
}

extension TrainingSource {
    public var ignored: [URL] { [] }

    /// Checks the labels and the identifiers before training or evaluation, because the source may be a type outside of the package.
    /// - Throws: `ImageError.invalidSource` if a label or the identifier of a photo is not unique, or if the index of a label is out of range.
    package func checkLabelsAndIdentifiers() throws(ImageError) {
        func invalid(_ found: String, expected: String) -> ImageError {
            .invalidSource(name: name, found: found, expected: expected)
        }
        let labels = labels
        var knownLabels: Set<String> = []
        for label in labels where !knownLabels.insert(label).inserted {
            throw invalid("the label \(quotedName(label)) twice", expected: "each label only once")
        }
        // Bytes, because file names that differ only in their Unicode normalization are equal strings.
        var identifiers: Set<[UInt8]> = []
        for item in items {
            let identifier = identifier(of: item)
            for index in item.labels where !labels.indices.contains(index) {
                throw invalid(
                    "the label index \(index) of the photo \(identifier.debugDescription)",
                    expected: "the index of one of its \(labels.count) labels")
            }
            guard identifiers.insert(Array(identifier.utf8)).inserted else {
                throw invalid(
                    "two photos with the identifier \(identifier.debugDescription)",
                    expected: "a different identifier for each photo")
            }
        }
    }

    /// Whether a photo has several labels or none, so that only a multi-label model can learn them.
    public var isMultiLabel: Bool { items.contains { $0.labels.count != 1 } }

    /// The identifiers of the photos by their locations.
    package var pathsByURL: [URL: String] {
        Dictionary(items.map { ($0.url, identifier(of: $0)) }, uniquingKeysWith: { first, _ in first })
    }
}

/// A photo with its labels.
///
/// Photos are equal if their locations and labels are equal.
public struct TrainingPhoto: Sendable, Hashable {
    /// The file; for a photo that is not a file, a relative URL that names it in messages.
    public let url: URL
    /// The indices of its labels in `TrainingSource.labels`, in ascending order; only a multi-label model accepts several labels or none.
    public let labels: [Int]
    /// The content of a photo that is not a file, or nil for a file.
    package let content: PhotoContent?
    /// The identifier of a photo that is not a file, or nil for a file.
    private let name: String?
    /// The digest of `content`, computed once; nil for a file, or if the content must be loaded.
    let digest: String?

    /// The identifier of a photo that is not a file, or the path of a file.
    public var identifier: String { name ?? url.displayPath }

    /// The index of its label in `TrainingSource.labels`; the photo must have exactly one.
    public var label: Int {
        precondition(labels.count == 1, "the photo \(url.displayPath) has \(labels.count) labels, not 1")
        return labels[0]
    }

    /// Creates a photo from a file and the index of its label.
    public init(url: URL, label: Int) { self.init(url: url, labels: [label]) }

    /// Creates a photo from a file and the indices of its labels.
    public init(url: URL, labels: [Int]) { self.init(url, Set(labels).sorted(), nil, nil, nil) }

    /// Creates a photo that is not a file, such as a record of a database.
    ///
    /// Training loads a photo several times, from several threads. Near-duplicate detection treats copies of such photos as near-duplicates,
    /// and they have no capture times. Reports do not contain thumbnails of them.
    ///
    /// A resumed run knows such a photo only by its identifier and its labels, so an edited photo needs another identifier.
    /// - Parameters:
    ///   - identifier: The name of the photo, which is unique in its source and the same for every run.
    ///   - labels: The indices of its labels.
    ///   - data: A closure that returns the bytes of a JPEG, PNG, WebP or HEIC file. A photo for which it throws counts as unreadable.
    public init(identifier: String, labels: [Int], data: @escaping @Sendable () throws -> Data) {
        self.init(identifier: identifier, labels: labels, content: .loaded(data))
    }

    /// Creates a photo that is not a file.
    package init(identifier: String, labels: [Int], content: PhotoContent) {
        var components = URLComponents()
        components.path = "in memory/\(identifier)"
        guard let url = components.url else { preconditionFailure("a path is a URL") }
        self.init(url, Set(labels).sorted(), content, identifier, content.digest)
    }

    private init(_ url: URL, _ labels: [Int], _ content: PhotoContent?, _ name: String?, _ digest: String?) {
        (self.url, self.labels, self.content, self.name, self.digest) = (url, labels, content, name, digest)
    }

    /// Returns the same photo with other labels.
    /// - Parameter indices: The new index of each label.
    package func mapping(_ indices: [Int]) -> TrainingPhoto {
        TrainingPhoto(url, labels.map { indices[$0] }.sorted(), content, name, digest)
    }

    /// Returns the same photo with only the label of an index.
    package func labelled(_ label: Int) -> TrainingPhoto { TrainingPhoto(url, [label], content, name, digest) }

    /// Returns whether the locations and labels are equal.
    public static func == (first: TrainingPhoto, second: TrainingPhoto) -> Bool {
        first.url == second.url && first.labels == second.labels
    }

    /// Hashes the location and the labels.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(labels)
    }
}

/// The content of a photo that is not a file.
package enum PhotoContent: Sendable {
    /// The bytes of an image file.
    case encoded([UInt8])
    /// A decoded image, upright and in sRGB.
    case decoded(RasterImage)
    /// A closure that returns the bytes of an image file.
    case loaded(@Sendable () throws -> Data)

    /// The number of bytes; 0 if the content must be loaded.
    var byteCount: Int {
        switch self {
        case .encoded(let bytes): bytes.count
        case .decoded(let image): image.samples.count
        case .loaded: 0
        }
    }

    /// The SHA-256 digest of the bytes or of the size and the pixels, in hexadecimal; nil if the content must be loaded.
    var digest: String? {
        switch self {
        case .encoded(let bytes): SHA256.hexadecimal(of: bytes)
        case .decoded(let image):
            SHA256.hexadecimal(of: Array("\(image.width)x\(image.height)x\(image.channels)\n".utf8) + image.samples)
        case .loaded: nil
        }
    }
}

extension TrainingPhoto {
    /// Decodes the photo; a JPEG may be scaled down if it still covers the short side.
    package func stored(coveringShortSide side: Int) throws(ImageError) -> StoredImage {
        switch content {
        case nil: try StoredImage(url, coveringShortSide: side)
        case .encoded(let bytes): try StoredImage(bytes, named: url, coveringShortSide: side)
        case .decoded(let image): StoredImage(image)
        case .loaded(let data): try StoredImage(bytes(of: data), named: url, coveringShortSide: side)
        }
    }

    /// Loads the bytes of a photo that is not a file.
    /// - Throws: `ImageError.notLoaded` with the reason if `data` throws.
    package func bytes(of data: () throws -> Data) throws(ImageError) -> [UInt8] {
        do {
            return [UInt8](try data())
        } catch {
            let text = (error as? any LocalizedError)?.errorDescription?.clause
            throw .notLoaded(photo: identifier, reason: text ?? reason(of: error))
        }
    }

    /// The number of bytes of the file or of the content; 0 if the file is missing, or if the content must be loaded.
    var byteCount: Int { content?.byteCount ?? FileStatus(url)?.size ?? 0 }

    /// Returns the identity of the photo in a checkpoint: 16 hexadecimal digits of a digest of its identifier, its size and its labels.
    ///
    /// A file is not read, so an edited file of the same size has the same identity. A photo in memory has the digest of its content instead of the
    /// size. Content that must be loaded has the size 0, so its identity depends only on its identifier and its labels.
    /// - Parameters:
    ///   - path: The identifier of the photo in its source.
    ///   - names: The names of the labels, by their indices.
    package func identity(path: String, labels names: [String]) -> String {
        let parts = [path, digest ?? "\(byteCount)"] + labels.map { names[$0] }
        return String(SHA256.hexadecimal(of: Array(parts.joined(separator: "\0").utf8)).prefix(16))
    }

    /// Returns the SHA-256 digest of the file or of the content, in hexadecimal.
    ///
    /// The result is nil if the file cannot be read or exceeds the maximum size of an image file, or if the content must be loaded.
    func contentDigest() -> String? {
        if content != nil { return digest }
        guard let size = FileStatus(url)?.size, size <= ImageFile.byteLimit else { return nil }
        return try? FileDigest.sha256(of: url)
    }
}

extension Preprocessing {
    /// Reads a photo and scales it to the input size.
    /// - Throws: `ImageError` if it cannot be read as an image.
    package func prepare(_ photo: TrainingPhoto) throws(ImageError) -> RasterImage {
        prepare(try photo.stored(coveringShortSide: shortSideToDecode))
    }
}

extension ImageFolder: TrainingSource {
    /// The path of the folder.
    public var name: String { url.displayPath }
}

/// Reads labelled photos from a folder with one sub-folder per label, or from a list (`LabelList`).
/// - Parameters:
///   - url: The folder or the list.
///   - minimumLabels: The minimum number of labels: 2 for training, 1 is enough for evaluation and for a list in which a photo has several
///     labels or none.
///   - knownLabels: The labels of a model or of other photos; a single sub-folder with such a name is a label, regardless of its content.
/// - Throws: The errors of `ImageFolder` and `LabelList`; `LabelListError` if the path names neither a folder nor a regular file.
package func labelledPhotos(
    at url: URL, minimumLabels: Int, knownLabels: [String] = []
) throws -> any TrainingSource {
    guard let status = FileStatus(url) else { throw LabelListError(file: url, problem: .missing) }
    if status.isFolder {
        return try ImageFolder(at: url, minimumLabels: minimumLabels, knownLabels: knownLabels)
    }
    if let kind = status.specialKind { throw LabelListError(file: url, problem: .otherKind(found: kind)) }
    return try LabelList(at: url, minimumLabels: minimumLabels)
}
