internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// A file that caches the features of photos, so that a later or interrupted run does not compute them again.
///
/// The cache contains no photos. Features are derived from them, so treat the file as private, as you do the photos.
final class FeatureCache {
    private let url: URL
    /// The base model and the settings that determine the features; features with another key are not used.
    private let key: String
    private var views: [String: [Float]] = [:]
    private let viewCount: Int
    /// The number of values per view.
    private let length: Int
    private var isSaved = true

    private static let formatKey = FeatureCacheFile.formatKey
    private static let keyKey = "imprint.key"
    private static let digestKey = "imprint.digest"

    /// Opens a cache file, which may be missing or empty.
    /// - Throws: `FileError` or `SafetensorsError` if the file exists and cannot be read, `ImprintError.notAFeatureCache` if it contains
    ///   something else, `ImprintError.damagedFeatureCache` if it is cut off or damaged.
    init(_ url: URL, base: String, blocks: Int, views viewCount: Int, length: Int) throws {
        self.url = url
        self.viewCount = viewCount
        key = Self.key(base: base, blocks: blocks, views: viewCount, length: length)
        self.length = length
        guard let status = FileStatus(url), !status.isFile || status.size > 0 else {
            try AtomicFile.checkWritable(url)
            return
        }
        let file: Safetensors.File
        do {
            file = try Safetensors.File(contentsOf: url)
        } catch let error as SafetensorsError {
            // The file may be intact.
            if case .outOfMemory = error.problem { throw error }
            throw OutputFile.hasMetadata(Self.formatKey, url)
                ? ImprintError.damagedFeatureCache(file: url.path) : ImprintError.notAFeatureCache(file: url.path)
        }
        let metadata = file.header.metadata
        guard metadata[Self.formatKey] != nil else { throw ImprintError.notAFeatureCache(file: url.path) }
        guard metadata[Self.formatKey] == "1", metadata[Self.keyKey] == key else { return }
        guard metadata[Self.digestKey] == (try file.dataDigest()) else {
            throw ImprintError.damagedFeatureCache(file: url.path)
        }
        for tensor in file.header.tensors where tensor.count == viewCount * length {
            views[tensor.name] = try file.values(of: tensor)
        }
    }

    private static func key(base: String, blocks: Int, views: Int, length: Int) -> String {
        "\(base) blocks \(blocks) views \(views) length \(length)"
    }

    /// Returns the reason why the features of a cache file cannot be used, as a clause; nil if they can, or if the file is not a cache.
    ///
    /// It reads only the metadata.
    static func mismatch(of url: URL, base: String, blocks: Int, views: Int, length: Int) -> String? {
        let metadata = Safetensors.leadingMetadata(of: url)
        guard let format = metadata[formatKey] else { return nil }
        guard format == "1" else { return "another version of Imprint wrote it" }
        guard let found = metadata[keyKey], found != key(base: base, blocks: blocks, views: views, length: length)
        else { return nil }
        return found.hasPrefix("\(base) ") ? "it was made with other settings" : "it belongs to another model"
    }

    /// Computes the name of a photo in the cache: the SHA-256 digest of its bytes.
    ///
    /// It is nil if the file cannot be read, or cannot be decoded because it is too large or not a regular file.
    static func name(of photo: URL) -> String? {
        guard let status = FileStatus(photo), status.isFile, status.size <= ImageFile.byteLimit else { return nil }
        return try? FileDigest.sha256(of: photo)
    }

    /// Returns the cached features of each view of a photo; nil if there are none.
    ///
    /// Several threads may call this method at the same time, but not during a call of `add(_:_:)`.
    func features(_ name: String) -> [[Float]]? {
        guard let all = views[name], all.allSatisfy(\.isFinite) else { return nil }
        return (0..<viewCount).map { Array(all[($0 * length)..<(($0 + 1) * length)]) }
    }

    /// Adds the features of a photo, without writing the file.
    func add(_ name: String, _ features: [[Float]]) {
        views[name] = Array(features.joined())
        isSaved = false
    }

    /// Writes the file if there are new features.
    /// - Throws: `FileError` if the file cannot be written, or if another program has put another file there in the meantime.
    func save() throws(FileError) {
        guard !isSaved else { return }
        guard OutputFile.canReplace(url, ifRecognizedBy: { OutputFile.hasMetadata(Self.formatKey, $0) }) else {
            throw .cannotWrite(
                path: url.path, reason: "it now contains a file that Imprint did not write as a feature cache",
                remedy: "Choose another file.")
        }
        let tensors = views.map { Safetensors.Tensor(name: $0.key, shape: [$0.value.count], values: $0.value) }
        do {
            try Safetensors.write(tensors, to: url) { [Self.formatKey: "1", Self.keyKey: key, Self.digestKey: $0] }
        } catch let error as FileError {
            throw error
        } catch {
            throw .cannotWrite(path: url.path, reason: "\(error)".clause, remedy: "Choose another file.")
        }
        isSaved = true
    }
}
