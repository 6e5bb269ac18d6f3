internal import ImprintNetwork

/// Calls a closure with the bytes of something, part by part.
package typealias ByteSource = (_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Void

/// A tensor on its way into a safetensors file, whose bytes are made part by part when they are written.
struct TensorSource {
    let name: String
    let shape: [Int]
    let elementType: Safetensors.ElementType
    private let parts: ByteSource

    init(
        _ name: String, shape: [Int], _ elementType: Safetensors.ElementType,
        parts: @escaping ByteSource
    ) {
        self.name = name
        self.shape = shape
        self.elementType = elementType
        self.parts = parts
    }

    /// A tensor in memory, with its numbers stored as `precision` says if it does not say it itself.
    init(_ tensor: Safetensors.Tensor, as precision: Safetensors.Precision) {
        let elementType = tensor.elementType(in: precision)
        self.init(tensor.name, shape: tensor.shape, elementType) { body in
            if elementType == .int8 {
                let length = EncodedFloats.partLength
                for start in stride(from: 0, to: tensor.values.count, by: length) {
                    try tensor.values[start..<min(start + length, tensor.values.count)].map { Int8($0) }
                        .withUnsafeBytes(body)
                }
            } else {
                try tensor.values.withUnsafeBufferPointer {
                    try EncodedFloats.forEachPart(of: $0, as: tensor.precision ?? precision, body)
                }
            }
        }
    }

    /// Parameters, read from if they are.
    init(_ entry: ParameterLayout.Entry, of parameters: Parameters, as precision: Safetensors.Precision) {
        self.init(entry.name, shape: entry.parameter.shape, precision.elementType) { body in
            try parameters.withValues(of: entry) {
                try EncodedFloats.forEachPart(of: UnsafeBufferPointer($0), as: precision, body)
            }
        }
    }

    var byteCount: Int { shape.reduce(elementType.byteCount, *) }

    /// Hands the bytes to `body`, part by part.
    /// - Throws: `SafetensorsError` if a finite number is beyond float16, and what `body` throws.
    func forEachPart(of path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        do {
            try parts(body)
        } catch let error as EncodedFloats.ExceedsFloat16 {
            throw SafetensorsError(path: path, problem: .exceedsFloat16(tensor: name, value: error.value))
        }
    }
}
