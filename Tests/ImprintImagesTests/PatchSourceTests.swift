import Foundation
import ImprintCore
import Testing

@testable import ImprintImages

@Suite struct PatchSourceTests {
    /// A white disc on black.
    private func picture(width: Int, height: Int, x: Float, y: Float, radius: Float) -> Image {
        var image = Image(width: width, height: height, channels: 3)
        for row in 0..<height {
            for column in 0..<width where hypotf(Float(column) - x, Float(row) - y) < radius {
                for channel in 0..<3 { image.samples[(row * width + column) * 3 + channel] = 255 }
            }
        }
        return image
    }

    private func read(_ picture: Image, _ window: PatchWindow, side: Int) -> [UInt8] {
        var patch = [UInt8](repeating: 0, count: side * side * 3)
        patch.withUnsafeMutableBufferPointer { PatchSource(picture).read(window, side: side, into: $0) }
        return patch
    }

    @Test("A window of the picture's own size is the picture") func whole() {
        var image = Image(width: 64, height: 64, channels: 3)
        var stream = RandomStream(seed: 1, "picture")
        for place in image.samples.indices { image.samples[place] = UInt8(stream.index(below: 256)) }
        let patch = read(image, PatchWindow(x: 31.5, y: 31.5, side: 64), side: 64)
        #expect(patch == image.samples)
    }

    @Test(
        "What is at a place of the picture is in the patch where the window says",
        arguments: [
            PatchWindow(x: 100, y: 80, side: 96), PatchWindow(x: 110, y: 90, side: 60, angle: 0.4),
            PatchWindow(x: 90, y: 95, side: 140, angle: -2, isMirrored: true), PatchWindow(x: 120, y: 70, side: 190),
            PatchWindow(x: 100, y: 80, side: 96, isMirrored: true),
        ])
    func places(window: PatchWindow) {
        let image = picture(width: 240, height: 180, x: 104, y: 84, radius: 9)
        let patch = read(image, window, side: 96)
        var (sum, sumX, sumY): (Float, Float, Float) = (0, 0, 0)
        for row in 0..<96 {
            for column in 0..<96 {
                let value = Float(patch[(row * 96 + column) * 3])
                sum += value
                sumX += value * (Float(column) - 47.5)
                sumY += value * (Float(row) - 47.5)
            }
        }
        let place = window.place(ofX: 104, y: 84, patch: 96)
        #expect(abs(sumX / sum - place.x) < 0.6 && abs(sumY / sum - place.y) < 0.6)
    }

    @Test("Large photos are looked at smaller, small ones as they are", arguments: [(4000, 3000), (300, 200), (1, 9)])
    func size(width: Int, height: Int) {
        let shrunk = PatchSource.shrunk(Image(width: width, height: height, channels: 3))
        #expect(shrunk.width * shrunk.height <= 161_000)
        #expect(abs(Float(shrunk.width) / Float(shrunk.height) - Float(width) / Float(height)) < 0.02 * Float(width))
        if width * height <= 160_000 { #expect((shrunk.width, shrunk.height) == (width, height)) }
    }
}
