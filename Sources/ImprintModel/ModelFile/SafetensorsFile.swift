internal import CImprintKernels
package import Foundation
internal import ImprintCore
internal import ImprintImages

extension Safetensors {
    /// A safetensors file opened for reading.
    ///
    /// Opening a file reads and checks only the header. Tensors are read from the disk on request, so only the header and the tensors in
    /// use take memory. A file that shrinks after it was opened causes an error. Memory-mapped parameters are the exception: their file may be
    /// replaced, but not overwritten.
    package final class File: Sendable {
        /// The path of the file, for error messages.
        package let path: String
        /// The header of the file.
        package let header: Header
        private let source: Source
        private let dataStart: Int

        /// Opens the file at `url`.
        /// - Throws: `FileError` if it cannot be read, `SafetensorsError` if it violates the format.
        package convenience init(contentsOf url: URL) throws {
            let file = try RegularFile(url.path)
            try self.init(.file(file), path: file.path)
        }

        /// Opens a file in memory.
        /// - Parameters:
        ///   - bytes: The content of the file.
        ///   - name: The name of the file in error messages.
        /// - Throws: `SafetensorsError` if it violates the format.
        package convenience init(_ bytes: [UInt8], named name: String) throws {
            try self.init(.memory(bytes), path: name)
        }

        private init(_ source: Source, path: String) throws {
            (header, dataStart) = try readHeader(source, path)
            self.path = path
            self.source = source
        }

        /// The open file and the offset of its data; nil for a file in memory.
        var opened: (descriptor: Int32, dataStart: Int)? {
            if case .file(let file) = source { (file.descriptor, dataStart) } else { nil }
        }

        /// Reads the elements of a tensor of this file as float32.
        /// - Throws: `SafetensorsError` if they are not float32 or float16, `FileError` if they cannot be read.
        package func values(of tensor: TensorDescription) throws -> [Float] {
            var checksum = Checksum()
            return try values(of: tensor, checksum: &checksum)
        }

        /// Reads the elements of `tensor` and adds their bytes in the file to `checksum`.
        func values(of tensor: TensorDescription, checksum: inout Checksum) throws -> [Float] {
            let byteCount = tensor.count.multipliedReportingOverflow(by: MemoryLayout<Float>.stride)
            guard !byteCount.overflow, SystemMemory.allows(byteCount.partialValue) else {
                throw SafetensorsError(path: path, problem: .outOfMemory(byteCount: byteCount.partialValue))
            }
            return try [Float](unsafeUninitializedCapacity: tensor.count) { buffer, initialized in
                try read(
                    tensor, into: UnsafeMutableBufferPointer(rebasing: buffer[..<tensor.count]), checksum: &checksum)
                initialized = tensor.count
            }
        }

        /// Reads the elements of a tensor.
        /// - Parameters:
        ///   - tensor: The tensor.
        ///   - scales: The scales of an int8 tensor, one for each index of the last axis.
        ///   - values: The memory for the elements, of the same count.
        ///   - checksum: The checksum to which the tensor's bytes in the file are added.
        func read(
            _ tensor: TensorDescription, times scales: [Float]? = nil,
            into values: UnsafeMutableBufferPointer<Float>, checksum: inout Checksum
        ) throws {
            precondition(values.count == tensor.count, "\(tensor.name) has \(tensor.count) values, not \(values.count)")
            let start = dataStart + tensor.byteRange.lowerBound
            /// Reads bytes from `offset`.
            func fill(_ bytes: UnsafeMutableRawBufferPointer, from offset: Int = 0) throws {
                // A chunk is still in the cache when the checksum reads it.
                for first in stride(from: 0, to: bytes.count, by: 1 << 18) {
                    let chunk = UnsafeMutableRawBufferPointer(
                        rebasing: bytes[first..<min(first + 1 << 18, bytes.count)])
                    try source.read(into: chunk, at: start + offset + first)
                    checksum.update(UnsafeRawBufferPointer(chunk))
                }
            }
            /// Reads `length` elements at a time and passes them to `body`, with the index of the first.
            func forEachPart<Element: FixedWidthInteger>(
                _ length: Int, _ type: Element.Type, _ body: (ArraySlice<Element>, Int) -> Void
            ) throws {
                var elements = [Element](repeating: 0, count: min(length, values.count))
                for first in stride(from: 0, to: values.count, by: length) {
                    let count = min(length, values.count - first)
                    try elements.withUnsafeMutableBytes {
                        let size = MemoryLayout<Element>.stride
                        try fill(UnsafeMutableRawBufferPointer(rebasing: $0[..<(count * size)]), from: first * size)
                    }
                    body(elements[..<count], first)
                }
            }
            switch (tensor.elementType, scales) {
            case (.float32, _): try fill(UnsafeMutableRawBufferPointer(values))
            case (.int8, let scales?):
                precondition(tensor.shape.last == scales.count, "\(scales.count) scales for \(tensor.shape)")
                guard !scales.isEmpty else { return }
                let length = max(EncodedFloats.partLength / scales.count, 1) * scales.count
                try forEachPart(length, Int8.self) { bytes, first in
                    for row in stride(from: 0, to: bytes.count, by: scales.count) {
                        for column in scales.indices {
                            values[first + row + column] = scales[column] * Float(bytes[row + column])
                        }
                    }
                }
            case (.float16, _):
                try forEachPart(EncodedFloats.partLength, UInt16.self) { halves, first in
                    guard let target = values.baseAddress else { return }
                    halves.withUnsafeBufferPointer {
                        imprint_float16_to_float32($0.baseAddress, target + first, $0.count)
                    }
                }
            default:
                throw SafetensorsError(
                    path: path, problem: .notFloatingPoint(tensor: tensor.name, found: tensor.elementType))
            }
        }

        /// Returns the SHA-256 digest of the data, which is everything after the header, in hexadecimal.
        /// - Throws: `FileError` if the file cannot be read.
        package func dataDigest() throws -> String {
            var hash = SHA256()
            let length = header.tensors.last?.byteRange.upperBound ?? 0
            var chunk = [UInt8](repeating: 0, count: min(length, 1 << 20))
            for start in stride(from: 0, to: length, by: 1 << 20) {
                let count = min(1 << 20, length - start)
                try chunk.withUnsafeMutableBytes { bytes in
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                    try source.read(into: bytes, at: dataStart + start)
                }
                hash.update(chunk.span.bytes.extracting(first: count))
            }
            return hash.hexadecimal
        }
    }
}

extension Safetensors {
    /// Returns the length of the header of a file, in bytes.
    /// - Parameters:
    ///   - announced: The number in the first 8 bytes of the file.
    ///   - fileLength: The length of the file in bytes, at least 8.
    /// - Throws: `SafetensorsError.Problem` if the length exceeds the limit or the file.
    package static func headerLength(
        _ announced: UInt64, fileLength: Int
    ) throws(SafetensorsError.Problem) -> Int {
        guard announced <= UInt64(maximumHeaderLength) else { throw .headerTooLong(announced) }
        let headerLength = Int(announced)
        guard headerLength <= fileLength - 8 else {
            throw .headerBeyondEnd(headerLength: headerLength, fileLength: fileLength)
        }
        return headerLength
    }

    /// Returns the metadata at the start of the header of a file, where Imprint writes it, up to the first error.
    ///
    /// It identifies a file that is cut off or damaged after the metadata. It is empty if the file cannot be read.
    package static func leadingMetadata(of url: URL) -> [String: String] {
        var metadata: [String: String] = [:]
        do {
            let file = try RegularFile(url.path)
            guard file.byteCount >= 8 else { return [:] }
            var word: UInt64 = 0
            try withUnsafeMutableBytes(of: &word) { try file.read(into: $0, at: 0) }
            let headerLength = UInt64(littleEndian: word)
            guard headerLength <= UInt64(maximumHeaderLength) else { return [:] }
            var bytes = [UInt8](repeating: 0, count: min(Int(headerLength), file.byteCount - 8))
            try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: 8) }
            try Header.readLeadingMetadata(bytes) { metadata[$0] = $1 }
        } catch {
            // The metadata before the error is the result.
        }
        return metadata
    }
}

/// Reads and checks the header, and returns it with the offset of the data.
private func readHeader(_ source: Source, _ path: String) throws -> (Safetensors.Header, Int) {
    do {
        let length = source.length
        guard length >= 8 else {
            throw source.otherKind.map(SafetensorsError.Problem.otherKind) ?? .noHeaderLength(fileLength: length)
        }
        var word: UInt64 = 0
        try withUnsafeMutableBytes(of: &word) { try source.read(into: $0, at: 0) }
        let announced = UInt64(littleEndian: word)
        // The first character of the header; a file of 8 bytes has none.
        var first = UInt8(ascii: "{")
        if length > 8 { try withUnsafeMutableBytes(of: &first) { try source.read(into: $0, at: 8) } }
        let isPlausible = announced <= UInt64(Safetensors.maximumHeaderLength) && first == UInt8(ascii: "{")
        if !isPlausible, let kind = source.otherKind {
            throw SafetensorsError.Problem.otherKind(kind)
        }
        let headerLength = try Safetensors.headerLength(announced, fileLength: length)
        // The parsed names and shapes need several times the memory of the header.
        guard SystemMemory.allows(8 * headerLength) else {
            throw SafetensorsError.Problem.outOfMemory(byteCount: 8 * headerLength)
        }
        var bytes = [UInt8](repeating: 0, count: headerLength)
        try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 8) }
        let dataStart = 8 + headerLength
        return (try Safetensors.Header(bytes, dataLength: length - dataStart), dataStart)
    } catch let problem as SafetensorsError.Problem {
        throw SafetensorsError(path: path, problem: problem)
    }
}

/// The source of the bytes: an open file, or memory.
private enum Source {
    case file(RegularFile)
    case memory([UInt8])

    /// The number of bytes.
    var length: Int {
        switch self {
        case .file(let file): file.byteCount
        case .memory(let bytes): bytes.count
        }
    }

    /// The kind of the content; nil if it may be a safetensors file: if it is one, empty or unknown.
    var otherKind: FileKind? {
        let kind =
            switch self {
            case .file(let file): FileKind(contentsOf: file)
            case .memory(let bytes): FileKind(bytes)
            }
        return kind.isSafetensors || kind == .text(.empty) || kind == .unknown ? nil : kind
    }

    /// Fills `bytes` with the data at `offset`.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int) throws(FileError) {
        switch self {
        case .file(let file): try file.read(into: bytes, at: offset)
        case .memory(let all): bytes.copyBytes(from: all[offset..<(offset + bytes.count)])
        }
    }
}
