internal import Foundation
internal import ImprintCore

extension ONNXModel {
    /// A tensor in an ONNX file or in an external data file, which is decoded on demand.
    struct Tensor {
        private(set) var name = ""
        private(set) var shape: [Int] = []
        /// The element type.
        private(set) var type = 0
        /// The byte range of little-endian elements (raw_data); other tensors use a field for their element type.
        private var raw: Range<Int>?
        private var external: [String: String] = [:]
        private var isExternal = false
        private let message: WireMessage

        init(_ message: WireMessage) throws {
            self.message = message
            try message.forEachField { field in
                switch field.number {
                case 1: try field.append(to: &shape, limit: 16, of: "axes")
                case 2: type = try field.integer()
                case 8: name = try field.string()
                case 9: raw = try field.bytes()
                case 13:
                    external.merge(try [field.message().stringPair()]) { $1 }
                    if external.count > 16 { throw WireError.tooMany(item: "properties of a tensor", limit: 16) }
                case 14: isExternal = try field.integer() == 1
                default: break
                }
            }
        }

        /// An upper bound for integers in shapes and indices, which take one byte of the file and eight bytes of memory each.
        private static let maximumIntegerCount = 1 << 16

        /// Whether an element type is a floating-point type; nil if it is not supported.
        private static let isFloat = [
            1: true, 2: false, 3: false, 4: false, 5: false, 6: false, 7: false, 9: false, 10: true, 11: true,
            12: false, 13: false, 16: true,
        ]

        /// The path of the external data file.
        var location: String? { isExternal ? external["location"] ?? "" : nil }

        /// Returns an upper bound for the number of elements, which follows from the size of the data.
        func elementLimit() throws -> Int {
            guard let count = elementCount(shape) else { throw problem("the shape \(shape)") }
            return min(count, isExternal ? try externalFile().1.count : message.range.count)
        }

        /// Returns the decoded tensor.
        ///
        /// - Parameter isWeight: Whether integers are weights. They become floating-point numbers, and their number is not limited.
        /// - Throws: `ImportError.Problem` if the data does not match the shape, or if the element type is not supported.
        func constant(isWeight: Bool = false) throws -> Constant {
            guard let count = elementCount(shape), count < 1 << 40 else { throw problem("the shape \(shape)") }
            guard let isFloat = Self.isFloat[type] else { throw unsupported("the element type \(type)") }
            guard isFloat || isWeight || count <= Self.maximumIntegerCount else {
                throw unsupported("\(count) integers, expected floating-point weights")
            }
            if isExternal { return try decoded(in: externalFile(), count: count, isWeight) }
            if let raw { return try decoded(in: (message.file, raw), count: count, isWeight) }
            let constant = try stored(count: count)
            guard constant.count == count else { throw problem("\(constant.count) elements for the shape \(shape)") }
            return constant
        }

        /// Returns the elements in the field for their type.
        private func stored(count: Int) throws -> Constant {
            let expected = "elements for the shape \(shape)"
            var (floats, integers): ([Float], [Int]) = ([], [])
            // Each element takes at least one byte of the file.
            guard count <= message.range.count else { throw problem("fewer than \(count) elements") }
            try message.forEachField { field in
                switch (field.number, type) {
                case (4, 1): try field.append(to: &floats)
                case (10, 11): try field.append(doublesTo: &floats)
                // The field contains the bit patterns of 16-bit floating-point values.
                case (5, 10):
                    try field.append(to: &floats, limit: count, of: expected) {
                        Float(Float16(bitPattern: UInt16(truncatingIfNeeded: $0)))
                    }
                case (5, 16):
                    try field.append(to: &floats, limit: count, of: expected) {
                        Float(bitPattern: UInt32(truncatingIfNeeded: $0) << 16)
                    }
                case (5, 2), (5, 3), (5, 4), (5, 5), (5, 6), (5, 9), (7, 7), (11, 12), (11, 13):
                    try field.append(to: &integers, limit: count, of: expected)
                default: break
                }
            }
            return [1, 10, 11, 16].contains(type)
                ? Constant(shape: shape, floats: floats) : Constant(shape: shape, integers: integers)
        }

        private func decoded(
            in part: (file: MappedFile, range: Range<Int>), count: Int, _ isWeight: Bool
        ) throws -> Constant {
            let (file, range) = part
            let sizes = [1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2]
            guard let size = sizes[type] else { throw problem("the element type \(type)") }
            guard range.count == count * size else {
                throw problem("\(counted(range.count, "byte")) for the shape \(shape), expected \(count * size)")
            }
            func integers<Number: FixedWidthInteger>(_ type: Number.Type) -> Constant {
                let offsets = stride(from: range.lowerBound, to: range.upperBound, by: size)
                guard !isWeight else {
                    return Constant(shape: shape, floats: offsets.map { Float(file.load(type, at: $0)) })
                }
                return Constant(
                    shape: shape, integers: offsets.map { Int(truncatingIfNeeded: file.load(type, at: $0)) })
            }
            // `MappedFile` checks the memory for 32-bit and 16-bit floating-point values.
            if type != 1 && type != 10 { try ImportError.Problem.checkMemory(forElements: count) }
            switch type {
            case 1: return Constant(shape: shape, floats: try file.floats(range))
            case 2, 9: return integers(UInt8.self)
            case 3: return integers(Int8.self)
            case 4: return integers(UInt16.self)
            case 5: return integers(Int16.self)
            case 6: return integers(Int32.self)
            case 10: return Constant(shape: shape, floats: try file.halves(range))
            case 11:
                return Constant(
                    shape: shape,
                    floats: stride(from: range.lowerBound, to: range.upperBound, by: 8).map {
                        Float(Double(bitPattern: file.load(UInt64.self, at: $0)))
                    })
            case 12: return integers(UInt32.self)
            case 16:
                return Constant(
                    shape: shape,
                    floats: stride(from: range.lowerBound, to: range.upperBound, by: 2).map {
                        Float(bitPattern: UInt32(file.load(UInt16.self, at: $0)) << 16)
                    })
            default: return integers(Int64.self)
            }
        }

        /// Returns the byte range in the external data file, which must be in the model's folder.
        func externalFile() throws -> (MappedFile, Range<Int>) {
            guard let location = external["location"], !location.isEmpty else {
                throw problem("no path of its external data")
            }
            let folder = URL(filePath: message.file.path).deletingLastPathComponent().resolvingSymlinksInPath()
                .standardizedFileURL
            guard let url = referencedFile(location, from: folder, within: folder) else {
                throw problem("external data in \(location.debugDescription), expected a file in the model's folder")
            }
            let other = try MappedFile(contentsOf: url)
            let offset = external["offset"].map { Int($0) } ?? 0
            guard let offset, offset >= 0, offset <= other.count else {
                throw problem("an offset beyond the end of \(location)")
            }
            let length = external["length"].map { Int($0) } ?? other.count - offset
            guard let length, length >= 0, length <= other.count - offset else {
                throw problem("more elements than \(location)")
            }
            return (other, offset..<(offset + length))
        }

        /// Returns an error for a valid tensor that Imprint does not support.
        private func unsupported(_ reason: String) -> ImportError.Problem {
            .unsupported([
                .init(operation: "tensor", node: name, reason: "the tensor \(name.debugDescription) has \(reason)")
            ])
        }

        private func problem(_ reason: String) -> ImportError.Problem {
            .malformed(reason: "the tensor \(name.debugDescription) has \(reason)")
        }
    }
}
