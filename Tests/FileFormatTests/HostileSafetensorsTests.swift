import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid safetensors files: each must cause an error, never a crash, a wrong value or a large allocation.
@Suite struct HostileSafetensorsTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let header: [UInt8]
        let dataLength: Int
        let problem: SafetensorsError.Problem?

        /// Creates a case; `problem` is nil if the kind of error does not matter.
        init(_ name: String, _ header: String, data dataLength: Int = 0, _ problem: SafetensorsError.Problem? = nil) {
            testDescription = name
            self.header = Array(header.utf8)
            self.dataLength = dataLength
            self.problem = problem
        }

        init(_ name: String, bytes: [UInt8]) {
            testDescription = name
            header = bytes
            dataLength = 0
            problem = nil
        }

        /// Creates a header of one float32 tensor `t`.
        static func tensor(
            _ name: String, dtype: String = "\"F32\"", shape: String, offsets: String, data dataLength: Int = 0,
            _ problem: SafetensorsError.Problem? = nil
        ) -> Case {
            Case(
                name, "{\"t\":{\"dtype\":\(dtype),\"shape\":\(shape),\"data_offsets\":\(offsets)}}", data: dataLength,
                problem)
        }

        /// Creates a header of two byte tensors, `a` and `b`.
        static func pair(
            _ name: String, _ a: Range<Int>, _ b: Range<Int>, data dataLength: Int, _ problem: SafetensorsError.Problem
        ) -> Case {
            func entry(_ range: Range<Int>) -> String {
                "{\"dtype\":\"U8\",\"shape\":[\(range.count)],\"data_offsets\":[\(range.lowerBound),\(range.upperBound)]}"
            }
            return Case(name, "{\"a\":\(entry(a)),\"b\":\(entry(b))}", data: dataLength, problem)
        }
    }

    static let deep = 100_000

    static let numbers: [Case] = [
        .tensor("negative offset", shape: "[1]", offsets: "[-4,0]"),
        .tensor("negative size", shape: "[-1]", offsets: "[0,4]", data: 4),
        .tensor("offsets as floats", shape: "[1]", offsets: "[0.0,4.0]", data: 4),
        .tensor("size with exponent", shape: "[1e0]", offsets: "[0,4]", data: 4),
        .tensor("size with leading zero", shape: "[01]", offsets: "[0,4]", data: 4),
        .tensor("size with plus sign", shape: "[+1]", offsets: "[0,4]", data: 4),
        .tensor("size in quotes", shape: "[\"1\"]", offsets: "[0,4]", data: 4),
        .tensor("size null", shape: "[null]", offsets: "[0,4]", data: 4),
        .tensor("offset of 2^63", shape: "[1]", offsets: "[0,9223372036854775808]"),
        .tensor("offset of 2^64 + 4", shape: "[1]", offsets: "[0,18446744073709551620]", data: 4),
        .tensor(
            "65 dimensions", shape: "[\(String(repeating: "1,", count: 64))1]", offsets: "[0,4]", data: 4,
            .malformedHeader(offset: 157, expected: "at most 64 numbers")),
        .tensor("one offset", shape: "[1]", offsets: "[4]", data: 4),
        .tensor("three offsets", shape: "[1]", offsets: "[0,4,4]", data: 4),
        .tensor("end before begin", shape: "[1]", offsets: "[4,0]", data: 4),
    ]

    static let sizes: [Case] = [
        .tensor(
            "shape that overflows", shape: "[4611686018427387904,4]", offsets: "[0,0]",
            .shapeOverflows(tensor: "t", shape: [1 << 62, 4])),
        .tensor(
            "shape that overflows to 4", shape: "[4611686018427387905]", offsets: "[0,4]", data: 4,
            .shapeOverflows(tensor: "t", shape: [(1 << 62) + 1])),
        .tensor(
            "overflow hidden by a zero", shape: "[4611686018427387904,4,0]", offsets: "[0,0]",
            .shapeOverflows(tensor: "t", shape: [1 << 62, 4, 0])),
        .tensor(
            "an exabyte of missing data", shape: "[1152921504606846975]", offsets: "[0,4611686018427387900]",
            .wrongDataLength(found: 0, expected: (1 << 62) - 4)),
        .tensor(
            "shape larger than its bytes", shape: "[2]", offsets: "[0,4]", data: 4,
            .wrongByteCount(tensor: "t", found: 4, expected: 8)),
        .tensor(
            "shape smaller than its bytes", shape: "[1]", offsets: "[0,8]", data: 8,
            .wrongByteCount(tensor: "t", found: 8, expected: 4)),
        .tensor(
            "bytes after the end", shape: "[1]", offsets: "[0,4]", data: 5, .wrongDataLength(found: 5, expected: 4)),
        .tensor("bytes missing", shape: "[1]", offsets: "[0,4]", data: 3, .wrongDataLength(found: 3, expected: 4)),
        .tensor(
            "first tensor not at 0", shape: "[1]", offsets: "[4,8]", data: 8,
            .misplaced(tensor: "t", begin: 4, expected: 0)),
        .pair("overlap", 0..<4, 3..<8, data: 8, .misplaced(tensor: "b", begin: 3, expected: 4)),
        .pair("two tensors with the same bytes", 0..<4, 0..<4, data: 4, .misplaced(tensor: "b", begin: 0, expected: 4)),
        .pair("gap between tensors", 0..<4, 5..<8, data: 8, .misplaced(tensor: "b", begin: 5, expected: 4)),
        .pair("tensor inside another", 0..<8, 2..<4, data: 8, .misplaced(tensor: "b", begin: 2, expected: 8)),
        Case("data without a tensor", "{}", data: 1, .wrongDataLength(found: 1, expected: 0)),
    ]

    static let keys: [Case] = [
        .tensor(
            "unknown element type", dtype: "\"F128\"", shape: "[1]", offsets: "[0,4]", data: 4,
            .unknownElementType(tensor: "t", found: "F128")),
        .tensor("element type as number", dtype: "32", shape: "[1]", offsets: "[0,4]", data: 4),
        Case(
            "tensor twice",
            #"{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            .duplicateKey("t")),
        Case(
            "tensor twice, once with an escape",
            #"{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0074":{"dtype":"U8"}}"#, .duplicateKey("t")),
        Case(
            "tensor twice, once with a wrong size",
            #"{"t":{"dtype":"U8","shape":[0],"data_offsets":[0,5]},"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#,
            .duplicateKey("t")),
        Case("field twice", #"{"t":{"dtype":"U8","dtype":"U8"}}"#, .duplicateKey("dtype")),
        Case("metadata twice", #"{"__metadata__":{},"__metadata__":{}}"#, .duplicateKey("__metadata__")),
        Case("metadata key twice", #"{"__metadata__":{"a":"","a":""}}"#, .duplicateKey("a")),
        Case("metadata that is a number", #"{"__metadata__":{"a":1}}"#),
        Case("metadata that is a list", #"{"__metadata__":[]}"#),
        Case(
            "no dtype", #"{"t":{"shape":[0],"data_offsets":[0,0]}}"#, .missingField(tensor: "t", field: "dtype")),
        Case(
            "no shape", #"{"t":{"dtype":"U8","data_offsets":[0,0]}}"#, .missingField(tensor: "t", field: "shape")),
        Case(
            "no offsets", #"{"t":{"dtype":"U8","shape":[0]}}"#, .missingField(tensor: "t", field: "data_offsets")),
        Case("unknown field", #"{"t":{"dtype":"U8","strides":[1]}}"#),
        Case("tensor that is a string", #"{"t":"U8"}"#),
    ]

    static let syntax: [Case] = [
        Case("empty header", ""),
        Case("space before the brace", " {}"),
        Case("byte-order mark", "\u{FEFF}{}"),
        Case("a list", "[]"),
        Case("text after the object", "{} x"),
        Case("two objects", "{}{}"),
        Case("trailing comma", #"{"__metadata__":{},}"#),
        Case("comma first", #"{,"__metadata__":{}}"#),
        Case("no colon", #"{"__metadata__" {}}"#),
        Case("key without quotes", "{t:{}}"),
        Case("unterminated string", #"{"t"#),
        Case("unterminated escape", #"{"t\"#),
        Case("unknown escape", #"{"\x":{}}"#),
        Case("short escape", #"{"\u00":{}}"#),
        Case("escape with a sign", #"{"\u+041":{}}"#),
        Case("lone high surrogate", #"{"__metadata__":{"\ud83d":""}}"#),
        Case("lone low surrogate", #"{"__metadata__":{"\ude00":""}}"#),
        Case("high surrogate before a letter", #"{"__metadata__":{"\ud83d\u0041":""}}"#),
        Case("high surrogate before another", #"{"__metadata__":{"\ud83d\ud83d":""}}"#),
        Case("line break in a string", "{\"__metadata__\":{\"a\":\"\n\"}}"),
        Case("zero byte in a string", "{\"__metadata__\":{\"a\":\"\0\"}}"),
        Case("zero byte as padding", "{}\0"),
        Case("bytes that are not UTF-8", bytes: Array(#"{"__metadata__":{""#.utf8) + [0xFF] + Array(#"":""}}"#.utf8)),
        Case("overlong UTF-8", bytes: Array(#"{"__metadata__":{""#.utf8) + [0xC0, 0xAF] + Array(#"":""}}"#.utf8)),
        Case(
            "surrogate in UTF-8",
            bytes: Array(#"{"__metadata__":{""#.utf8) + [0xED, 0xA0, 0x80] + Array(#"":""}}"#.utf8)),
        Case("UTF-16", bytes: Array("{}".utf16).flatMap { [UInt8($0), 0] }),
        Case("many open lists", String(repeating: "[", count: deep)),
        Case("many open objects", String(repeating: "{\"a\":", count: deep)),
        Case("deep shape", "{\"t\":{\"shape\":" + String(repeating: "[", count: deep)),
        Case("deep metadata", "{\"__metadata__\":" + String(repeating: "{\"a\":", count: deep)),
    ]

    @Test("An invalid header is rejected", arguments: numbers + sizes + keys + syntax)
    func refused(_ hostile: Case) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "hostile")
            let length = withUnsafeBytes(of: UInt64(hostile.header.count).littleEndian, Array.init)
            try Data(length + hostile.header + [UInt8](repeating: 0, count: hostile.dataLength)).write(to: url)
            let error = #expect(throws: SafetensorsError.self) { try Safetensors.File(contentsOf: url) }
            if let problem = hostile.problem { #expect(error?.problem == problem) }
            #expect(error?.description.hasPrefix(url.path) == true)
        }
    }

    @Test(
        "A header with a wrong length is rejected before any allocation",
        arguments: [
            (.max, "{}", .headerTooLong(.max)),
            (1 << 63, "{}", .headerTooLong(1 << 63)),
            (100_000_001, "{}", .headerTooLong(100_000_001)),
            (100_000_000, "{}", .headerBeyondEnd(headerLength: 100_000_000, fileLength: 10)),
            (3, "{}", .headerBeyondEnd(headerLength: 3, fileLength: 10)),
            (1, "{}", .malformedHeader(offset: 1, expected: "\"")),
            (0, "", .malformedHeader(offset: 0, expected: "{")),
        ] as [(UInt64, String, SafetensorsError.Problem)])
    func headerLength(length: UInt64, text: String, problem: SafetensorsError.Problem) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "hostile")
            try Data(withUnsafeBytes(of: length.littleEndian, Array.init) + text.utf8).write(to: url)
            let error = #expect(throws: SafetensorsError.self) { try Safetensors.File(contentsOf: url) }
            #expect(error?.problem == problem)
        }
    }

    @Test(
        "The message about a foreign file states its kind",
        arguments: [
            (
                [0xFF, 0xD8, 0xFF, 0xE0, 0, 0x10, 0x4A, 0x46],
                "it seems to be a JPEG image. Expected a model or a personalization."
            ),
            (
                [0x89, 0x50, 0x4E, 0x47, 0xD, 0xA, 0x1A, 0xA],
                "it seems to be a PNG image. Expected a model or a personalization."
            ),
            ([0x50, 0x4B, 3, 4, 20, 0, 0, 8], "it seems to be a ZIP archive. Expected a model or a personalization."),
            (onnxStart, "it seems to be an ONNX model. Expected a model"),
            ([8, 4, 0x12, 0, 0x18, 0, 0x20, 0, 0xC2, 0x0C, 0], "it seems to be a Core ML model. Expected a model"),
            ([28, 0, 0, 0] + Array("TFL3".utf8), "it seems to be a TensorFlow Lite model."),
            ([], ": the file is empty. Expected a model or a personalization."),
            ([0], ": the file is neither an Imprint model nor another safetensors file: it has 1 byte, expected"),
            ([1, 0, 0, 0, 0, 0, 0, 0], "a header of 1 byte does not fit into 8 bytes"),
            (Array("{\"a\": 12345}".utf8), "it seems to be JSON."),
            (Array("\n[1, 2, 3, 4]".utf8), "it seems to be JSON."),
            (Array("<!DOCTYPE html>".utf8), "it seems to be a web page (HTML)."),
            (Array("<?xml version".utf8), "it seems to be XML."),
            (Array("# Photos".utf8), "it seems to be text. Expected a model or a personalization."),
            ([UInt8](repeating: 254, count: 8), "its first 8 bytes are not the length of a header"),
            (
                [0x50, 0x4B, 3, 4],
                "it seems to be a ZIP archive. Expected a model or a personalization. Check the name."
            ),
            (Array("<!DOCTYPE html>".utf8), "Check the name, or get the file again from its source."),
            // These start like a small header length.
            (
                Array("BM".utf8) + [102, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0],
                "it seems to be a BMP image. Expected a model or a personalization."
            ),
            ([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 2, 255], "it seems to be a gzip archive."),
            ([0x80, 2, 0, 0, 0, 0, 0, 0, 0x2E], "it seems to be a Python pickle (perhaps a PyTorch checkpoint)."),
            (Array("text".utf8), "it seems to be text. Expected a model"),
        ] as [([UInt8], String)])
    func foreign(bytes: [UInt8], message: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "foreign")
            try Data(bytes).write(to: url)
            let error = #expect(throws: SafetensorsError.self) { try Safetensors.File(contentsOf: url) }
            #expect(error?.description.contains(message) == true, "\(String(describing: error))")
        }
    }

    @Test(
        "A damaged header length is not mistaken for another kind of file",
        arguments: [100_000_001, 1 << 31, 1 << 63, .max] as [UInt64])
    func damagedLength(length: UInt64) throws {
        let bytes = withUnsafeBytes(of: length.littleEndian, Array.init)
        let error = #expect(throws: SafetensorsError.self) {
            try Safetensors.File(bytes + Array("{\"a\":{}}".utf8), named: "m")
        }
        #expect(error?.problem == .headerTooLong(length))
        let finding =
            "m: the file is not a safetensors file or is damaged: its first 8 bytes are not the length of a header"
        #expect(error?.finding.hasPrefix(finding) == true, "\(String(describing: error))")
    }

    @Test("A truncated file, or one with a trailing byte, is rejected")
    func truncated() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "hostile")
            try Safetensors.write(
                [
                    .init(name: "a", shape: [3], values: [1, 2, 3]),
                    .init(name: "b", shape: [2, 2], values: [4, 5, 6, 7]),
                ], to: url
            ) { ["digest": $0] }
            let whole = try Data(contentsOf: url)
            for length in 0..<whole.count {
                try whole.prefix(length).write(to: url)
                #expect(throws: SafetensorsError.self, "\(length) of \(whole.count) bytes") {
                    try Safetensors.File(contentsOf: url)
                }
            }
            try (whole + [0]).write(to: url)
            #expect(throws: SafetensorsError.self) { try Safetensors.File(contentsOf: url) }
        }
    }

    @Test(
        "An empty tensor can have sizes whose product in bytes would overflow",
        arguments: ["[2305843009213693952,0]", "[0,4611686018427387904,4]"])
    func emptyTensor(shape: String) throws {
        let header = #"{"t":{"dtype":"F64","shape":\#(shape),"data_offsets":[0,0]}}"#
        let tensor = try #require(try Safetensors.Header(Array(header.utf8), dataLength: 0).tensors.first)
        #expect(tensor.count == 0 && tensor.byteRange.isEmpty)
    }

    /// If the header is still readable, its ranges must be within the data and its element counts must match.
    @Test("A header with one changed byte is rejected or still consistent")
    func changedBytes() throws {
        let tensor = #"{"t":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"__metadata__":{"k":"\u0041"}}"#
        let whole = Array(tensor.utf8)
        for index in whole.indices {
            for byte in [0, 0x20, 0x22, 0x2C, 0x30, 0x39, 0x5B, 0x5C, 0x7B, 0x7D, 0x80, 0xFF] as [UInt8] {
                var changed = whole
                changed[index] = byte
                guard let header = try? Safetensors.Header(changed, dataLength: 8) else { continue }
                for tensor in header.tensors {
                    #expect(tensor.byteRange == 0..<8)
                    #expect(tensor.shape.reduce(1, *) * tensor.elementType.byteCount == 8)
                }
            }
        }
    }

    @Test("Reading a file that shrank after it was opened causes an error")
    func shrinking() throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model")
            try Safetensors.write([.init(name: "t", shape: [4], values: [1, 2, 3, 4])], to: url) { _ in [:] }
            let file = try Safetensors.File(contentsOf: url)
            let handle = try FileHandle(forWritingTo: url)
            try handle.truncate(atOffset: 12)
            try handle.close()
            let tensor = try #require(file.header.tensors.first)
            #expect(throws: FileError.self) { try file.values(of: tensor) }
            #expect(throws: FileError.self) { try file.dataDigest() }
        }
    }

    @Test("Only regular files can be read", arguments: ["missing", "folder", "pipe"])
    func notAFile(kind: String) throws {
        try withTemporaryFolder { folder in
            try FileManager.default.createDirectory(
                at: folder.appending(path: "folder"), withIntermediateDirectories: false)
            try #require(mkfifo(folder.appending(path: "pipe").path, 0o600) == 0)
            #expect(throws: FileError.self) { try Safetensors.File(contentsOf: folder.appending(path: kind)) }
        }
    }
}
