internal import CImprintKernels
internal import ImprintNetwork

/// A parameter as another format stores it: with channels before pixels, encoded only when it is written.
struct ExportedTensor {
    /// The name in the weights file, such as "conv1.weight".
    let name: String
    /// The lengths of the axes, the fastest last.
    let shape: [Int]
    let precision: Safetensors.Precision
    private let values: () -> [Float]

    /// A tensor of these numbers.
    init(
        _ name: String, shape: [Int], precision: Safetensors.Precision = .float32, values: @escaping () -> [Float]
    ) {
        self.name = name
        self.shape = shape
        self.precision = precision
        self.values = values
    }

    /// The number of values.
    var count: Int { shape.reduce(1, *) }
    /// The number of bytes.
    var byteCount: Int { count * precision.elementType.byteCount }

    /// The same tensor with its numbers seen in another shape.
    func reshaped(_ shape: [Int]) -> ExportedTensor {
        ExportedTensor(name, shape: shape, precision: precision, values: values)
    }

    /// A vector of the same single number.
    func repeated(_ count: Int) -> ExportedTensor {
        ExportedTensor(name, shape: [count], precision: precision) { [values] in
            [Float](repeating: values()[0], count: count)
        }
    }

    /// The numbers in little-endian order of bytes.
    func bytes() throws(ExportError.Problem) -> [UInt8] {
        let values = values()
        guard precision == .float16 else { return values.withUnsafeBytes { Array($0) } }
        var halves = [UInt16](repeating: 0, count: values.count)
        if imprint_float32_to_float16(values, &halves, halves.count) > 0,
            let value = zip(values, halves).first(where: { $0.isFinite && $1 & 0x7FFF == 0x7C00 })?.0
        {
            throw .exceedsFloat16(tensor: name, value: value)
        }
        return halves.withUnsafeBytes { Array($0) }
    }
}

/// Numbers [pixels, channels, outputs] in the order [outputs, channels, pixels].
///
/// It serves kernels of convolutions, the rows of a dense layer that reads an image, and with one output a value for each place.
func channelsFirst(_ values: [Float], pixels: Int, channels: Int, outputs: Int) -> [Float] {
    precondition(values.count == pixels * channels * outputs, "the shape is not that of the numbers")
    return [Float](unsafeUninitializedCapacity: values.count) { result, count in
        values.withUnsafeBufferPointer { values in
            var place = 0
            for output in 0..<outputs {
                for channel in 0..<channels {
                    for pixel in 0..<pixels {
                        result[place] = values[(pixel * channels + channel) * outputs + output]
                        place += 1
                    }
                }
            }
        }
        count = values.count
    }
}

/// The channels of a list that counts up one by one; `nil` where it does not.
func contiguousRange(_ channels: [Int]) -> Range<Int>? {
    guard let first = channels.first, zip(channels, channels.dropFirst()).allSatisfy({ $1 == $0 + 1 }) else {
        return nil
    }
    return first..<(first + channels.count)
}
