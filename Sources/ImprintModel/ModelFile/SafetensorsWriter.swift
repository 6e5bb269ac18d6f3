package import Foundation
internal import ImprintCore

extension Safetensors {
    /// Writes tensors and metadata to a file atomically.
    ///
    /// Metadata is sorted by key, and tensors by name unless `inOrder` is set, so equal content gives equal bytes.
    /// - Parameters:
    ///   - tensors: The tensors; their names are unique, and none is `__metadata__`.
    ///   - precision: The precision of tensors that do not specify one; float16 rounds to nearest, ties to even.
    ///   - inOrder: Whether the tensors keep the given order.
    ///   - url: The file.
    ///   - checksumKey: The metadata key of a checksum of data and digest; nil for no checksum.
    ///   - metadata: A closure that returns the metadata, given the SHA-256 digest of the data in hexadecimal.
    /// - Returns: The digest.
    /// - Throws: `SafetensorsError` if a finite value is beyond the range of float16, or if the header exceeds `maximumHeaderLength`;
    ///   `FileError` if the file cannot be written.
    @discardableResult
    package static func write(
        _ tensors: [Tensor], as precision: Precision = .float32, inOrder: Bool = false, to url: URL,
        checksumKey: String? = nil, metadata: (_ dataDigest: String) -> [String: String]
    ) throws -> String {
        let sources = tensors.map { TensorSource($0, as: precision) }
        return try write(sources, inOrder: inOrder, to: url, checksumKey: checksumKey, metadata: metadata)
    }

    /// Writes tensors that are encoded part by part.
    ///
    /// The writer encodes each tensor twice, for the digest in the header and for the file, and never holds it in memory as a whole.
    /// - Parameter headerLimit: The maximum length of the header in bytes; readers reject a longer one.
    @discardableResult
    static func write(
        _ tensors: [TensorSource], inOrder: Bool, to url: URL, checksumKey: String?,
        headerLimit: Int = maximumHeaderLength, metadata: (_ dataDigest: String) -> [String: String]
    ) throws -> String {
        let tensors = inOrder ? checked(tensors) : checked(tensors).sorted { precedes($0.name, $1.name) }
        var (hash, checksum) = (SHA256(), Checksum())
        for tensor in tensors {
            try tensor.forEachPart(of: url.path) {
                hash.update($0.bytes)
                checksum.update($0)
            }
        }
        let digest = hash.hexadecimal
        var entries = metadata(digest)
        if let checksumKey { entries[checksumKey] = checksum.hexadecimal(digest: digest) }
        var end = 0
        let descriptions = tensors.map { tensor in
            defer { end += tensor.byteCount }
            return TensorDescription(
                name: tensor.name, elementType: tensor.elementType, shape: tensor.shape,
                byteRange: end..<(end + tensor.byteCount))
        }
        let header = Header(metadata: entries, tensors: descriptions).encoded
        guard header.count <= headerLimit else {
            throw SafetensorsError(
                path: url.path, problem: .headerExceedsLimit(byteCount: header.count, limit: headerLimit))
        }
        let length = withUnsafeBytes(of: UInt64(header.count).littleEndian, Array.init)
        try AtomicFile.write(to: url) { output in
            try output.write(length + header)
            for tensor in tensors { try tensor.forEachPart(of: url.path) { try output.write($0) } }
        }
        return digest
    }

    /// Returns the SHA-256 digest of the data of a file with these tensors, in order.
    /// - Parameters:
    ///   - tensors: The tensors.
    ///   - path: The file in error messages.
    /// - Throws: `SafetensorsError` if a finite value is beyond the range of float16.
    static func digest(_ tensors: [TensorSource], path: String) throws -> String {
        var hash = SHA256()
        for tensor in checked(tensors) { try tensor.forEachPart(of: path) { hash.update($0.bytes) } }
        return hash.hexadecimal
    }

    /// Checks that the names of the tensors are valid and unique.
    private static func checked(_ tensors: [TensorSource]) -> [TensorSource] {
        var names: Set = ["__metadata__"]
        for tensor in tensors {
            precondition(names.insert(tensor.name).inserted, "the tensor name \(tensor.name) is reserved or used twice")
        }
        return tensors
    }
}
