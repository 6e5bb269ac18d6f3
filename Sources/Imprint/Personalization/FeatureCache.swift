internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel

/// Features of photos in a file, so that they are computed but once: also what work that was ended half-way goes on from.
///
/// It holds no photos, but numbers that are computed of them: it belongs to the person as the photos do.
final class FeatureCache {
    private let url: URL
    /// What else decides about features: those of another base, or of other settings, are not used.
    private let key: String
    private var views: [String: [Float]] = [:]
    private let viewCount: Int
    /// How many numbers a view has.
    private let length: Int
    private var isSaved = true

    /// The keys of the metadata.
    private static let format = FeatureCacheFile.formatKey
    private static let keyKey = "imprint.key"
    private static let digest = "imprint.digest"

    /// Opens the file at `url`; it may be missing or empty.
    /// - Throws: `SafetensorsError` or `FileError` if there is a file that cannot be read, `ImprintError.notAFeatureCache` if it is none.
    init(_ url: URL, base: String, blocks: Int, views viewCount: Int, length: Int) throws {
        self.url = url
        self.viewCount = viewCount
        key = "\(base) blocks \(blocks) views \(viewCount) length \(length)"
        self.length = length
        guard let status = FileStatus(url), !status.isFile || status.size > 0 else {
            try AtomicFile.checkWritable(url)
            return
        }
        let file = try Safetensors.File(contentsOf: url)
        let texts = file.header.metadata
        guard texts[Self.format] != nil else { throw ImprintError.notAFeatureCache(file: url.path) }
        guard texts[Self.format] == "1", texts[Self.keyKey] == key else { return }
        guard texts[Self.digest] == (try file.dataDigest()) else { throw ImprintError.damagedFeatureCache(file: url.path) }
        for tensor in file.header.tensors where tensor.count == viewCount * length {
            views[tensor.name] = try file.values(of: tensor)
        }
    }

    /// The name of a photo in the file: the digest of its bytes.
    static func name(of photo: URL) throws -> String {
        SHA256.hexadecimal(of: Array(try Data(contentsOf: photo)))
    }

    /// The features of each view of a photo, if they are known.
    func features(_ name: String) -> [[Float]]? {
        guard let all = views[name], all.allSatisfy(\.isFinite) else { return nil }
        return (0..<viewCount).map { Array(all[($0 * length)..<(($0 + 1) * length)]) }
    }

    /// Takes note of the features of a photo.
    func add(_ name: String, _ features: [[Float]]) {
        views[name] = Array(features.joined())
        isSaved = false
    }

    /// Writes what is new.
    /// - Throws: `FileError` if the file cannot be written.
    func save() throws {
        guard !isSaved else { return }
        let tensors = views.map { Safetensors.Tensor(name: $0.key, shape: [$0.value.count], values: $0.value) }
        try Safetensors.write(tensors, to: url) { [Self.format: "1", Self.keyKey: key, Self.digest: $0] }
        isSaved = true
    }
}
