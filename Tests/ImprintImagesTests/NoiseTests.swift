import Foundation
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Noise") struct NoiseTests {
    private func differences(_ standardDeviation: Float, key: UInt64 = 1) -> [Double] {
        let noisy = RasterImage(width: 200, height: 100, filledWith: 128).noisy(
            standardDeviation: standardDeviation, key: key)
        return noisy.samples.map { Double($0) - 128 }
    }

    @Test("Noise has mean 0 and the requested standard deviation", arguments: [2, 5, 12] as [Float], [0, 1, .max])
    func moments(standardDeviation: Float, key: UInt64) {
        let values = differences(standardDeviation, key: key)
        let mean = values.reduce(0, +) / Double(values.count)
        let variance = values.reduce(0) { $0 + $1 * $1 } / Double(values.count)
        #expect(abs(mean) < Double(standardDeviation) / 30)
        // Rounding to integers adds 1/12 to the variance.
        #expect(abs((variance - 1 / 12).squareRoot() / Double(standardDeviation) - 1) < 0.02)
    }

    @Test("Noise is nearly normal: 70 % within one standard deviation, 4 % beyond two") func shape() {
        let values = differences(12)
        let count = Double(values.count)
        #expect(abs(Double(values.count { abs($0) < 12.5 }) / count - 0.70) < 0.02)
        #expect(abs(Double(values.count { abs($0) > 24.5 }) / count - 0.041) < 0.01)
    }

    @Test("Noise of adjacent pixels, channels and keys is uncorrelated") func independent() {
        let values = differences(12)
        func correlation(_ a: some Sequence<Double>, _ b: some Sequence<Double>) -> Double {
            let products = zip(a, b).map { $0 * $1 }
            return products.reduce(0, +) / Double(products.count) / 144
        }
        for distance in [1, 2, 3, 600] { #expect(abs(correlation(values, values.dropFirst(distance))) < 0.02) }
        for key in [2, 1 << 32 | 1] as [UInt64] { #expect(abs(correlation(values, differences(12, key: key))) < 0.02) }
        #expect(differences(12) == values)
    }

    @Test("Samples clamp at black and white, and alpha does not change", arguments: [0, 255] as [UInt8])
    func limits(value: UInt8) {
        let image = RasterImage(width: 50, height: 50, channels: 4, filledWith: value)
        let noisy = image.noisy(standardDeviation: 12, key: 9)
        #expect(noisy.samples.allSatisfy { abs(Int($0) - Int(value)) < 60 })
        #expect(stride(from: 3, to: noisy.samples.count, by: 4).allSatisfy { noisy.samples[$0] == value })
        #expect(noisy != image)
        #expect(image.noisy(standardDeviation: 0, key: 9) == image)
    }
}
