import Foundation
import TestSupport
import Testing

@testable import ImprintImages

@Suite struct FileKindTests {
    /// Returns the kind of a file with this content, which is the same in memory and on disk.
    private func kind(of content: [UInt8]) throws -> FileKind? {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data(content).write(to: file)
            let kind = FileKind(contentsOf: file)
            #expect(kind == FileKind(content))
            return kind
        }
    }

    @Test(
        "A list of paths is text, also if its first path starts like the signature of another format",
        arguments: [
            "GIF8/a.jpg", "GIF89a/b.jpg", "GGUF/a.jpg", "%PDF/a.jpg", "%PDF-1.7/a.jpg", "abc/TFL3/a.jpg",
            "BMW/a.jpg", "mp4/ftyp/a.jpg", "RIFF/a.jWEBP/a.jpg",
        ])
    func lists(path: String) throws {
        #expect(try kind(of: Array("\(path)\nphotos/b.jpg\n".utf8)) == .text(.plain))
    }

    @Test(
        "The content of a file decides its kind",
        arguments: [
            ([], .text(.empty)), (Array(" \n".utf8), .text(.whiteSpace)), (Array("[1]".utf8), .text(.json)),
            (Array("<?xml version='1.0'?><a/>".utf8), .text(.xml)), (Array("<!doctype html>".utf8), .webPage),
            (Array("GIF89a\t\0\t\0".utf8), .otherImage(.gif)), (Array("%PDF-1.7\r\n".utf8), .pdf),
            (Array("%PDF-1.4\n%\u{1}".utf8), .pdf), (Array("PK\u{3}\u{4}....".utf8), .zip),
            (Array("GGUF\u{3}\0\0\0".utf8), .model(.gguf)), (onnxStart, .model(.onnx)),
            (Array("\u{1C}\0\0\0TFL3".utf8), .model(.tensorFlowLite)),
            ([0x89, 0x48, 0x44, 0x46, 0x0D, 0x0A, 0x1A, 0x0A], .model(.hdf5)),
            (Array("@\0\0\0\0\0\0\0{}".utf8), .model(.safetensors)),
            (Array("@\0\0\0\0\0\0\0{\"__metadata__\":{\"imprint.checkpoint\":\"3\"}}".utf8), .checkpoint),
            (metadataStart("\"imprint.base\":\"0\",\"imprint.columns\":\"[]\""), .personalization),
            (metadataStart("\"imprint.base\":\"0\",\"imprint.digest\":\"0\""), .model(.safetensors)),
            (metadataStart("\"imprint.digest\":\"0\",\"imprint.features\":\"1\""), .featureCache),
            ([0x1F, 0x8B, 8, 0], .gzip),
            ([0x93] + Array("NUMPY\u{1}\0v\0{'descr'".utf8), .numPy),
            ([0x80, 4, 0x95, 13, 0, 0, 0, 0, 0, 0, 0, 0x8C], .pickle),
            ([0x80, 2, 0x7D, 0x71, 0, 0x2E], .pickle),
            ([0x80, 4, 0, 0, 0, 0, 0, 0] + Array("{}".utf8), .model(.safetensors)),
            (tarStart, .tar),
            ([0x80, 6], .unknown), ([0, 1, 2, 3], .unknown),
        ] as [([UInt8], FileKind)])
    func kinds(content: [UInt8], expected: FileKind) throws { #expect(try kind(of: content) == expected) }

    private static func metadataStart(_ members: String) -> [UInt8] {
        Array("@\0\0\0\0\0\0\0{\"__metadata__\":{\(members)}}".utf8)
    }

    /// The name of the first file, and the signature at byte 257.
    private static let tarStart: [UInt8] =
        Array("a.png".utf8) + [UInt8](repeating: 0, count: 252) + Array("ustar".utf8)

    @Test("A Caffe model may start with a long name") func longName() throws {
        // Field 1 is the name, and field 100 a layer.
        let name = [UInt8](repeating: 0x61, count: 1280)
        #expect(try kind(of: [0x0A, 0x80, 0x0A] + name + [0xA2, 0x06, 0]) == .model(.caffe))
    }
}
