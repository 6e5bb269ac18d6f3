import Foundation
import Imprint
import ImprintModel
import TestSupport
import Testing

@testable import ImprintModelGenerator

@Suite struct ModelMetadataTests {
    @Test("The labels equal those that Imprint reads, for every storage of parameters")
    func labels() throws {
        try withTemporaryFolder { folder in
            let labels = ["Other", "Zwei Kreise", "a\"b\\c\n", "犬", ""]
            for storage in [ModelFile.Storage.float32, .float16, .int8] {
                let file = folder.appending(path: "\(storage).imprint")
                try makeModel(labels: labels).write(to: file, as: storage)
                #expect(try ModelMetadata(contentsOf: file).labels == labels)
                #expect(try ModelFile(contentsOf: file).labels == labels)
            }
        }
    }

    @Test("The newest format and the maximum header length equal those of Imprint")
    func limits() {
        #expect(ModelMetadata.newestFormat == ModelFile.formatVersion)
        #expect(ModelMetadata.maximumHeaderLength == Safetensors.maximumHeaderLength)
    }

    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let bytes: [UInt8]
        let problem: ModelHeaderError.Problem

        init(_ name: String, _ bytes: [UInt8], _ problem: ModelHeaderError.Problem) {
            (testDescription, self.bytes, self.problem) = (name, bytes, problem)
        }

        /// Creates a file with a header and this number of tensor bytes.
        init(_ name: String, _ header: String, data: Int = 0, _ problem: ModelHeaderError.Problem) {
            let length = (0..<8).map { UInt8(truncatingIfNeeded: header.utf8.count >> (8 * $0)) }
            self.init(name, length + Array(header.utf8) + [UInt8](repeating: 0, count: data), problem)
        }

        /// Creates a file with this metadata.
        init(_ name: String, metadata: String, _ problem: ModelHeaderError.Problem) {
            self.init(name, "{\"__metadata__\":{\(metadata)}}", problem)
        }
    }

    private static let tensor = "\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
    private static let format = "\"imprint.format\":\"1\""

    @Test(
        "A file that is not a complete model is rejected by its path",
        arguments: [
            Case("empty", [], .noHeaderLength(fileLength: 0)),
            Case("seven bytes", [1, 0, 0, 0, 0, 0, 0], .noHeaderLength(fileLength: 7)),
            Case("maximum length", [UInt8](repeating: 255, count: 8), .headerTooLong(.max)),
            Case("a PNG image", [0x89, 0x50, 0x4E, 0x47, 0xD, 0xA, 0x1A, 0xA], .headerTooLong(0x0A1A_0A0D_474E_5089)),
            Case("length over the limit", [1, 0xE1, 0xF5, 5, 0, 0, 0, 0], .headerTooLong(100_000_001)),
            Case("length beyond the end", [9, 0, 0, 0, 0, 0, 0, 0, 0x7B], .headerBeyondEnd(9, fileLength: 9)),
            Case("not JSON", "hello, it is me", .malformedHeader),
            Case("an array", "[]", .malformedHeader),
            Case("half an object", "{\"a\":", .malformedHeader),
            Case("not UTF-8", [2, 0, 0, 0, 0, 0, 0, 0, 0xC3, 0x28], .malformedHeader),
            Case("deeply nested", String(repeating: "[", count: 100_000), .malformedHeader),
            Case("metadata of numbers", metadata: "\"imprint.format\":1", .malformedHeader),
            Case("negative offsets", "{\"t\":{\"data_offsets\":[-8,-4]}}", .malformedHeader),
            Case("offsets beyond integers", "{\"t\":{\"data_offsets\":[0,99999999999999999999]}}", .malformedHeader),
            Case("a tensor without offsets", "{\"t\":{}}", .malformedHeader),
            Case("a file of another program", "{\(tensor)}", data: 8, .foreign),
            Case("a checkpoint", metadata: "\"imprint.checkpoint\":\"2\"", .checkpoint),
            Case("a personalization", metadata: "\"imprint.personalization\":\"1\"", .personalization),
            Case("a newer format", metadata: "\"imprint.format\":\"6\"", .unknownFormat("6")),
            Case("an invalid format", metadata: "\"imprint.format\":\"one\"", .unknownFormat("one")),
            Case(
                "cut off", "{\"__metadata__\":{\(format)},\(tensor)}", data: 7,
                .wrongDataLength(found: 7, expected: 8)),
            Case(
                "bytes after the end", "{\"__metadata__\":{\(format)},\(tensor)}", data: 9,
                .wrongDataLength(found: 9, expected: 8)),
            Case("no labels", metadata: format, .noLabels),
            Case("an empty list", metadata: "\(format),\"imprint.labels\":\"[]\"", .noLabels),
            Case("labels of numbers", metadata: "\(format),\"imprint.labels\":\"[1,2]\"", .noLabels),
            Case("unterminated labels", metadata: "\(format),\"imprint.labels\":\"[\"", .noLabels),
            Case(
                "a label twice", metadata: "\(format),\"imprint.labels\":\"[\\\"a\\\",\\\"a\\\"]\"",
                .duplicateLabel("a")),
            Case(
                "a label twice, composed and decomposed",
                metadata: "\(format),\"imprint.labels\":\"[\\\"\u{E9}\\\",\\\"e\u{301}\\\"]\"",
                .duplicateLabel("e\u{301}")),
        ])
    func hostile(_ testCase: Case) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "Logo.imprint")
            try Data(testCase.bytes).write(to: file)
            let error = #expect(throws: ModelHeaderError.self) { try ModelMetadata(contentsOf: file) }
            #expect(error == ModelHeaderError(path: file.path, problem: testCase.problem))
            #expect(throws: (any Error).self) { try ModelFile(contentsOf: file) }
        }
    }

    @Test("A truncated model is rejected")
    func truncated() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "Logo.imprint")
            try makeModel(labels: ["a", "b"]).write(to: file)
            let bytes = try Data(contentsOf: file)
            for count in stride(from: 0, to: bytes.count, by: 97) {
                try bytes.prefix(count).write(to: file)
                #expect(throws: ModelHeaderError.self) { try ModelMetadata(contentsOf: file) }
            }
        }
    }

    @Test("A missing file and a folder are rejected by path")
    func unreadable() throws {
        try withTemporaryFolder { folder in
            for file in [folder, folder.appending(path: "none.imprint")] {
                let error = #expect(throws: ModelHeaderError.self) { try ModelMetadata(contentsOf: file) }
                #expect(error?.description.hasPrefix("\(file.path): ") == true)
            }
        }
    }
}
