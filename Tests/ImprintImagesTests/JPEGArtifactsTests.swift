import Foundation
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("JPEG artefacts") struct JPEGArtifactsTests {
    private func meanSquare(_ a: RasterImage, _ b: RasterImage) -> Double {
        zip(a.samples, b.samples).reduce(0) { $0 + pow(Double($1.0) - Double($1.1), 2) } / Double(a.samples.count)
    }

    @Test("A lower quality gives a larger error", arguments: [(1, 1), (8, 8), (17, 31), (96, 96)], [1, 3, 4])
    func quality(size: (Int, Int), channels: Int) throws {
        let image = RasterImage.noise(width: size.0, height: size.1, channels: channels)
        let errors = try [95, 60, 20].map { meanSquare(try image.compressed(quality: $0), image) }
        #expect(errors == errors.sorted())
        #expect(size.0 < 8 || errors[0] < errors[2])
    }

    @Test("A smooth image hardly changes") func smooth() throws {
        let image = RasterImage.gradient(width: 64, height: 48)
        #expect(meanSquare(try image.compressed(quality: 90), image) < 4)
    }

    @Test("A low quality makes the edges of 8x8 blocks visible") func blocks() throws {
        let image = RasterImage.gradient(width: 64, height: 64, channels: 1)
        let result = try image.compressed(quality: 5)
        func step(at column: Int) -> Int {
            (0..<64).reduce(0) { $0 + abs(Int(result.pixel(column, $1)[0]) - Int(result.pixel(column - 1, $1)[0])) }
        }
        let edges = (1..<8).map { step(at: 8 * $0) }.reduce(0, +)
        let insides = (1..<8).map { step(at: 8 * $0 + 4) }.reduce(0, +)
        #expect(edges > insides)
    }

    @Test("Alpha does not change, and compression is deterministic") func alpha() throws {
        let image = RasterImage.noise(width: 20, height: 20, channels: 4)
        let result = try image.compressed(quality: 30)
        #expect(stride(from: 3, to: 1600, by: 4).allSatisfy { result.samples[$0] == image.samples[$0] })
        #expect(try image.compressed(quality: 30) == result)
    }

    @Test("A side that is too long for a JPEG is an error") func tooLong() {
        let error = #expect(throws: ImageError.self) {
            try RasterImage(width: 70_000, height: 1).compressed(quality: 50)
        }
        #expect(error.map { "\($0)".contains("cannot be encoded as JPEG") } == true)
    }
}
