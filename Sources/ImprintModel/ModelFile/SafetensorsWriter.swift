public import Foundation
internal import ImprintCore

extension Safetensors {
    /// Writes `tensors` and `metadata` to the file at `url`, which is replaced as `AtomicFile` does it.
    ///
    /// The metadata are sorted by key, and the tensors by name unless they are to stay in order, so equal content gives equal bytes.
    ///
    /// - Parameters:
    ///   - tensors: no two of the same name, none named `__metadata__`.
    ///   - precision: how the numbers of tensors that do not say it themselves are stored; float16 rounds to nearest, ties to even.
    ///   - inOrder: whether the tensors stay in the order in which they are given.
    ///   - url: the file.
    ///   - checksumKey: under what a checksum of data and digest is stored; none where left out.
    ///   - metadata: gives the texts to store, from the SHA-256 digest of the data in hexadecimal.
    ///
    /// - Returns: the digest.
    ///
    /// Throws `SafetensorsError` where a finite number is beyond float16, `FileError` where the file cannot be written.
    @discardableResult
    public static func write(
        _ tensors: [Tensor], as precision: Precision = .float32, inOrder: Bool = false, to url: URL,
        checksumKey: String? = nil, metadata: (_ dataDigest: String) -> [String: String]
    ) throws -> String {
        let sources = tensors.map { TensorSource($0, as: precision) }
        return try write(sources, inOrder: inOrder, to: url, checksumKey: checksumKey, metadata: metadata)
    }

    /// Writes tensors whose bytes are made part by part.
    ///
    /// They are encoded twice, for the digest in the header and for the file, and never in memory as a whole.
    @discardableResult
    static func write(
        _ tensors: [TensorSource], inOrder: Bool, to url: URL, checksumKey: String?,
        metadata: (_ dataDigest: String) -> [String: String]
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
        var texts = metadata(digest)
        if let checksumKey { texts[checksumKey] = checksum.hexadecimal(digest: digest) }
        var end = 0
        let descriptions = tensors.map { tensor in
            defer { end += tensor.byteCount }
            return TensorDescription(
                name: tensor.name, elementType: tensor.elementType, shape: tensor.shape,
                byteRange: end..<(end + tensor.byteCount))
        }
        let header = Header(metadata: texts, tensors: descriptions).encoded
        let length = withUnsafeBytes(of: UInt64(header.count).littleEndian, Array.init)
        try AtomicFile.write(to: url) { output in
            try output.write(length + header)
            for tensor in tensors { try tensor.forEachPart(of: url.path) { try output.write($0) } }
        }
        return digest
    }

    /// The SHA-256 digest that a file of these tensors, in order, has.
    /// - Throws: `SafetensorsError` if a finite number is beyond float16; it names `path`.
    static func digest(_ tensors: [TensorSource], path: String) throws -> String {
        var hash = SHA256()
        for tensor in checked(tensors) { try tensor.forEachPart(of: path) { hash.update($0.bytes) } }
        return hash.hexadecimal
    }

    /// The tensors, which all have names of their own.
    private static func checked(_ tensors: [TensorSource]) -> [TensorSource] {
        var names: Set = ["__metadata__"]
        for tensor in tensors {
            precondition(names.insert(tensor.name).inserted, "the tensor name \(tensor.name) is reserved or used twice")
        }
        return tensors
    }
}
