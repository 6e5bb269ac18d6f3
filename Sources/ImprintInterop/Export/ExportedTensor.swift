internal import ImprintModel
internal import ImprintNetwork

/// A parameter in the channels-first layout of the target format, which is encoded when it is written.
struct ExportedTensor {
    /// The name in the model file, such as "conv1.weight".
    let name: String
    /// The lengths of the axes, fastest last.
    let shape: [Int]
    let precision: Safetensors.Precision
    private let source: Source

    /// Passes the values to a function in parts.
    typealias Source = (_ body: (UnsafeBufferPointer<Float>) throws -> Void) throws -> Void

    /// Creates a tensor with the values of `source`.
    init(_ name: String, shape: [Int], precision: Safetensors.Precision = .float32, source: @escaping Source) {
        self.name = name
        self.shape = shape
        self.precision = precision
        self.source = source
    }

    /// Creates a small tensor.
    init(_ name: String, shape: [Int], values: @escaping () -> [Float]) {
        self.init(name, shape: shape) { body in try values().withUnsafeBufferPointer(body) }
    }

    /// The number of values.
    var count: Int { shape.reduce(1, *) }
    /// The number of bytes.
    var byteCount: Int { count * precision.elementType.byteCount }

    /// Returns the tensor with another shape.
    func reshaped(_ shape: [Int]) -> ExportedTensor {
        ExportedTensor(name, shape: shape, precision: precision, source: source)
    }

    /// Returns a vector that repeats the tensor's only value.
    func repeated(_ count: Int) -> ExportedTensor {
        ExportedTensor(name, shape: [count], precision: precision) { [source] body in
            try source { values in
                try [Float](repeating: values[0], count: count).withUnsafeBufferPointer(body)
            }
        }
    }

    /// Passes the values as little-endian bytes to `body` in parts.
    ///
    /// - Throws: `ExportError.Problem` if a value exceeds float16, or an error of `body`.
    func forEachPart(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        do {
            try source { try EncodedFloats.forEachPart(of: $0, as: precision, body) }
        } catch let error as EncodedFloats.ExceedsFloat16 {
            throw ExportError.Problem.exceedsFloat16(tensor: name, value: error.value)
        }
    }
}

extension ExportedTensor {
    /// Passes the values, which must be integers, as little-endian integers of a type to `body` in parts.
    func forEachPart<Integer: FixedWidthInteger>(
        as type: Integer.Type, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        try source { values in
            try values.map { Integer($0).littleEndian }.withUnsafeBytes(body)
        }
    }
}

/// Transposes values [pixels, channels, outputs] to [outputs, channels, pixels] and passes blocks of outputs to `body`.
///
/// It applies to convolution kernels, to dense layers that read an image and, with one output, to parameters of each element.
func forEachPartChannelsFirst(
    _ values: UnsafeBufferPointer<Float>, pixels: Int, channels: Int, outputs: Int,
    _ body: (UnsafeBufferPointer<Float>) throws -> Void
) rethrows {
    precondition(values.count == pixels * channels * outputs, "the shape does not match the values")
    let rows = pixels * channels
    // Blocks of at most 1 MB, unless an output has more, so that little memory suffices.
    let block = min(outputs, max(1, (1 << 18) / max(rows, 1)))
    var part = [Float](repeating: 0, count: block * rows)
    for first in stride(from: 0, to: outputs, by: block) {
        let count = min(block, outputs - first)
        part.withUnsafeMutableBufferPointer { part in
            for pixel in 0..<pixels {
                for channel in 0..<channels {
                    let (from, to) = ((pixel * channels + channel) * outputs + first, channel * pixels + pixel)
                    for output in 0..<count { part[output * rows + to] = values[from + output] }
                }
            }
        }
        try part.withUnsafeBufferPointer { try body(UnsafeBufferPointer(rebasing: $0[..<(count * rows)])) }
    }
}

/// Returns the range of consecutive channels; nil if they are not consecutive.
func contiguousRange(_ channels: [Int]) -> Range<Int>? {
    guard let first = channels.first, zip(channels, channels.dropFirst()).allSatisfy({ $1 == $0 + 1 }) else {
        return nil
    }
    return first..<(first + channels.count)
}
