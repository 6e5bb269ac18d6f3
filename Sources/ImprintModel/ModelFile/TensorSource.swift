internal import ImprintNetwork

/// Passes bytes to a closure, part by part.
package typealias ByteSource = (_ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Void

/// A tensor to write to a safetensors file, which is encoded part by part when it is written.
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

    /// Creates a source for a tensor in memory; `precision` applies to tensors that do not specify one.
    init(_ tensor: Safetensors.Tensor, as precision: Safetensors.Precision) {
        let precision = tensor.precision ?? precision
        self.init(tensor.name, shape: tensor.shape, precision.elementType) { body in
            try tensor.values.withUnsafeBufferPointer { try EncodedFloats.forEachPart(of: $0, as: precision, body) }
        }
    }

    /// Creates a source for a parameter tensor, which is not copied.
    init(_ entry: ParameterLayout.Entry, of parameters: Parameters, as precision: Safetensors.Precision) {
        self.init(entry.name, shape: entry.parameter.shape, precision.elementType) { body in
            try parameters.withValues(of: entry) {
                try EncodedFloats.forEachPart(of: UnsafeBufferPointer($0), as: precision, body)
            }
        }
    }

    var byteCount: Int { shape.reduce(elementType.byteCount, *) }

    /// Passes the bytes to `body`, part by part.
    /// - Throws: `SafetensorsError` if a finite value is beyond the range of float16, and the errors of `body`.
    func forEachPart(of path: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        do {
            try parts(body)
        } catch let error as EncodedFloats.ExceedsFloat16 {
            throw SafetensorsError(path: path, problem: .exceedsFloat16(tensor: name, value: error.value))
        }
    }
}
