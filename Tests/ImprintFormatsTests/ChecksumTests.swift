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
        "Pieces of any length give what the whole gives",
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

    @Test("Numbers that are none are found wherever they are", arguments: [Float.nan, .infinity, -.infinity])
    func finite(value: Float) {
        for count in [0, 1, 15, 16, 100] {
            var numbers = [Float](repeating: .greatestFiniteMagnitude, count: count)
            #expect(imprint_all_finite(numbers, count) == 1)
            for place in numbers.indices {
                numbers[place] = value
                #expect(imprint_all_finite(numbers, count) == 0)
                numbers[place] = -0.0
            }
        }
    }

    @Test("Data or a digest that do not fit the checksum are damage", arguments: ["data", "imprint.digest"])
    func damage(part: String) throws {
        var bytes = try fileBytes()
        let place = part == "data" ? bytes.count - 1 : try #require(placeOfValue(part, in: bytes))
        bytes[place] = otherDigit(bytes[place])
        guard case .damaged? = problem(bytes) else { throw CocoaError(.featureUnsupported) }
    }

    @Test("A writer that does not know the checksum may leave an old one behind: the digest has the last word")
    func oldChecksum() throws {
        var bytes = try fileBytes()
        #expect(problem(bytes) == nil)
        let place = try #require(placeOfValue("imprint.checksum", in: bytes))
        bytes[place] = otherDigit(bytes[place])
        #expect(problem(bytes) == nil)
    }

    private func fileBytes() throws -> [UInt8] {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "model.imprint")
            try sampleWeights().write(to: url)
            return try [UInt8](Data(contentsOf: url))
        }
    }

    /// Where the text of an entry of the metadata begins.
    private func placeOfValue(_ key: String, in bytes: [UInt8]) -> Int? {
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
