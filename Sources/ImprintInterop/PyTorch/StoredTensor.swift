internal import CImprintKernels
internal import ImprintModel

/// The elements of a tensor in a file: with any strides, as PyTorch stores views of other tensors.
struct StoredTensor {
    let shape: [Int]
    /// The distances between neighbours along each dimension, in elements of the storage; 0 for a dimension of length 1.
    let strides: [Int]
    /// The index of the first element in the storage.
    let offset: Int
    let elementType: Safetensors.ElementType

    /// The maximum number of dimensions.
    static let maximumRank = 8

    /// The number of elements.
    let count: Int

    /// Checks that all elements are within the storage.
    ///
    /// - Parameter storageCount: The number of elements of the storage.
    /// - Throws: `ImportError.Problem` if they are not, or if there are too many dimensions.
    init(
        _ name: String, shape: [Int], strides: [Int], offset: Int, elementType: Safetensors.ElementType,
        storageCount: Int
    ) throws(ImportError.Problem) {
        guard shape.count <= Self.maximumRank else {
            throw .exceedsLimit(
                reason: "the tensor \(name.debugDescription) has \(shape.count) dimensions, "
                    + "expected at most \(Self.maximumRank)")
        }
        let outside = ImportError.Problem.malformed(
            reason: "the tensor \(name.debugDescription) of shape \(shape), strides \(strides) and offset \(offset) "
                + "is not within its storage of \(storageCount) elements")
        guard shape.count == strides.count, offset >= 0, shape.allSatisfy({ $0 >= 0 }), strides.allSatisfy({ $0 >= 0 })
        else { throw outside }
        var last = offset
        var product = 1
        let isEmpty = shape.contains(0)
        for (length, stride) in zip(shape, strides) where !isEmpty {
            let (distance, overflow) = (length - 1).multipliedReportingOverflow(by: stride)
            let (sum, overflow2) = last.addingReportingOverflow(distance)
            let (next, overflow3) = product.multipliedReportingOverflow(by: length)
            guard !overflow, !overflow2, !overflow3 else { throw outside }
            (last, product) = (sum, next)
        }
        guard isEmpty || last < storageCount else { throw outside }
        count = isEmpty ? 0 : product
        // The stride of a dimension of length 1 can be any number.
        self.strides = zip(shape, strides).map { $0 > 1 ? $1 : 0 }
        (self.shape, self.offset, self.elementType) = (shape, offset, elementType)
    }

    /// Returns the strides of a tensor whose elements follow each other in row-major order.
    static func contiguousStrides(_ shape: [Int]) -> [Int] {
        var strides = shape
        var stride = 1
        for index in shape.indices.reversed() {
            strides[index] = stride
            stride = stride.multipliedReportingOverflow(by: max(shape[index], 1)).partialValue
        }
        return strides
    }

    /// Whether the elements follow each other in row-major order.
    private var isContiguous: Bool {
        zip(zip(shape, strides), Self.contiguousStrides(shape)).allSatisfy { $0.0 == 1 || $0.1 == $1 }
    }

    /// Returns the elements in row-major order.
    ///
    /// - Parameter start: The offset of the storage in the file.
    /// - Throws: `ImportError.Problem` if there is not enough memory, or if the elements are complex numbers.
    func floats(in file: MappedFile, storageAt start: Int) throws(ImportError.Problem) -> [Float] {
        guard count > 0 else { return [] }
        let size = elementType.byteCount
        if isContiguous {
            let first = start + offset * size
            switch elementType {
            case .float32: return try file.floats(first..<(first + count * size))
            case .float16: return try file.halves(first..<(first + count * size))
            default: break
            }
        }
        try ImportError.Problem.checkMemory(forElements: count)
        return switch elementType {
        case .float32: gather(UInt32.self, file, start) { Float(bitPattern: $0) }
        case .float16: halves(gather(UInt16.self, file, start) { $0 })
        case .bfloat16: gather(UInt16.self, file, start) { Float(bitPattern: UInt32($0) << 16) }
        case .float64: gather(UInt64.self, file, start) { Float(Double(bitPattern: $0)) }
        case .bool: gather(UInt8.self, file, start) { $0 == 0 ? 0 : 1 }
        case .uint8: gather(UInt8.self, file, start) { Float($0) }
        case .int8: gather(Int8.self, file, start) { Float($0) }
        case .int16: gather(Int16.self, file, start) { Float($0) }
        case .uint16: gather(UInt16.self, file, start) { Float($0) }
        case .int32: gather(Int32.self, file, start) { Float($0) }
        case .uint32: gather(UInt32.self, file, start) { Float($0) }
        case .int64: gather(Int64.self, file, start) { Float($0) }
        case .uint64: gather(UInt64.self, file, start) { Float($0) }
        case .complex64:
            throw .unsuitableModel(
                found: "a model with a tensor of complex numbers",
                advice: "Imprint imports tensors of floating-point numbers and integers")
        }
    }

    /// Returns 16-bit floating-point values as 32-bit values.
    private func halves(_ halves: [UInt16]) -> [Float] {
        [Float](unsafeUninitializedCapacity: halves.count) { values, initialized in
            imprint_float16_to_float32(halves, values.baseAddress, halves.count)
            initialized = halves.count
        }
    }

    /// Returns the converted elements in row-major order.
    private func gather<Number: FixedWidthInteger, Element>(
        _ type: Number.Type, _ file: MappedFile, _ start: Int, _ convert: (Number) -> Element
    ) -> [Element] {
        let size = MemoryLayout<Number>.size
        let bytes = file.bytes(start..<file.count)
        // The innermost dimension has a separate loop.
        let (length, stride) = (shape.last ?? 1, (strides.last ?? 1) * size)
        let outer = shape.dropLast()
        var index = [Int](repeating: 0, count: outer.count)
        var position = offset * size
        return [Element](unsafeUninitializedCapacity: count) { values, initialized in
            while initialized < count {
                for element in 0..<length {
                    let number = bytes.loadUnaligned(fromByteOffset: position + element * stride, as: Number.self)
                    values.initializeElement(at: initialized + element, to: convert(Number(littleEndian: number)))
                }
                initialized += length
                for dimension in outer.indices.reversed() {
                    index[dimension] += 1
                    position += strides[dimension] * size
                    if index[dimension] < shape[dimension] { break }
                    position -= index[dimension] * strides[dimension] * size
                    index[dimension] = 0
                }
            }
        }
    }
}
