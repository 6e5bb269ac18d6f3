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
///     func path(of item: TrainingPhoto) -> String { item.url.lastPathComponent }
/// }
/// ```
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
    func path(of item: TrainingPhoto) -> String
    /// The files that are not used, such as files of the folder that are not images.
    var ignored: [URL] { get }
}

extension TrainingSource {
    public var ignored: [URL] { [] }

    /// Whether a photo has several labels or none, so that only a multi-label model can learn them.
    public var isMultiLabel: Bool { items.contains { $0.labels.count != 1 } }

    /// The identifiers of the photos by their locations.
    package var pathsByURL: [URL: String] {
        Dictionary(items.map { ($0.url, path(of: $0)) }, uniquingKeysWith: { first, _ in first })
    }
}

/// A photo with its labels.
///
/// Photos are equal if their locations and labels are equal.
public struct TrainingPhoto: Sendable, Hashable {
    /// The file; for a photo in memory, a relative URL that names it in messages.
    public let url: URL
    /// The indices of its labels in `TrainingSource.labels`, in ascending order; only a multi-label model accepts several labels or none.
    public let labels: [Int]
    /// The content of a photo in memory, or nil for a file.
    package let content: PhotoContent?

    /// The index of its label in `TrainingSource.labels`; the photo must have exactly one.
    public var label: Int {
        precondition(labels.count == 1, "the photo \(url.displayPath) has \(labels.count) labels, not 1")
        return labels[0]
    }

    /// Creates a photo from a file and the index of its label.
    public init(url: URL, label: Int) { self.init(url: url, labels: [label]) }

    /// Creates a photo from a file and the indices of its labels.
    public init(url: URL, labels: [Int]) { self.init(url, Set(labels).sorted(), nil) }

    package init(_ url: URL, _ labels: [Int], _ content: PhotoContent?) {
        (self.url, self.labels, self.content) = (url, labels, content)
    }

    /// Returns the same photo with other labels.
    /// - Parameter indices: The new index of each label.
    package func mapping(_ indices: [Int]) -> TrainingPhoto {
        TrainingPhoto(url, labels.map { indices[$0] }.sorted(), content)
    }

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

/// The content of a photo in memory.
package enum PhotoContent: Sendable {
    /// The bytes of an image file.
    case encoded([UInt8])
    /// A decoded image, upright and in sRGB.
    case decoded(RasterImage)

    /// The number of bytes.
    var byteCount: Int {
        switch self {
        case .encoded(let bytes): bytes.count
        case .decoded(let image): image.samples.count
        }
    }

    /// The SHA-256 digest of the bytes or of the size and the pixels, in hexadecimal.
    var digest: String {
        switch self {
        case .encoded(let bytes): SHA256.hexadecimal(of: bytes)
        case .decoded(let image):
            SHA256.hexadecimal(of: Array("\(image.width)x\(image.height)x\(image.channels)\n".utf8) + image.samples)
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
        }
    }

    /// The number of bytes of the file or of the content; 0 if the file is missing.
    var byteCount: Int { content?.byteCount ?? FileStatus(url)?.size ?? 0 }

    /// Returns the SHA-256 digest of the file or of the content, in hexadecimal, or nil if the file cannot be read.
    func contentDigest() -> String? {
        if let content { return content.digest }
        guard let data = try? Data(contentsOf: url, options: .mappedIfSafe) else { return nil }
        return SHA256.hexadecimal(of: [UInt8](data))
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
    /// One labelled image file.
    public typealias Item = TrainingPhoto

    /// The path of the folder.
    public var name: String { url.displayPath }
}

/// Reads labelled photos from a folder with one sub-folder per label, or from a list (`LabelList`).
/// - Parameter minimumLabels: The minimum number of labels: 2 for training, 1 is enough for evaluation and for a list in which a photo has several
///   labels or none.
/// - Throws: The errors of `ImageFolder` and `LabelList`.
package func labelledPhotos(at url: URL, minimumLabels: Int) throws -> any TrainingSource {
    if FileStatus(url)?.isFile == true, !isImage(url) { return try LabelList(at: url, minimumLabels: minimumLabels) }
    return try ImageFolder(at: url, minimumClasses: minimumLabels)
}
