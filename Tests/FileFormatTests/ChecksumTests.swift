import CImprintKernels
import Foundation
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

@Suite struct ChecksumTests {
    /// RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms for "123456789".
    @Test(
        "The checksum is CRC-32C",
        arguments: [
            ([UInt8](repeating: 0, count: 32), 0x8A91_36AA), ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
            (Array(0..<32), 0x46DD_794E), ((0..<32).reversed(), 0x113F_DB5C), (Array("123456789".utf8), 0xE306_9283),
            ([], 0),
        ] as [([UInt8], UInt32)])
    func knownValues(bytes: [UInt8], expected: UInt32) {
        #expect(imprint_crc32c(0, bytes, bytes.count) == expected)
        #expect(imprint_crc32c_by_table(0, bytes, bytes.count) == expected)
    }

    @Test(
        "The checksum of a file in pieces equals that of the whole",
        arguments: [1, 7, 8, 13, 64, 6143, 6144, 6145, 12_300, 20_000])
    func pieces(length: Int) {
        let bytes = (0..<20_000).map { UInt8(truncatingIfNeeded: ($0 &* 197) >> 3) }
        var checksum: UInt32 = 0
        for start in stride(from: 0, to: bytes.count, by: length) {
            let piece = Array(bytes[start..<min(start + length, bytes.count)])
            checksum = imprint_crc32c(checksum, piece, piece.count)
        }
        #expect(checksum == imprint_crc32c_by_table(0, bytes, bytes.count))
    }

    @Test("A value that is not finite is detected at any index", arguments: [Float.nan, .infinity, -.infinity])
    func finite(value: Float) {
        for count in [0, 1, 15, 16, 100] {
            var values = [Float](repeating: .greatestFiniteMagnitude, count: count)
            #expect(imprint_all_finite(values, count) == 1)
            for index in values.indices {
                values[index] = value
                #expect(imprint_all_finite(values, count) == 0)
                values[index] = -0.0
            }
        }
    }

    @Test("Changed data, or a changed digest, is reported as damage", arguments: ["data", "imprint.digest"])
    func damage(part: String) throws {
        var bytes = try fileBytes()
        let offset = part == "data" ? bytes.count - 1 : try #require(offsetOfValue(part, in: bytes))
        bytes[offset] = otherDigit(bytes[offset])
        guard case .damaged? = problem(bytes) else { throw CocoaError(.featureUnsupported) }
    }

    @Test("An outdated checksum is ignored if the digest matches")
    func oldChecksum() throws {
        var bytes = try fileBytes()
        #expect(problem(bytes) == nil)
        let offset = try #require(offsetOfValue("imprint.checksum", in: bytes))
        bytes[offset] = otherDigit(bytes[offset])
        #expect(problem(bytes) == nil)
    }

    private func fileBytes() throws -> [UInt8] {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try sampleModel().write(to: url)
            return try [UInt8](Data(contentsOf: url))
        }
    }

    /// Returns the offset of a metadata value in the file.
    private func offsetOfValue(_ key: String, in bytes: [UInt8]) -> Int? {
        let text = Array("\"\(key)\":\"".utf8)
        return bytes.indices.first { bytes[$0...].starts(with: text) }.map { $0 + text.count }
    }

    private func otherDigit(_ digit: UInt8) -> UInt8 {
        digit == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
    }

    private func problem(_ bytes: [UInt8]) -> ModelFileError.Problem? {
        do {
            _ = try ModelFile(bytes, named: "changed")
            return nil
        } catch {
            return (error as? ModelFileError)?.problem
        }
    }
}
