internal import CImprintKernels
public import Foundation
internal import ImprintCore

extension Safetensors {
    /// A safetensors file opened for reading.
    ///
    /// Opening reads and checks the header alone; the tensors are read from the disk when they are asked for, so a
    /// file takes no more memory than its header and the tensors in use, and a file that shrinks meanwhile gives an
    /// error. Parameters that are mapped are the exception: their file must be replaced, never written over.
    public final class File: Sendable {
        /// The file's path, for messages.
        public let path: String
        /// What the file says of itself.
        public let header: Header
        private let source: Source
        private let dataStart: Int

        /// Opens the file at `url`.
        ///
        /// Throws `FileError` if it cannot be read, `SafetensorsError` where it breaks a rule of the format.
        public convenience init(contentsOf url: URL) throws {
            let path = url.path
            // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
            let descriptor = retryingInterrupts { open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
            guard descriptor >= 0 else { throw FileError.cannotRead(path, errno: errno) }
            do {
                try self.init(.descriptor(descriptor), path: path)
            } catch {
                close(descriptor)
                throw error
            }
        }

        /// Reads a file that is in memory already.
        /// - Parameter name: What errors call it.
        /// - Throws: `SafetensorsError` if it breaks a rule of the format.
        public convenience init(_ bytes: [UInt8], named name: String) throws {
            try self.init(.memory(bytes), path: name)
        }

        private init(_ source: Source, path: String) throws {
            (header, dataStart) = try readHeader(source, path)
            self.path = path
            self.source = source
        }

        deinit {
            if case .descriptor(let descriptor) = source { close(descriptor) }
        }

        /// The open file and where its data begin; nil if the bytes were in memory already.
        var opened: (descriptor: Int32, dataStart: Int)? {
            if case .descriptor(let descriptor) = source { (descriptor, dataStart) } else { nil }
        }

        /// The elements of `tensor`, which must be one of this file's, as float32.
        ///
        /// Throws `SafetensorsError` if they are not float32 or float16, `FileError` if they cannot be read.
        public func values(of tensor: TensorDescription) throws -> [Float] {
            var checksum = Checksum()
            return try values(of: tensor, checksum: &checksum)
        }

        /// The elements of `tensor`, with whose bytes in the file `checksum` goes on.
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

        /// Reads the elements of `tensor` into `values`, which has room for exactly as many.
        /// - Parameters:
        ///   - factors: What the elements of a tensor of signed 8 bits are multiplied by, one for each place on the last axis.
        ///   - checksum: Goes on with the tensor's bytes in the file.
        func read(
            _ tensor: TensorDescription, times factors: [Float]? = nil,
            into values: UnsafeMutableBufferPointer<Float>, checksum: inout Checksum
        ) throws {
            precondition(values.count == tensor.count, "\(tensor.name) has \(tensor.count) values, not \(values.count)")
            let start = dataStart + tensor.byteRange.lowerBound
            /// Reads the bytes from `offset` on.
            func fill(_ bytes: UnsafeMutableRawBufferPointer, from offset: Int = 0) throws {
                // A piece is still in the cache when the checksum takes it in.
                for first in stride(from: 0, to: bytes.count, by: 1 << 18) {
                    let piece = UnsafeMutableRawBufferPointer(
                        rebasing: bytes[first..<min(first + 1 << 18, bytes.count)])
                    try source.read(into: piece, at: start + offset + first, path)
                    checksum.update(UnsafeRawBufferPointer(piece))
                }
            }
            /// Reads `length` elements at a time and hands them to `body`, with the place of the first.
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
            switch (tensor.elementType, factors) {
            case (.float32, _): try fill(UnsafeMutableRawBufferPointer(values))
            case (.int8, let factors?):
                precondition(tensor.shape.last == factors.count, "\(factors.count) factors for \(tensor.shape)")
                guard !factors.isEmpty else { return }
                let length = max(EncodedFloats.partLength / factors.count, 1) * factors.count
                try forEachPart(length, Int8.self) { bytes, first in
                    for row in stride(from: 0, to: bytes.count, by: factors.count) {
                        for column in factors.indices {
                            values[first + row + column] = factors[column] * Float(bytes[row + column])
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

        /// The SHA-256 digest of the data, which is everything behind the header, in hexadecimal.
        ///
        /// Throws `FileError` if it cannot be read.
        public func dataDigest() throws -> String {
            var hash = SHA256()
            let length = header.tensors.last?.byteRange.upperBound ?? 0
            var piece = [UInt8](repeating: 0, count: min(length, 1 << 20))
            for start in stride(from: 0, to: length, by: 1 << 20) {
                let count = min(1 << 20, length - start)
                try piece.withUnsafeMutableBytes { bytes in
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                    try source.read(into: bytes, at: dataStart + start, path)
                }
                hash.update(piece.span.bytes.extracting(first: count))
            }
            return hash.hexadecimal
        }
    }
}

/// Reads and checks the header; also says where the data starts.
private func readHeader(_ source: Source, _ path: String) throws -> (Safetensors.Header, Int) {
    do {
        let length = try source.length(path)
        guard length >= 8 else { throw SafetensorsError.Problem.noHeaderLength(fileLength: length) }
        var word: UInt64 = 0
        try withUnsafeMutableBytes(of: &word) { try source.read(into: $0, at: 0, path) }
        let announced = UInt64(littleEndian: word)
        guard announced <= UInt64(Safetensors.greatestHeaderLength) else {
            throw SafetensorsError.Problem.headerTooLong(announced)
        }
        let headerLength = Int(announced)
        guard headerLength <= length - 8 else {
            throw SafetensorsError.Problem.headerBeyondEnd(headerLength: headerLength, fileLength: length)
        }
        // The names and shapes that are made of it take several times as much.
        guard SystemMemory.allows(8 * headerLength) else {
            throw SafetensorsError.Problem.outOfMemory(byteCount: 8 * headerLength)
        }
        var bytes = [UInt8](repeating: 0, count: headerLength)
        try bytes.withUnsafeMutableBytes { try source.read(into: $0, at: 8, path) }
        let dataStart = 8 + headerLength
        return (try Safetensors.Header(bytes, dataLength: length - dataStart), dataStart)
    } catch let problem as SafetensorsError.Problem {
        throw SafetensorsError(path: path, problem: problem)
    }
}

/// What is read from: an open file, or bytes in memory.
private enum Source {
    case descriptor(Int32)
    case memory([UInt8])

    /// How many bytes there are; a file must be neither a folder nor a device nor a pipe.
    func length(_ path: String) throws(FileError) -> Int {
        switch self {
        case .memory(let bytes): return bytes.count
        case .descriptor(let descriptor):
            var status = stat()
            guard fstat(descriptor, &status) == 0 else { throw .cannotRead(path, errno: errno) }
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw .cannotRead(path: path, reason: "it is a folder, device or pipe, not a file")
            }
            return Int(status.st_size)
        }
    }

    /// Fills `bytes` with what stands at `offset`.
    func read(into bytes: UnsafeMutableRawBufferPointer, at offset: Int, _ path: String) throws(FileError) {
        switch self {
        case .memory(let all): bytes.copyBytes(from: all[offset..<(offset + bytes.count)])
        case .descriptor(let descriptor):
            var done = 0
            while done < bytes.count {
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[done...])
                let count = retryingInterrupts { pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done)) }
                if count < 0 { throw .cannotRead(path, errno: errno) }
                if count == 0 { throw .cannotRead(path: path, reason: "it shrank while it was being read") }
                done += count
            }
        }
    }
}
