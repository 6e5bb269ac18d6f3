public import ImprintCore

#if _endian(big)
    #error("safetensors data is little-endian and is copied as it is; a big-endian machine needs byte swaps here")
#endif

/// The safetensors file layout: a length, a JSON header that describes named tensors, and their bytes back to back.
///
/// | bytes | content |
/// |---|---|
/// | 8 | *n*, the length of the header: unsigned, little-endian, at most 100,000,000 |
/// | *n* | the header: a JSON object in UTF-8, padded with spaces |
/// | rest | the data: every tensor's elements, row-major, little-endian, no gap between tensors, nothing after |
///
/// Source: the rules of the reference reader (`read_metadata` and `validate` in safetensors' `tensor.rs`).
public enum Safetensors {
    /// The longest header that a reader accepts, in bytes.
    public static let greatestHeaderLength = 100_000_000

    /// The type of a tensor's elements, by the name that the header gives it.
    public enum ElementType: String, Sendable, CaseIterable {
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
        /// The upper half of a binary32.
        case bfloat16 = "BF16"
        /// Signed 32 bits.
        case int32 = "I32"
        /// Unsigned 32 bits.
        case uint32 = "U32"
        /// IEEE 754 binary32.
        case float32 = "F32"
        /// Two binary32: real and imaginary part.
        case complex64 = "C64"
        /// IEEE 754 binary64.
        case float64 = "F64"
        /// Signed 64 bits.
        case int64 = "I64"
        /// Unsigned 64 bits.
        case uint64 = "U64"

        /// The bytes that one element takes.
        public var byteCount: Int {
            switch self {
            case .bool, .uint8, .int8: 1
            case .int16, .uint16, .float16, .bfloat16: 2
            case .int32, .uint32, .float32: 4
            case .complex64, .float64, .int64, .uint64: 8
            }
        }
    }

    /// How a writer stores float32 numbers.
    public enum Precision: String, Sendable, Codable, CaseIterable {
        /// As they are, 4 bytes each.
        case float32
        /// Rounded to the nearest float16, 2 bytes each.
        case float16

        package var elementType: ElementType { self == .float32 ? .float32 : .float16 }
    }

    /// What the header says of one tensor.
    public struct TensorDescription: Sendable, Equatable {
        /// The name, unique in its file.
        public let name: String
        /// The type of the elements.
        public let elementType: ElementType
        /// The sizes, outermost first; empty for a scalar.
        public let shape: [Int]
        /// Where the tensor's bytes are, counted from the start of the data.
        public let byteRange: Range<Int>

        /// The number of elements.
        public var count: Int { byteRange.count / elementType.byteCount }
    }

    /// A tensor to be written.
    public struct Tensor: Sendable, Equatable {
        /// The name, unique in its file.
        public let name: String
        /// The sizes, outermost first; empty for a scalar.
        public let shape: [Int]
        /// The elements, row-major; the product of `shape` of them.
        public let values: [Float]
        /// How they are stored; as the file's other tensors if nil.
        public let precision: Precision?
        /// Whether the values are whole numbers that are stored as signed 8 bits.
        let isInt8: Bool

        /// Makes a tensor of the given shape and values.
        public init(name: String, shape: [Int], values: [Float], precision: Precision? = nil) {
            precondition(
                shape.allSatisfy { $0 >= 0 } && shape.reduce(1, *) == values.count,
                "the tensor \(name) of shape \(shape) cannot hold \(values.count) values")
            self.name = name
            self.shape = shape
            self.values = values
            self.precision = precision
            isInt8 = false
        }

        /// Makes a tensor of signed 8 bits an element.
        init(name: String, shape: [Int], int8 values: [Int8]) {
            precondition(
                shape.reduce(1, *) == values.count,
                "the tensor \(name) of shape \(shape) cannot hold \(values.count) values")
            self.name = name
            self.shape = shape
            self.values = values.map(Float.init)
            precision = nil
            isInt8 = true
        }

        /// The type of the elements in a file that stores float32 numbers in the given way.
        func elementType(in precision: Precision) -> ElementType {
            isInt8 ? .int8 : (self.precision ?? precision).elementType
        }
    }
}

/// Why a file cannot be read or written as safetensors.
public struct SafetensorsError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// What is wrong with it.
    public let problem: Problem

    /// Says that `problem` was met in the file at `path`.
    public init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// What can be wrong with a safetensors file, or with what should become one.
    public enum Problem: Error, Equatable, Sendable {
        /// The file is shorter than the 8 bytes that give the header's length.
        case noHeaderLength(fileLength: Int)
        /// The header's length is over `Safetensors.greatestHeaderLength`.
        case headerTooLong(UInt64)
        /// The header would end behind the file.
        case headerBeyondEnd(headerLength: Int, fileLength: Int)
        /// The header is not the JSON it must be, from `offset` (in bytes from its start) on.
        case malformedHeader(offset: Int, expected: String)
        /// An object in the header holds a key twice.
        case duplicateKey(String)
        /// A tensor's description lacks a field.
        case missingField(tensor: String, field: String)
        /// A tensor's element type is none of `Safetensors.ElementType`.
        case unknownElementType(tensor: String, found: String)
        /// The byte count that follows from a tensor's shape does not fit into an integer.
        case shapeOverflows(tensor: String, shape: [Int])
        /// A tensor's byte range does not fit its shape.
        case wrongByteCount(tensor: String, found: Int, expected: Int)
        /// A tensor's bytes do not begin where the ones before end.
        case misplaced(tensor: String, begin: Int, expected: Int)
        /// The tensors take more or fewer bytes than the file holds.
        case wrongDataLength(found: Int, expected: Int)
        /// A tensor's elements were asked for as floating-point numbers and are not float32 or float16.
        case notFloatingPoint(tensor: String, found: Safetensors.ElementType)
        /// A tensor to be written holds a number that float16 cannot.
        case exceedsFloat16(tensor: String, value: Float)
        /// Reading the file takes more memory than is available.
        case outOfMemory(byteCount: Int)
    }

    /// The file, what was found, what was expected and what to do.
    public var description: String {
        let limit = Safetensors.greatestHeaderLength
        let text =
            switch problem {
            case .noHeaderLength(let length):
                "is not a weights file: it has \(length) bytes, and the header's length alone takes 8"
            case .headerTooLong(let length):
                "is not a weights file: it does not begin with the length of a header, at most \(limit) (found \(length))"
            case .headerBeyondEnd(let headerLength, let fileLength):
                "is not a weights file or was cut off: a header of \(headerLength) bytes does not fit into \(fileLength)"
            case .malformedHeader(let offset, let expected):
                "is not a weights file or is damaged: expected \(expected) at byte \(offset) of the header"
            case .duplicateKey(let key):
                "is damaged: its header holds the key \(key.debugDescription) twice"
            case .missingField(let tensor, let field):
                "is damaged: the tensor \(tensor) has no \(field)"
            case .unknownElementType(let tensor, let found):
                "the tensor \(tensor) has elements of type \(found.debugDescription), which Imprint does not know"
            case .shapeOverflows(let tensor, let shape):
                "is damaged: the tensor \(tensor) of shape \(shape) is larger than any file"
            case .wrongByteCount(let tensor, let found, let expected):
                "is damaged: the tensor \(tensor) has \(found) bytes, its shape needs \(expected)"
            case .misplaced(let tensor, let begin, let expected):
                "is damaged: the bytes of the tensor \(tensor) begin at \(begin), expected \(expected)"
            case .wrongDataLength(let found, let expected):
                "\(found < expected ? "was cut off" : "is damaged"): it holds \(found) bytes of tensors, its header announces \(expected)"
            case .notFloatingPoint(let tensor, let found):
                "the tensor \(tensor) has elements of type \(found.rawValue), expected F32 or F16"
            case .exceedsFloat16(let tensor, let value):
                "cannot be written as float16: the tensor \(tensor) holds \(value), beyond ±65504"
            case .outOfMemory(let byteCount):
                "there is not enough memory to read it: \(SystemMemory.text(byteCount)) are needed at once"
            }
        return "\(path): \(text); \(remedy)"
    }

    private var remedy: String {
        switch problem {
        case .exceedsFloat16: "write float32"
        case .outOfMemory: "close other programs, or raise the limit of memory"
        case .unknownElementType, .notFloatingPoint: "convert the tensor to float32 with the program that wrote it"
        default: "check the name, or get the file again from where it came"
        }
    }
}
