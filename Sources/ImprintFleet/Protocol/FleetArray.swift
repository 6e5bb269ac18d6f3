internal import Foundation
internal import ImprintCore

/// An array of 32-bit floating-point values: the data of a `.npy` file, in chunks (flwr/app/message/array.py).
struct FleetArray: Equatable, Sendable {
    /// The maximum size of a chunk.
    static let chunkSize = 5 << 20

    let shape: [Int]
    let values: [Float]

    init(shape: [Int], values: [Float]) {
        precondition(shape.reduce(1, *) == values.count, "\(values.count) values do not have the shape \(shape)")
        self.shape = shape
        self.values = values
    }

    /// The body of an object of the type `Array`.
    private struct Metadata: Codable {
        let dtype: String
        let shape: [Int]
        let stype: String
        let chunkIndices: [Int]

        private enum CodingKeys: String, CodingKey {
            case dtype, shape, stype
            case chunkIndices = "arraychunk_ids"
        }
    }

    /// - Parameter budget: The number of values that may still be read.
    init(_ id: String, in store: ObjectStore, budget: inout Int) throws {
        let object = try store.object(id, type: "Array")
        guard object.body.count <= 1 << 20,
            let metadata = try? JSONDecoder().decode(Metadata.self, from: Data(object.body))
        else { throw FleetError.malformed(reason: "the description of an array is not JSON") }
        guard metadata.stype == "numpy.ndarray" else {
            throw FleetError.malformed(reason: "an array is stored as \(shown(metadata.stype)), expected numpy.ndarray")
        }
        // The header of the file has at most a few hundred bytes; 8 bytes per value allow float64.
        let limit = 8 * max(budget, 0) + (64 << 10)
        // Each chunk is parsed once: Flower lists equal chunks once, for example of zeros, and repeats their index.
        guard Set(object.childIDs).count == object.childIDs.count else {
            throw FleetError.malformed(reason: "an array lists a chunk twice")
        }
        let chunks = try object.childIDs.map { try store.object($0, type: "ArrayChunk").body }
        // Without this, the limit would not bound the number of indices.
        guard !chunks.contains(where: \.isEmpty) else {
            throw FleetError.malformed(reason: "an array has an empty chunk")
        }
        var bytes: [UInt8] = []
        for index in metadata.chunkIndices {
            guard chunks.indices.contains(index) else {
                throw FleetError.malformed(reason: "an array refers to a chunk that does not exist")
            }
            guard bytes.count + chunks[index].count <= limit else {
                throw FleetError.malformed(reason: "the arrays are larger than the head of the model")
            }
            bytes += chunks[index]
        }
        try self.init(npy: bytes)
        budget -= values.count
        guard budget >= 0 else {
            throw FleetError.malformed(reason: "the arrays are larger than the head of the model")
        }
        guard metadata.shape == shape else {
            throw FleetError.malformed(reason: "an array has the shape \(shape), expected \(metadata.shape)")
        }
    }

    func add(to store: inout ObjectStore) -> ObjectTree {
        let bytes = npy
        let chunks = stride(from: 0, to: bytes.count, by: Self.chunkSize).map { start in
            store.add("ArrayChunk", body: Array(bytes[start..<min(start + Self.chunkSize, bytes.count)]))
        }
        var ids: [String] = []
        let indices = chunks.map { chunk in
            if let index = ids.firstIndex(of: chunk.objectID) { return index }
            ids.append(chunk.objectID)
            return ids.count - 1
        }
        func list(_ values: [Int]) -> String { "[\(values.map(String.init).joined(separator: ", "))]" }
        let body =
            "{\"dtype\": \"float32\", \"shape\": \(list(shape)), \"stype\": \"numpy.ndarray\", \"arraychunk_ids\": \(list(indices))}"
        return store.add("Array", children: chunks, body: Array(body.utf8))
    }

    // MARK: The .npy format

    /// The header of a file that numpy wrote: a Python dictionary with sorted keys.
    private static var headerPattern: Regex<(Substring, type: Substring, order: Substring, shape: Substring)> {
        /^\{'descr': '(?<type>[^']*)', 'fortran_order': (?<order>True|False), 'shape': \((?<shape>[0-9, ]*)\), \} *\n?$/
    }

    // "\x93NUMPY", a version of two bytes, the length of the header in 2 (version 1) or 4 bytes, the header, the values
    // (numpy.org, "numpy.lib.format").
    private static let magic: [UInt8] = [0x93] + Array("NUMPY".utf8)

    /// The values as a `.npy` file, version 1.0.
    var npy: [UInt8] {
        let axes = shape.count == 1 ? "\(shape[0])," : shape.map(String.init).joined(separator: ", ")
        var header = "{'descr': '<f4', 'fortran_order': False, 'shape': (\(axes)), }"
        let unpadded = Self.magic.count + 4 + header.utf8.count + 1
        header += String(repeating: " ", count: (64 - unpadded % 64) % 64) + "\n"
        let length = UInt16(header.utf8.count)
        return Self.magic + [1, 0, UInt8(truncatingIfNeeded: length), UInt8(length >> 8)] + Array(header.utf8)
            + values.flatMap { withUnsafeBytes(of: $0.bitPattern.littleEndian, Array.init) }
    }

    /// Reads a `.npy` file of float32 or float64 values in C order.
    init(npy bytes: [UInt8]) throws(FleetError) {
        func unreadable(_ reason: String) -> FleetError { .malformed(reason: "an array is not a .npy file: \(reason)") }
        guard bytes.count >= 12, Array(bytes[..<6]) == Self.magic, (1...3).contains(bytes[6]) else {
            throw unreadable("it does not start like one")
        }
        let isShort = bytes[6] == 1
        let start = isShort ? 10 : 12
        let length = Int(bytes[8]) | Int(bytes[9]) << 8 | (isShort ? 0 : Int(bytes[10]) << 16 | Int(bytes[11]) << 24)
        guard length <= 1 << 14, start + length <= bytes.count,
            let header = String(validating: bytes[start..<(start + length)], as: UTF8.self)
        else { throw unreadable("its header is truncated or too long") }
        guard let match = header.firstMatch(of: Self.headerPattern) else {
            throw unreadable("its header is \(shown(header))")
        }
        guard match.order == "False" else { throw unreadable("it is in Fortran order, expected C order") }
        guard let size = ["<f4": 4, "<f8": 8][String(match.type)] else {
            throw unreadable("its type is \(shown(String(match.type))), expected '<f4' or '<f8'")
        }
        var (shape, count) = ([Int](), 1)
        for part in match.shape.split(separator: ",") {
            let text = part.trimmingCharacters(in: .whitespaces)
            if text.isEmpty { continue }
            guard let side = Int(text), side >= 0 else {
                throw unreadable("its shape is \(shown(String(match.shape)))")
            }
            let product = count.multipliedReportingOverflow(by: side)
            guard !product.overflow else { throw unreadable("its shape is \(shown(String(match.shape)))") }
            shape.append(side)
            count = product.partialValue
        }
        let data = bytes[(start + length)...]
        guard data.count / size == count, data.count.isMultiple(of: size) else {
            throw unreadable(
                "it has \(counted(data.count, "byte")) of values, expected \(counted(count, "value")) of \(counted(size, "byte"))"
            )
        }
        self.shape = shape
        values = data.withUnsafeBytes { data in
            (0..<count).map { index in
                size == 4
                    ? Float(
                        bitPattern: UInt32(littleEndian: data.loadUnaligned(fromByteOffset: 4 * index, as: UInt32.self))
                    )
                    : Float(
                        Double(
                            bitPattern: UInt64(
                                littleEndian: data.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))))
            }
        }
    }
}
