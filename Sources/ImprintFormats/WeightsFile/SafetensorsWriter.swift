internal import CImprintKernels
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
        let (data, descriptions) = try encoded(tensors, as: precision, inOrder: inOrder, path: url.path)
        let digest = SHA256.hexadecimal(of: data)
        var texts = metadata(digest)
        if let checksumKey {
            var checksum = Checksum()
            data.withUnsafeBytes { checksum.update($0) }
            texts[checksumKey] = checksum.hexadecimal(digest: digest)
        }
        let header = Header(metadata: texts, tensors: descriptions).encoded
        let length = withUnsafeBytes(of: UInt64(header.count).littleEndian, Array.init)
        try AtomicFile.write(to: url) { output in
            try output.write(length + header)
            try output.write(data)
        }
        return digest
    }

    /// The SHA-256 digest that a file of these tensors, in order, has.
    /// - Throws: `SafetensorsError` where a finite number is beyond float16; it names `path`.
    static func digest(_ tensors: [Tensor], as precision: Precision, path: String) throws(SafetensorsError) -> String {
        SHA256.hexadecimal(of: try encoded(tensors, as: precision, inOrder: true, path: path).data)
    }

    private static func encoded(
        _ tensors: [Tensor], as precision: Precision, inOrder: Bool, path: String
    ) throws(SafetensorsError) -> (data: [UInt8], descriptions: [TensorDescription]) {
        let sorted = tensors.sorted { precedes($0.name, $1.name) }
        for (first, second) in zip(sorted, sorted.dropFirst()) {
            precondition(first.name != second.name, "two tensors are named \(first.name)")
        }
        let tensors = inOrder ? tensors : sorted
        var data: [UInt8] = []
        data.reserveCapacity(
            tensors.reduce(0) { $0 + $1.values.count * $1.elementType(in: precision).byteCount })
        var descriptions: [TensorDescription] = []
        for tensor in tensors {
            precondition(tensor.name != "__metadata__", "a tensor cannot be named __metadata__")
            let start = data.count
            let elementType = tensor.elementType(in: precision)
            switch elementType {
            case .int8: data += tensor.values.map { UInt8(bitPattern: Int8($0)) }
            case .float16:
                var halves = [UInt16](repeating: 0, count: tensor.values.count)
                if imprint_float32_to_float16(tensor.values, &halves, halves.count) > 0,
                    let value = zip(tensor.values, halves).first(where: { $0.isFinite && $1 & 0x7FFF == 0x7C00 })?.0
                {
                    throw SafetensorsError(path: path, problem: .exceedsFloat16(tensor: tensor.name, value: value))
                }
                halves.withUnsafeBytes { data += $0 }
            default: tensor.values.withUnsafeBytes { data += $0 }
            }
            descriptions.append(
                TensorDescription(
                    name: tensor.name, elementType: elementType, shape: tensor.shape, byteRange: start..<data.count))
        }
        return (data, descriptions)
    }
}
