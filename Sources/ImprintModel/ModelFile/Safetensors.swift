public import ImprintCore
package import ImprintImages

#if _endian(big)
    #error("safetensors data is little-endian and is copied unchanged; a big-endian machine needs byte swaps here")
#endif

/// The safetensors file layout: a length, a JSON header that describes named tensors, and their bytes back to back.
///
/// | bytes | content |
/// |---|---|
/// | 8 | *n*, the length of the header: unsigned, little-endian, at most 100,000,000 |
/// | *n* | the header: a JSON object in UTF-8, padded with spaces |
/// | rest | the data: every tensor's elements, row-major, little-endian, without gaps between tensors or bytes after them |
///
/// Source: the rules of the reference reader (`read_metadata` and `validate` in safetensors' `tensor.rs`).
public enum Safetensors {
    /// The maximum length of a header in bytes.
    package static let maximumHeaderLength = 100_000_000

    /// The type of a tensor's elements; raw values are the names in the header.
    package enum ElementType: String, Sendable, CaseIterable {
        /// One byte, 0 or 1.
        case bool = "BOOL"
        /// Unsigned 8 bits.
        case uint8 = "U8"
        /// Signed 8 bits.
        case int8 = "I8"
        /// Signed 16 bits.
        case int16 = "I16"
        /// Unsigned 16 bits.
        case uint16 = "U16"
        /// IEEE 754 binary16.
        case float16 = "F16"
        /// The upper 16 bits of IEEE 754 binary32.
        case bfloat16 = "BF16"
        /// Signed 32 bits.
        case int32 = "I32"
        /// Unsigned 32 bits.
        case uint32 = "U32"
        /// IEEE 754 binary32.
        case float32 = "F32"
        /// Two IEEE 754 binary32: real and imaginary part.
        case complex64 = "C64"
        /// IEEE 754 binary64.
        case float64 = "F64"
        /// Signed 64 bits.
        case int64 = "I64"
        /// Unsigned 64 bits.
        case uint64 = "U64"

        /// The size of an element in bytes.
        package var byteCount: Int {
            switch self {
            case .bool, .uint8, .int8: 1
            case .int16, .uint16, .float16, .bfloat16: 2
            case .int32, .uint32, .float32: 4
            case .complex64, .float64, .int64, .uint64: 8
            }
        }
    }

    /// The precision in which a writer stores float32 values.
    public enum Precision: String, Sendable, Codable, CaseIterable {
        /// 32-bit floating point, 4 bytes per value.
        case float32
        /// 16-bit floating point, rounded to nearest, 2 bytes per value.
        case float16

        package var elementType: ElementType { self == .float32 ? .float32 : .float16 }
    }

    /// The description of a tensor in the header.
    package struct TensorDescription: Sendable, Equatable {
        /// The name, unique in its file.
        package let name: String
        /// The type of the elements.
        package let elementType: ElementType
        /// The sizes, outermost first; empty for a scalar.
        package let shape: [Int]
        /// The range of the tensor's bytes, from the start of the data.
        package let byteRange: Range<Int>

        /// The number of elements.
        package var count: Int { byteRange.count / elementType.byteCount }
    }

    /// A tensor to write.
    package struct Tensor: Sendable, Equatable {
        /// The name, unique in its file.
        package let name: String
        /// The sizes, outermost first; empty for a scalar.
        package let shape: [Int]
        /// The elements in row-major order; their number is the product of `shape`.
        package let values: [Float]
        /// The precision in which they are stored; nil for the precision of the file.
        package let precision: Precision?

        /// Creates a tensor.
        package init(name: String, shape: [Int], values: [Float], precision: Precision? = nil) {
            precondition(
                shape.allSatisfy { $0 >= 0 } && shape.reduce(1, *) == values.count,
                "the tensor \(name) of shape \(shape) cannot hold \(values.count) values")
            self.name = name
            self.shape = shape
            self.values = values
            self.precision = precision
        }
    }
}

/// An error in reading or writing a safetensors file.
public struct SafetensorsError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// The problem of the file.
    package let problem: Problem

    /// Creates the error of a problem in the file at `path`.
    package init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// The problem of a file.
    package enum Problem: Error, Equatable, Sendable {
        /// The file is shorter than the 8 bytes of the header length.
        case noHeaderLength(fileLength: Int)
        /// The file is of another kind.
        case otherKind(FileKind)
        /// The header length exceeds `Safetensors.maximumHeaderLength`.
        case headerTooLong(UInt64)
        /// The header is longer than the rest of the file.
        case headerBeyondEnd(headerLength: Int, fileLength: Int)
        /// The header is not the expected JSON at `offset`, in bytes from its start.
        case malformedHeader(offset: Int, expected: String)
        /// An object in the header contains a key twice.
        case duplicateKey(String)
        /// The description of a tensor lacks a field.
        case missingField(tensor: String, field: String)
        /// The element type of a tensor is unknown.
        case unknownElementType(tensor: String, found: String)
        /// The size of a tensor in bytes overflows.
        case shapeOverflows(tensor: String, shape: [Int])
        /// The byte range of a tensor does not match its shape.
        case wrongByteCount(tensor: String, found: Int, expected: Int)
        /// The bytes of a tensor do not begin at the end of the preceding tensor.
        case misplaced(tensor: String, begin: Int, expected: Int)
        /// The tensors need more or fewer bytes than the file has.
        case wrongDataLength(found: Int, expected: Int)
        /// The elements of a tensor are not float32 or float16, and cannot be read as float32.
        case notFloatingPoint(tensor: String, found: Safetensors.ElementType)
        /// A tensor to write contains a finite value beyond the range of float16.
        case exceedsFloat16(tensor: String, value: Float)
        /// The header of a file to write would be longer than readers accept, because of many or long names.
        case headerExceedsLimit(byteCount: Int, limit: Int)
        /// Reading the file needs more memory than is available.
        case outOfMemory(byteCount: Int)
    }

    /// The file, the problem, the expected content and the fix.
    public var description: String {
        let expected = expectation.map { " Expected \($0)." } ?? ""
        return "\(finding)\(expected) \(remedy)."
    }

    /// The file and the problem, as a sentence.
    package var finding: String {
        let limit = Safetensors.maximumHeaderLength
        let text =
            switch problem {
            case .noHeaderLength(fileLength: 0):
                "the file is empty"
            case .noHeaderLength(let length):
                "the file is neither an Imprint model nor another safetensors file: it has \(counted(length, "byte")), expected at least the "
                    + "8 bytes of the header length"
            case .otherKind(let kind):
                "the file is neither an Imprint model nor another safetensors file: it seems to be \(kind.name)"
            case .headerTooLong:
                "the file is not a safetensors file or is damaged: its first 8 bytes are not the length of a header of at most \(limit) bytes"
            case .headerBeyondEnd(let headerLength, let fileLength):
                "the file is not a safetensors file or was cut off: a header of \(counted(headerLength, "byte")) does not fit into "
                    + counted(fileLength, "byte")
            case .malformedHeader(let offset, let expected):
                "the file is not a safetensors file or is damaged: expected \(expected) at byte \(offset) of the header"
            case .duplicateKey(let key):
                "the file is damaged: its header contains the key \(key.debugDescription) twice"
            case .missingField(let tensor, let field):
                "the file is damaged: the tensor \(tensor) has no \(field)"
            case .unknownElementType(let tensor, let found):
                "the tensor \(tensor) has elements of type \(found.debugDescription), which Imprint does not support"
            case .shapeOverflows(let tensor, let shape):
                "the file is damaged: the tensor \(tensor) of shape \(shape) is larger than any file"
            case .wrongByteCount(let tensor, let found, let expected):
                "the file is damaged: the tensor \(tensor) has \(counted(found, "byte")), expected \(expected) from its shape"
            case .misplaced(let tensor, let begin, let expected):
                "the file is damaged: the bytes of the tensor \(tensor) begin at \(begin), expected \(expected)"
            case .wrongDataLength(let found, let expected):
                "the file \(found < expected ? "was cut off" : "is damaged"): it has \(counted(found, "byte")) of tensors, expected \(expected) "
                    + "from its header"
            case .notFloatingPoint(let tensor, let found):
                "the tensor \(tensor) has elements of type \(found.rawValue), expected F32 or F16"
            case .exceedsFloat16(let tensor, let value):
                "the file cannot be written as float16: the tensor \(tensor) contains \(value), expected at most ±65504"
            case .headerExceedsLimit(let byteCount, let limit):
                "the file cannot be written: its header would have \(byteCount) bytes, expected at most \(limit)"
            case .outOfMemory(let byteCount):
                "there is not enough memory to read the file: it needs \(SystemMemory.text(byteCount))"
            }
        return "\(path): \(text)."
    }

    /// The expected content, if `finding` does not have it.
    private var expectation: String? {
        switch problem {
        case .noHeaderLength(fileLength: 0), .headerTooLong, .otherKind: "a model or a personalization"
        default: nil
        }
    }

    private var remedy: String {
        switch problem {
        case .exceedsFloat16: "Write float32"
        case .headerExceedsLimit: "Use fewer or shorter names of labels and photos"
        case .outOfMemory: "Close other programs, or raise the memory limit"
        case .unknownElementType, .notFloatingPoint: "Convert the tensor to float32 with the program that wrote it"
        // A web page or a text may be the answer of a server to a failed download.
        case .otherKind(.webPage), .otherKind(.text): "Check the name, or get the file again from its source"
        case .otherKind: "Check the name"
        default: "Check the name, or get the file again from its source"
        }
    }
}
