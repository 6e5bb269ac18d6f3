import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite struct PatchSourceTests {
    /// Returns an image of a white disc on black.
    private func disc(width: Int, height: Int, x: Float, y: Float, radius: Float) -> RasterImage {
        var image = RasterImage(width: width, height: height, channels: 3)
        for row in 0..<height {
            for column in 0..<width where hypotf(Float(column) - x, Float(row) - y) < radius {
                for channel in 0..<3 { image.samples[(row * width + column) * 3 + channel] = 255 }
            }
        }
        return image
    }

    private func read(_ source: PatchSource, _ window: PatchWindow, side: Int) throws -> [UInt8] {
        var patch = [UInt8](repeating: 0, count: side * side * 3)
        try patch.withUnsafeMutableBufferPointer { try source.read(window, side: side, into: $0) }
        return patch
    }

    private func noise(width: Int, height: Int) -> RasterImage {
        var image = RasterImage(width: width, height: height, channels: 3)
        var stream = RandomStream(seed: 1, "picture")
        for index in image.samples.indices { image.samples[index] = UInt8(stream.index(below: 256)) }
        return image
    }

    @Test("A window of the size of the image gives the image") func whole() throws {
        let image = noise(width: 64, height: 64)
        #expect(try read(PatchSource(image), PatchWindow(x: 31.5, y: 31.5, side: 64), side: 64) == image.samples)
    }

    @Test(
        "A window with two or four pixels per patch pixel gives their rounded means",
        arguments: [2, 4])
    func halves(pixels: Int) throws {
        var image = noise(width: 199, height: 194)
        let window = PatchWindow(x: 95.5, y: 95.5, side: 192)
        let patch = try read(PatchSource(image), window, side: 192 / pixels)
        for _ in 0..<(pixels / 2) {
            var half = RasterImage(width: image.width / 2, height: image.height / 2, channels: 3)
            for row in 0..<half.height {
                for column in 0..<half.width {
                    for channel in 0..<3 {
                        let four = [(0, 0), (0, 1), (1, 0), (1, 1)].map { down, right in
                            Int(image.samples[((2 * row + down) * image.width + 2 * column + right) * 3 + channel])
                        }
                        half.samples[(row * half.width + column) * 3 + channel] = UInt8((four.reduce(0, +) + 2) / 4)
                    }
                }
            }
            image = half
        }
        let side = 192 / pixels
        #expect(patch == image.part(left: 0, top: 0, width: side, height: side).samples)
    }

    @Test(
        "A photo read on demand equals the image in memory; a missing or changed photo is an error that names it"
    )
    func photos() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "a.png")
            try ImageFile.write(noise(width: 600, height: 420), to: file)
            let image = try PatchSource.read(file)
            let photo = PatchSource(TrainingPhoto(url: file, labels: []), width: image.width, height: image.height)
            let window = PatchWindow(x: 240, y: 150, side: 160, angle: 0.3)
            #expect(try read(photo, window, side: 96) == read(PatchSource(image), window, side: 96))
            #expect(try photo.image() == image)
            try ImageFile.write(noise(width: 300, height: 420), to: file)
            let changed = #expect(throws: ImageError.self) { try photo.image() }
            #expect("\(try #require(changed))".contains("a.png cannot be read: its size has changed from 478x335 to "))
            try FileManager.default.removeItem(at: file)
            #expect(throws: ImageError.self) { try read(photo, window, side: 96) }
        }
    }

    @Test("A large JPEG is decoded only at the size that the detector analyses") func largePhoto() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "a.jpg")
            try ImageFile.write(disc(width: 2400, height: 1600, x: 900, y: 700, radius: 300), to: file)
            let photo = TrainingPhoto(url: file, labels: [])
            let decoded = try PatchSource.decode(photo)
            #expect(decoded.width < 2400 && decoded.height >= 400)
            let read = try PatchSource.read(file)
            let whole = PatchSource.shrunk(try ImageFile.decode(file))
            #expect((read.width, read.height) == (whole.width, whole.height))
            #expect(try PatchSource(photo, width: read.width, height: read.height).image() == read)
            let error = zip(read.samples, whole.samples).map { abs(Int($0) - Int($1)) }.reduce(0, +)
            #expect(error < read.samples.count)
        }
    }

    @Test(
        "A point of the image is at its mapped position in the patch",
        arguments: [
            PatchWindow(x: 100, y: 80, side: 96), PatchWindow(x: 110, y: 90, side: 60, angle: 0.4),
            PatchWindow(x: 90, y: 95, side: 140, angle: -2, isMirrored: true), PatchWindow(x: 120, y: 70, side: 190),
            PatchWindow(x: 100, y: 80, side: 96, isMirrored: true),
        ])
    func positions(window: PatchWindow) throws {
        let image = disc(width: 240, height: 180, x: 104, y: 84, radius: 9)
        let patch = try read(PatchSource(image), window, side: 96)
        var (sum, sumX, sumY): (Float, Float, Float) = (0, 0, 0)
        for row in 0..<96 {
            for column in 0..<96 {
                let value = Float(patch[(row * 96 + column) * 3])
                sum += value
                sumX += value * (Float(column) - 47.5)
                sumY += value * (Float(row) - 47.5)
            }
        }
        let position = window.position(ofX: 104, y: 84, patch: 96)
        #expect(abs(sumX / sum - position.x) < 0.6 && abs(sumY / sum - position.y) < 0.6)
    }

    @Test(
        "Large photos are scaled down for the detector, small photos are not",
        arguments: [(4000, 3000), (300, 200), (1, 9)])
    func size(width: Int, height: Int) {
        let shrunk = PatchSource.shrunk(RasterImage(width: width, height: height, channels: 3))
        #expect(shrunk.width * shrunk.height <= 161_000)
        #expect(abs(Float(shrunk.width) / Float(shrunk.height) - Float(width) / Float(height)) < 0.02 * Float(width))
        if width * height <= 160_000 { #expect((shrunk.width, shrunk.height) == (width, height)) }
    }
}
