internal import ImprintModel
internal import ImprintNetwork

/// A parameter as another format stores it: with channels before pixels, encoded only when it is written.
struct ExportedTensor {
    /// The name in the model file, such as "conv1.weight".
    let name: String
    /// The lengths of the axes, the fastest last.
    let shape: [Int]
    let precision: Safetensors.Precision
    private let source: Source

    /// Hands numbers to a function, part by part.
    typealias Source = (_ body: (UnsafeBufferPointer<Float>) throws -> Void) throws -> Void

    /// A tensor of these numbers.
    init(_ name: String, shape: [Int], precision: Safetensors.Precision = .float32, source: @escaping Source) {
        self.name = name
        self.shape = shape
        self.precision = precision
        self.source = source
    }

    /// A tensor of a few numbers.
    init(_ name: String, shape: [Int], values: @escaping () -> [Float]) {
        self.init(name, shape: shape) { body in try values().withUnsafeBufferPointer(body) }
    }

    /// The number of values.
    var count: Int { shape.reduce(1, *) }
    /// The number of bytes.
    var byteCount: Int { count * precision.elementType.byteCount }

    /// The same tensor with its numbers seen in another shape.
    func reshaped(_ shape: [Int]) -> ExportedTensor {
        ExportedTensor(name, shape: shape, precision: precision, source: source)
    }

    /// A vector of the same single number.
    func repeated(_ count: Int) -> ExportedTensor {
        ExportedTensor(name, shape: [count], precision: precision) { [source] body in
            try source { numbers in
                try [Float](repeating: numbers[0], count: count).withUnsafeBufferPointer(body)
            }
        }
    }

    /// Hands the numbers' bytes, in little-endian order, to `body`, part by part.
    /// - Throws: `ExportError.Problem` if a number is beyond float16, and what `body` throws.
    func forEachPart(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        do {
            try source { try EncodedFloats.forEachPart(of: $0, as: precision, body) }
        } catch let error as EncodedFloats.ExceedsFloat16 {
            throw ExportError.Problem.exceedsFloat16(tensor: name, value: error.value)
        }
    }
}

/// Hands numbers [pixels, channels, outputs] to `body` in the order [outputs, channels, pixels], some outputs at a time.
///
/// It serves kernels of convolutions, the rows of a dense layer that reads an image, and with one output a value for each place.
func forEachPartChannelsFirst(
    _ values: UnsafeBufferPointer<Float>, pixels: Int, channels: Int, outputs: Int,
    _ body: (UnsafeBufferPointer<Float>) throws -> Void
) rethrows {
    precondition(values.count == pixels * channels * outputs, "the shape is not that of the numbers")
    let rows = pixels * channels
    let block = min(outputs, max(1, (1 << 20) / max(rows, 1)))
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

/// The channels of a list that counts up one by one; nil if it does not.
func contiguousRange(_ channels: [Int]) -> Range<Int>? {
    guard let first = channels.first, zip(channels, channels.dropFirst()).allSatisfy({ $1 == $0 + 1 }) else {
        return nil
    }
    return first..<(first + channels.count)
}
