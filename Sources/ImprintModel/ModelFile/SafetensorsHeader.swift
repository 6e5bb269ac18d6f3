internal import ImprintCore

extension Safetensors {
    /// The header of a safetensors file: its metadata and its tensors' descriptions.
    package struct Header: Sendable, Equatable {
        /// The metadata of the file (`__metadata__`).
        package let metadata: [String: String]
        /// The tensors, in the order of their bytes.
        package let tensors: [TensorDescription]
    }
}

private let metadataKey = "__metadata__"

// MARK: Reading

extension Safetensors.Header {
    typealias Problem = SafetensorsError.Problem

    /// Parses the JSON in `bytes`, which precedes `dataLength` bytes of tensors, and checks every rule of the format.
    package init(_ bytes: [UInt8], dataLength: Int) throws(SafetensorsError.Problem) {
        var metadata: [String: String] = [:]
        var fields: [TensorFields] = []
        var scanner = StrictJSONScanner(bytes)
        try scanner.object { (scanner, key) throws(Problem) in
            if key == metadataKey {
                try scanner.object { (scanner, key) throws(Problem) in metadata[key] = try scanner.string() }
            } else {
                fields.append(try TensorFields(of: key, from: &scanner))
            }
        }
        try scanner.end()
        // Sizes are checked after the keys, so that a repeated key is reported even if one of its tensors is invalid.
        var tensors: [Safetensors.TensorDescription] = []
        for fields in fields { tensors.append(try fields.description) }
        tensors.sort {
            ($0.byteRange.lowerBound, $0.byteRange.upperBound) < ($1.byteRange.lowerBound, $1.byteRange.upperBound)
        }
        var end = 0
        for tensor in tensors {
            guard tensor.byteRange.lowerBound == end else {
                throw .misplaced(tensor: tensor.name, begin: tensor.byteRange.lowerBound, expected: end)
            }
            end = tensor.byteRange.upperBound
        }
        guard end == dataLength else { throw .wrongDataLength(found: dataLength, expected: end) }
        self.init(metadata: metadata, tensors: tensors)
    }
}

extension Safetensors.Header {
    /// Parses the metadata in `bytes`, a header that may be cut off, if it precedes all tensors.
    /// - Parameter entry: Receives each key and its value.
    /// - Throws: The problem at the first byte that is not as expected, also after the metadata.
    static func readLeadingMetadata(
        _ bytes: [UInt8], entry: (_ key: String, _ value: String) -> Void
    ) throws(Problem) {
        var scanner = StrictJSONScanner(bytes)
        try scanner.object { (scanner, key) throws(Problem) in
            guard key == metadataKey else { throw scanner.malformed(metadataKey) }
            try scanner.object { (scanner, key) throws(Problem) in entry(key, try scanner.string()) }
        }
    }
}

/// The fields of a tensor in the header, before their values are checked.
private struct TensorFields {
    typealias Problem = SafetensorsError.Problem

    private let name: String
    private let elementName: String
    private let shape: [Int]
    private let offsets: [Int]
    /// The problem if the offsets are not a range.
    private let notARange: Problem

    /// Reads an object with the fields of a tensor.
    init(of name: String, from scanner: inout StrictJSONScanner) throws(Problem) {
        var elementName: String?
        var shape: [Int]?
        var offsets: [Int]?
        try scanner.object { (scanner, key) throws(Problem) in
            switch key {
            case "dtype": elementName = try scanner.string()
            case "shape": shape = try scanner.counts()
            case "data_offsets": offsets = try scanner.counts()
            default: throw scanner.malformed("dtype, shape or data_offsets, not \(key.debugDescription),")
            }
        }
        guard let elementName else { throw .missingField(tensor: name, field: "dtype") }
        guard let shape else { throw .missingField(tensor: name, field: "shape") }
        guard let offsets else { throw .missingField(tensor: name, field: "data_offsets") }
        (self.name, self.elementName, self.shape, self.offsets) = (name, elementName, shape, offsets)
        notARange = scanner.malformed("data_offsets [begin, end] with begin ≤ end, not \(offsets),")
    }

    /// The description of the tensor; its type, shape and range fit together.
    var description: Safetensors.TensorDescription {
        get throws(Problem) {
            guard let elementType = Safetensors.ElementType(rawValue: elementName) else {
                throw .unknownElementType(tensor: name, found: elementName)
            }
            guard offsets.count == 2, offsets[0] <= offsets[1] else { throw notARange }
            guard let byteCount = byteCount(elementType) else { throw .shapeOverflows(tensor: name, shape: shape) }
            let byteRange = offsets[0]..<offsets[1]
            guard byteRange.count == byteCount else {
                throw .wrongByteCount(tensor: name, found: byteRange.count, expected: byteCount)
            }
            return Safetensors.TensorDescription(
                name: name, elementType: elementType, shape: shape, byteRange: byteRange)
        }
    }

    /// Returns the size of the tensor in bytes; nil if it, or the product of the first sizes of the shape, overflows.
    private func byteCount(_ elementType: Safetensors.ElementType) -> Int? {
        var count = 1
        for factor in shape + [elementType.byteCount] {
            let (product, overflow) = count.multipliedReportingOverflow(by: factor)
            if overflow { return nil }
            count = product
        }
        return count
    }
}

// MARK: Writing

extension Safetensors.Header {
    /// The JSON of this header, padded with spaces so that the data begins at a multiple of 64 bytes.
    ///
    /// Equal headers give equal bytes.
    var encoded: [UInt8] {
        var members: [String] = []
        if !metadata.isEmpty {
            let entries = metadata.sorted { precedes($0.key, $1.key) }.map { "\(quoted($0.key)):\(quoted($0.value))" }
            members.append("\(quoted(metadataKey)):{\(entries.joined(separator: ","))}")
        }
        for tensor in tensors {
            let shape = tensor.shape.map(String.init).joined(separator: ",")
            members.append(
                "\(quoted(tensor.name)):{\"dtype\":\"\(tensor.elementType.rawValue)\",\"shape\":[\(shape)],"
                    + "\"data_offsets\":[\(tensor.byteRange.lowerBound),\(tensor.byteRange.upperBound)]}")
        }
        var bytes = Array("{\(members.joined(separator: ","))}".utf8)
        bytes += [UInt8](repeating: 0x20, count: -(8 + bytes.count) & 63)
        return bytes
    }
}

private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": result += "\\\""
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case "\u{0}"..<" ":
            let digits = String(scalar.value, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}
