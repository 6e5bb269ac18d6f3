public import Foundation
internal import ImprintCore

/// A list of photos with their labels, in a CSV or JSON file.
///
/// The content decides the format:
///
/// - CSV (RFC 4180) with the header `photo,label`, or `photo,labels`: one line per photo. Semicolons separate several labels of a photo. The
///   column `labels` may be empty, for a photo that has none of the labels.
/// - JSON: an array of objects such as `{"photo": "a.jpg", "labels": ["cat", "dog"]}`, or `{"photo": "a.jpg", "label": "cat"}`.
/// - JSON Lines: one such object per line.
///
/// Relative paths start at the folder of the list. The file is UTF-8, with or without a byte order mark. Lines end with LF or CRLF. White space
/// around labels and empty lines are ignored. A photo with the same labels in several lines counts once.
///
/// ```swift
/// let trainer = ClassifierTrainer(photos: try LabelList(at: URL(filePath: "photos.csv")))
/// ```
public struct LabelList: TrainingSource {
    /// The file of the list.
    public let url: URL
    /// The labels of the photos, in the order of their Unicode scalars.
    public let labels: [String]
    /// The photos, by labels and then by path, in the order of Unicode scalars; the order of the lines does not matter.
    public let items: [TrainingPhoto]
    /// The SHA-256 digest of a line "path, tab, size in bytes, and a tab before each label" for every photo, in hexadecimal.
    public let digest: String
    private let paths: [URL: String]

    /// The path of the file.
    public var name: String { url.displayPath }

    /// Returns the path of a photo as written in the list.
    public func identifier(of item: TrainingPhoto) -> String { paths[item.url] ?? item.url.displayPath }

    /// Reads a list; the photos must exist, but are not decoded.
    /// - Parameters:
    ///   - url: The CSV or JSON file.
    ///   - minimumLabels: The minimum number of labels: 2 for training, 1 is enough for evaluation. If a photo has several labels or none,
    ///     1 is always enough, because a multi-label model can learn a single label.
    /// - Throws: `LabelListError` with the line of the first problem; `ImageError.unreadable` if the file cannot be read.
    public init(at url: URL, minimumLabels: Int = 2) throws {
        let entries = try LabelListParser(url).entries()
        guard !entries.isEmpty else { throw LabelListError(file: url, problem: .noPhotos) }
        // Swift compares strings by canonical equivalence, so labels that look the same are the same.
        let labels = Set(entries.flatMap(\.labels)).sorted(by: precedes)
        let indices = Dictionary(uniqueKeysWithValues: labels.enumerated().map { ($1, $0) })
        let folder = url.deletingLastPathComponent()
        var photos: [(item: TrainingPhoto, path: String)] = []
        // Bytes, because file names that differ only in their Unicode normalization are equal strings.
        var earlier: [[UInt8]: (line: Int, labels: Set<String>)] = [:]
        for entry in entries {
            func fail(_ problem: LabelListError.Problem) -> LabelListError {
                LabelListError(file: url, line: entry.line, problem: problem)
            }
            let file = entry.path.hasPrefix("/") ? URL(filePath: entry.path) : folder.appending(path: entry.path)
            let set = Set(entry.labels)
            if let first = earlier.updateValue(
                (entry.line, set), forKey: Array(file.standardizedFileURL.displayPath.utf8))
            {
                guard first.labels == set else {
                    throw fail(.differentLabels(photo: entry.path, line: first.line))
                }
                continue
            }
            guard FileStatus(file)?.isFile == true else {
                throw fail(isURL(entry.path) ? .url(entry.path) : .missingPhoto(entry.path))
            }
            photos.append((TrainingPhoto(url: file, labels: set.compactMap { indices[$0] }), entry.path))
        }
        let minimum = photos.contains { $0.item.labels.count != 1 } ? min(minimumLabels, 1) : minimumLabels
        guard labels.count >= minimum else {
            throw LabelListError(file: url, problem: .tooFewLabels(found: labels, minimum: minimum))
        }
        photos.sort { first, second in
            first.item.labels == second.item.labels
                ? precedes(first.path, second.path)
                : first.item.labels.lexicographicallyPrecedes(second.item.labels)
        }
        var hash = SHA256()
        for photo in photos {
            let names = photo.item.labels.map { "\t\(labels[$0])" }.joined()
            hash.update("\(photo.path)\t\(photo.item.byteCount)\(names)\n".utf8Span.span.bytes)
        }
        self.url = url
        self.labels = labels
        items = photos.map(\.item)
        paths = Dictionary(photos.map { ($0.item.url, $0.path) }, uniquingKeysWith: { first, _ in first })
        digest = hash.hexadecimal
    }
}
