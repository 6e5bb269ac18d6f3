internal import Crypto
internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// The signed part of a model signature: an in-toto statement with the digest of each file.
///
/// The subject has the name of the model, for information, and the SHA-256 digest of the concatenated digests of all resources. A
/// resource is a file, or a shard of a file with the name `path:start:end`. The file of a model of one file has the name ".".
struct SignedStatement: Codable, Equatable {
    static let type = "https://in-toto.io/Statement/v1"
    static let predicateType = "https://model_signing/signature/v1.0"

    struct Subject: Codable, Equatable {
        let name: String
        let digest: [String: String]
    }

    struct Resource: Codable, Equatable {
        let name: String
        let algorithm: String
        let digest: String
    }

    /// The rules by which the signer computed the resources.
    struct Serialization: Codable, Equatable {
        /// "files" or "shards".
        let method: String
        let hashType: String
        /// Whether the signer followed symbolic links; a verified model never contains any.
        let allowsLinks: Bool
        /// The size of a shard in bytes; a number with a fraction would be invalid.
        let shardSize: Double?
        /// The paths within the model that are not signed.
        let ignoredPaths: [String]?

        private enum CodingKeys: String, CodingKey {
            case method
            case hashType = "hash_type"
            case allowsLinks = "allow_symlinks"
            case shardSize = "shard_size"
            case ignoredPaths = "ignore_paths"
        }
    }

    struct Predicate: Codable, Equatable {
        let serialization: Serialization
        let resources: [Resource]
    }

    let type: String
    let subject: [Subject]
    let predicateType: String
    let predicate: Predicate

    private enum CodingKeys: String, CodingKey {
        case type = "_type"
        case subject, predicateType, predicate
    }

    /// Creates the statement about files.
    /// - Parameters:
    ///   - name: The name of the model.
    ///   - digests: The SHA-256 digest of each file, by path.
    ///   - ignoredPaths: The paths that are not signed.
    init(name: String, digests: [ModelPath: String], ignoring ignoredPaths: [ModelPath]) {
        // In the order of path components, as other programs write them.
        let resources = digests.sorted {
            $0.key.components.lexicographicallyPrecedes($1.key.components)
        }.map { Resource(name: $0.key.text, algorithm: "sha256", digest: $0.value) }
        type = Self.type
        subject = [Subject(name: name, digest: ["sha256": Self.rootDigest(resources) ?? ""])]
        predicateType = Self.predicateType
        predicate = Predicate(
            serialization: Serialization(
                method: "files", hashType: "sha256", allowsLinks: false, shardSize: nil,
                ignoredPaths: ignoredPaths.isEmpty ? nil : ignoredPaths.map(\.text)),
            resources: resources)
    }

    /// Reads a statement and checks it.
    /// - Throws: `SignatureError.invalidSignature` for `name`.
    init(_ payload: Data, named name: String) throws(SignatureError) {
        func invalid(_ reason: String) -> SignatureError { .invalidSignature(name: name, reason: reason) }
        let kind: Kind = try decoded(payload, "the statement", name)
        guard kind.type == Self.type else {
            throw invalid("the statement has the type \(quoted(kind.type)), expected \(Self.type)")
        }
        guard kind.predicateType == Self.predicateType else {
            throw invalid(
                "the statement has the predicate type \(quoted(kind.predicateType)), expected \(Self.predicateType)")
        }
        self = try decoded(payload, "the statement", name)
        guard subject.count == 1 else { throw invalid("the statement has \(subject.count) subjects, expected 1") }
        if let problem = problem() { throw invalid(problem) }
    }

    private struct Kind: Decodable {
        let type: String
        let predicateType: String

        private enum CodingKeys: String, CodingKey {
            case type = "_type"
            case predicateType
        }
    }

    /// Returns the reason why the statement is invalid, or nil.
    private func problem() -> String? {
        let serialization = predicate.serialization
        guard ["files", "shards"].contains(serialization.method) else {
            return "the files were serialized by the method \(quoted(serialization.method)), expected files or shards"
        }
        guard serialization.hashType == "sha256" else {
            return "the digests are of the type \(quoted(serialization.hashType)), expected sha256"
        }
        if serialization.method == "shards", shardSize == nil {
            return "the shards have no valid size, expected a whole number of at least \(Self.minimumShardSize) bytes"
        }
        let resources = predicate.resources
        if resources.isEmpty { return "the statement lists no files" }
        // As strings, because results have the paths as strings: names that are equivalent in Unicode count as equal.
        var names = Set<String>()
        for resource in resources {
            guard names.insert(resource.name).inserted else {
                return "the statement lists \(quoted(resource.name)) twice"
            }
            guard resource.algorithm == "sha256" || resource.algorithm.hasPrefix("sha256-sharded-") else {
                return "the digest of \(quoted(resource.name)) is of the type \(quoted(resource.algorithm)), "
                    + "expected sha256"
            }
            guard FileDigest.isDigest(resource.digest) else {
                return "the digest of \(quoted(resource.name)) is \(quoted(resource.digest)), expected 64 hexadecimal "
                    + "digits"
            }
            guard let path = path(of: resource), Self.isSafe(path) else {
                return "the statement lists \(quoted(resource.name)), expected a path within the model"
            }
        }
        if paths.contains(.file), paths.count > 1 { return "the statement lists a model of one file and other files" }
        let expected = subject[0].digest["sha256"] ?? ""
        guard let found = Self.rootDigest(resources), found == expected else {
            return "the digest of the listed files is \(Self.rootDigest(resources) ?? "invalid"), but the subject has "
                + quoted(expected)
        }
        return nil
    }

    private static let minimumShardSize = 1024

    /// The size of a shard in bytes; nil if files are not split.
    var shardSize: Int? {
        guard predicate.serialization.method == "shards", let size = predicate.serialization.shardSize,
            let size = Int(exactly: size), size >= Self.minimumShardSize
        else { return nil }
        return size
    }

    /// The digest of each resource, by name.
    var digests: [ModelPath: String] {
        Dictionary(predicate.resources.map { (ModelPath($0.name), $0.digest) }) { first, _ in first }
    }

    /// The paths of the signed files.
    var paths: Set<ModelPath> { Set(predicate.resources.compactMap(path)) }

    /// Whether the model is a folder, and not one file.
    var isFolder: Bool { !paths.contains(.file) }

    /// The paths that are not signed; nil if the statement does not list them.
    var ignoredPaths: [ModelPath]? { predicate.serialization.ignoredPaths?.map(ModelPath.init) }

    /// Returns the path of the file of a resource; nil for a shard without a range.
    private func path(of resource: Resource) -> ModelPath? {
        let name = ModelPath(resource.name)
        guard predicate.serialization.method == "shards" else { return name }
        let parts = name.split(":")
        guard parts.count == 3, Int(parts[1].text) != nil, Int(parts[2].text) != nil else { return nil }
        return parts[0]
    }

    /// Whether a path stays within the model: "." or a relative path without "." and "..".
    private static func isSafe(_ path: ModelPath) -> Bool {
        if path == .file { return true }
        return !path.text.utf8.contains(0) && path.components.allSatisfy { !["", ".", ".."].contains($0.text) }
    }

    /// Returns the SHA-256 digest of the concatenated digests; nil if one is not hexadecimal.
    private static func rootDigest(_ resources: [Resource]) -> String? {
        var hash = Crypto.SHA256()
        for resource in resources {
            guard let bytes = Data(hexadecimal: resource.digest) else { return nil }
            hash.update(data: bytes)
        }
        return hash.finalize().hexadecimal
    }
}

/// Decodes JSON from an untrusted source.
/// - Parameter item: The name of the JSON in error messages, such as "the statement".
func decoded<Value: Decodable>(_ bytes: Data, _ item: String, _ name: String) throws(SignatureError) -> Value {
    do {
        return try JSONDecoder().decode(Value.self, from: bytes)
    } catch let error as DecodingError {
        throw .invalidSignature(name: name, reason: "\(item) is not valid: \(explanation(error).clause)")
    } catch {
        throw .invalidSignature(name: name, reason: "\(item) is not valid JSON")
    }
}

extension Data {
    /// Reads pairs of hexadecimal digits.
    fileprivate init?(hexadecimal text: String) {
        let digits = text.utf8.compactMap {
            UnicodeScalar($0).properties.isASCIIHexDigit ? Character(UnicodeScalar($0)).hexDigitValue : nil
        }
        guard digits.count == text.utf8.count, digits.count % 2 == 0 else { return nil }
        self = Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }
}
