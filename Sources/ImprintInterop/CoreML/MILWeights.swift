internal import ImprintCore

/// Compressed weights (constexpr operations, coremltools' MIL documentation).
extension MILImporter {
    /// Returns the decompressed weights of a constexpr operation.
    func decompressed(_ operation: Operation) throws -> Constant {
        switch operation.type {
        case "constexpr_affine_dequantize": return try dequantized(operation)
        case "constexpr_lut_to_dense": return try lookedUp(operation)
        case "constexpr_cast": return try requiredConstant("source_val", operation)
        case "constexpr_blockwise_shift_scale": return try shifted(operation)
        default: throw unsupported(operation)
        }
    }

    /// Computes (code − zero point) · scale, with one of each for the whole tensor or for each index along an axis.
    private func dequantized(_ operation: Operation) throws -> Constant {
        let codes = try requiredConstant("quantized_data", operation)
        let scale = try requiredConstant("scale", operation).floats
        let zero = try requiredConstant("zero_point", operation).floats
        let found = try integer("axis", operation) ?? 0
        let axis = found < 0 ? found + codes.shape.count : found
        guard codes.shape.indices.contains(axis), let first = scale.first, let firstZero = zero.first else {
            throw malformed(operation, "has the axis \(found) for a tensor \(codes.shape)")
        }
        let length = codes.shape[axis]
        guard [1, length].contains(scale.count), [1, length].contains(zero.count) else {
            throw malformed(
                operation,
                "has \(counted(scale.count, "scale")) and \(counted(zero.count, "zero point")) for an axis of length \(length)"
            )
        }
        let inner = codes.shape[(axis + 1)...].reduce(1, *)
        let values = codes.floats
        return Constant(
            shape: codes.shape,
            floats: values.indices.map { index in
                let part = index / max(inner, 1) % max(length, 1)
                return (values[index] - (zero.count > 1 ? zero[part] : firstZero))
                    * (scale.count > 1 ? scale[part] : first)
            })
    }

    /// Computes (code − offset) · scale, with one of each for blocks along any axes.
    private func shifted(_ operation: Operation) throws -> Constant {
        let (codes, scale) = (try requiredConstant("data", operation), try requiredConstant("scale", operation))
        let offset = try constant("offset", operation)
        guard scale.shape.count == codes.shape.count, offset.map({ $0.shape == scale.shape }) ?? true,
            zip(codes.shape, scale.shape).allSatisfy({ $1 > 0 && $0 % $1 == 0 })
        else {
            throw malformed(operation, "has scales \(scale.shape) for \(codes.shape)")
        }
        // Every axis of the codes is an axis of blocks, and an axis of the codes in a block, which share a scale.
        var (lengths, strides, stride): ([Int], [Int], Int) = ([], [], scale.count)
        for (length, parts) in zip(codes.shape, scale.shape) {
            stride /= parts
            lengths += [parts, length / parts]
            strides += [stride, 0]
        }
        let (values, factors, zeros) = (codes.floats, scale.floats, offset?.floats)
        var blocks = StridedOffsets(lengths, strides: strides)
        return Constant(
            shape: codes.shape,
            floats: values.map { value in
                let block = blocks.next() ?? 0
                return (value - (zeros?[block] ?? 0)) * factors[block]
            })
    }

    /// Returns the values of a lookup table at packed codes, lowest bit first.
    private func lookedUp(_ operation: Operation) throws -> Constant {
        let table = try requiredConstant("lut", operation).floats
        let bits = (1...8).first { table.count == 1 << $0 }
        let shape = try integers("shape", operation) ?? []
        let codes = try requiredConstant("indices", operation).floats
        guard let bits, shape.allSatisfy({ $0 >= 0 }), let count = elementCount(shape), count <= codes.count * 8,
            codes.count == (count * bits + 7) / 8, codes.allSatisfy({ UInt8(exactly: $0) != nil })
        else {
            throw malformed(
                operation, "has a lookup table of \(table.count) values and codes that do not match \(shape)")
        }
        try ImportError.Problem.checkMemory(forElements: count)
        return Constant(
            shape: shape,
            floats: (0..<count).map { index in
                let (byte, shift) = (index * bits / 8, index * bits % 8)
                let next = codes.indices.contains(byte + 1) ? Int(codes[byte + 1]) : 0
                let code = Int(codes[byte]) | next << 8
                return table[code >> shift & (1 << bits - 1)]
            })
    }
}
