internal import CImprintKernels

/// Encodes float32 values for a file in parts, without a second copy of a large tensor in memory.
package enum EncodedFloats {
    /// The number of values that are encoded at a time.
    package static let partLength = 1 << 16

    /// The error of a finite value beyond the range of float16.
    package struct ExceedsFloat16: Error {
        package let value: Float
    }

    /// Passes the little-endian bytes of the values to `body`, part by part.
    /// - Throws: `ExceedsFloat16`, and the errors of `body`.
    package static func forEachPart(
        of values: UnsafeBufferPointer<Float>, as precision: Safetensors.Precision,
        _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard precision == .float16 else { return try body(UnsafeRawBufferPointer(values)) }
        var halves = [UInt16](repeating: 0, count: min(partLength, values.count))
        for start in stride(from: 0, to: values.count, by: partLength) {
            let part = UnsafeBufferPointer(rebasing: values[start..<min(start + partLength, values.count)])
            if imprint_float32_to_float16(part.baseAddress, &halves, part.count) > 0,
                let value = zip(part, halves).first(where: { $0.isFinite && $1 & 0x7FFF == 0x7C00 })?.0
            {
                throw ExceedsFloat16(value: value)
            }
            try halves.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<(2 * part.count)])) }
        }
    }
}
