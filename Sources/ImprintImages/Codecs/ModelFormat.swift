/// A file format of models, detected from the content of a file.
package enum ModelFormat: CaseIterable, Sendable {
    case onnx
    case coreML
    case caffe
    /// HDF5, in which Keras and Caffe store models.
    case hdf5
    case tensorFlowLite
    /// A PyTorch checkpoint of version 1.6 and later, a ZIP archive.
    case pyTorch
    /// A PyTorch checkpoint of a version before 1.6.
    case legacyPyTorch
    /// The format of model files and personalizations, and of checkpoints of other programs.
    case safetensors
    case gguf

    /// The name with an article, for messages.
    package var name: String {
        switch self {
        case .onnx: "an ONNX model"
        case .coreML: "a Core ML model"
        case .caffe: "a Caffe model"
        case .hdf5: "an HDF5 file (Keras or Caffe)"
        case .tensorFlowLite: "a TensorFlow Lite model"
        case .pyTorch, .legacyPyTorch: "a PyTorch checkpoint"
        case .safetensors: "a model file (safetensors)"
        case .gguf: "a GGUF model"
        }
    }

    /// Whether Imprint can import models of this format.
    package var isImportable: Bool { self != .hdf5 && self != .gguf }

    /// The usual extensions of file names, in lower case.
    package var fileExtensions: [String] {
        switch self {
        case .onnx: ["onnx"]
        case .coreML: ["mlmodel", "mlpackage"]
        case .caffe: ["caffemodel"]
        case .hdf5: ["h5", "hdf5"]
        case .tensorFlowLite: ["tflite"]
        case .pyTorch, .legacyPyTorch: ["pt", "pth"]
        case .safetensors: ["imprint", "safetensors"]
        case .gguf: ["gguf"]
        }
    }

    /// Detects a format from the start of a file that is not text; nil for other formats and for formats without a signature.
    init?(_ head: ArraySlice<UInt8>) {
        if head.starts(with: [0x89] + Array("HDF\r\n".utf8) + [0x1A, 0x0A]) {
            self = .hdf5
        } else if head.dropFirst(4).starts(with: [0, 0, 0, 0] + Array("{".utf8)) {
            // The length of the header, in 8 bytes, and its first character.
            self = .safetensors
        } else if head.dropFirst(4).starts(with: "TFL3".utf8) {
            self = .tensorFlowLite
        } else if head.starts(with: "GGUF".utf8) {
            self = .gguf
        } else if Self.isArchiveOfPyTorch(head) {
            self = .pyTorch
        } else if Self.isLegacyPyTorch(head) {
            self = .legacyPyTorch
        } else {
            return nil
        }
    }

    /// Detects a format that is a protocol buffer, which has no signature, from the numbers of its first fields.
    /// - Parameters:
    ///   - length: The length of the file, in bytes.
    ///   - bytes: Returns the bytes from an offset, at most a given count.
    init?(protobuf length: Int, _ bytes: (_ offset: Int, _ count: Int) -> [UInt8]) {
        /// The number of fields that decide; a Caffe model has one for each layer.
        let fieldLimit = 4096
        var fields: [Int: Bool] = [:]
        var (offset, count) = (0, 0)
        while offset < length, count < fieldLimit {
            guard let field = ProtobufField(bytes(offset, ProtobufField.prefixLength)), field.length <= length - offset
            else { return nil }
            fields[field.number] = field.isPacked
            offset += field.length
            count += 1
        }
        // The first field is a version or a name. ONNX has a graph and opsets, Core ML a model type, Caffe layers.
        if fields[7] == true, fields[8] == true || fields[1] == false {
            self = .onnx
        } else if fields[1] == false, fields[2] == true, fields.keys.contains(where: { $0 >= 200 }) {
            self = .coreML
        } else if fields[1] ?? true, fields[100] == true || fields[2] == true {
            self = .caffe
        } else {
            return nil
        }
    }

    /// Whether a file starts like the ZIP archive of `torch.save`, whose first entry is a pickle.
    private static func isArchiveOfPyTorch(_ head: ArraySlice<UInt8>) -> Bool {
        let header = Array(head.prefix(30))
        guard header.count == 30, header.starts(with: "PK\u{3}\u{4}".utf8) else { return false }
        let name = head.dropFirst(30).prefix(Int(header[26]) | Int(header[27]) << 8)
        return String(decoding: name, as: UTF8.self).hasSuffix(".pkl")
    }

    /// Whether a file starts like a checkpoint of PyTorch before version 1.6: with a pickle of a constant.
    private static func isLegacyPyTorch(_ head: ArraySlice<UInt8>) -> Bool {
        let constant: [UInt8] = [0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46, 0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19]
        guard head.first == 0x80 else { return false }
        return head.dropFirst(2).starts(with: constant) || head.dropFirst(11).starts(with: constant)
    }
}

/// A field of a protocol buffer (https://protobuf.dev/programming-guides/encoding/).
private struct ProtobufField {
    /// The maximum number of bytes before the content of a field.
    static let prefixLength = 20

    let number: Int
    /// Whether the field states its length.
    let isPacked: Bool
    /// The number of bytes of the field, with its number and its content.
    let length: Int

    /// Creates a field from its first bytes; nil if they are invalid.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        guard let tag = Self.varint(&rest), (1..<(1 << 29)).contains(tag >> 3) else { return nil }
        let contentLength: Int
        switch tag & 7 {
        case 0:
            guard Self.varint(&rest) != nil else { return nil }
            contentLength = 0
        case 1: contentLength = 8
        case 2:
            guard let value = Self.varint(&rest), let length = Int(exactly: value), length < 1 << 48 else { return nil }
            contentLength = length
        case 5: contentLength = 4
        default: return nil
        }
        number = Int(tag >> 3)
        isPacked = tag & 7 == 2
        length = bytes.count - rest.count + contentLength
    }

    private static func varint(_ bytes: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: 0, to: 64, by: 7) {
            guard let byte = bytes.popFirst() else { return nil }
            value |= UInt64(byte & 0x7F) << UInt64(shift)
            if byte < 0x80 { return value }
        }
        return nil
    }
}
