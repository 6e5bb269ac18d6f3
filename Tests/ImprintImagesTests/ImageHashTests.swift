import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

extension RasterImage {
    /// Returns an image of soft patches of colour with some detail, different for each seed.
    static func scene(_ seed: UInt64, width: Int = 96, height: Int = 72) -> RasterImage {
        func noise(_ columns: Int, _ rows: Int, seed: UInt64) -> RasterImage {
            CropAndScale.scaleFill.apply(
                .noise(width: columns, height: rows, channels: 3, seed: seed), width: width, height: height)
        }
        var scene = noise(5, 4, seed: seed)
        let detail = noise(20, 16, seed: seed + 1_000_000)
        for index in scene.samples.indices {
            scene.samples[index] = UInt8((3 * Int(scene.samples[index]) + Int(detail.samples[index])) / 4)
        }
        return scene
    }

    /// Returns the crop with this offset from the upper left corner.
    func part(left: Int, top: Int, width: Int, height: Int) -> RasterImage {
        var part = RasterImage(width: width, height: height, channels: channels)
        for y in 0..<height {
            let start = ((top + y) * self.width + left) * channels
            part.samples.replaceSubrange(
                (y * width * channels)..<((y + 1) * width * channels), with: samples[start..<(start + width * channels)]
            )
        }
        return part
    }
}

@Suite("Image hash") struct ImageHashTests {
    /// Returns the minimum Hamming distance over all rotations and mirror images.
    private func hashDistance(_ a: ImageHash, _ b: ImageHash) -> Int {
        b.turnedHashes.map { ($0 ^ a.hash).nonzeroBitCount }.min() ?? 64
    }

    @Test("An image matches its rotations and mirror images", arguments: Orientation.allCases)
    func turns(orientation: Orientation) throws {
        let image = RasterImage.scene(3)
        let (upright, turned) = (ImageHash(image), ImageHash(orientation.upright(image)))
        let turn = try #require(
            ImageHash.turns.first { (turned.turnedHashes[$0] ^ upright.hash).nonzeroBitCount <= 2 })
        #expect(abs(upright.layoutDistance(to: turned, turn: turn)) < 0.01)
        #expect((turn == 0) == (orientation == .up))
        // Hash and layout use the same turns.
        for other in ImageHash.turns where other != turn {
            #expect(upright.layoutDistance(to: turned, turn: other) > 0.1)
        }
    }

    @Test("Compression, size, exposure and a slight crop have little effect") func robust() throws {
        let image = RasterImage.scene(5, width: 300, height: 200)
        let original = ImageHash(image)
        let bytes = try ImageFile.encodeJPEG(image, quality: 40)
        let small = CropAndScale.scaleFill.apply(image, width: 90, height: 60)
        var dark = image
        dark.samples = image.samples.map { UInt8(Int($0) * 4 / 5) }
        let cropped = image.part(left: 3, top: 2, width: 294, height: 196)
        for (name, changed) in [("JPEG", try decode(bytes)), ("small", small), ("dark", dark), ("cropped", cropped)] {
            let imageHash = ImageHash(changed)
            #expect(hashDistance(original, imageHash) <= 8, "\(name)")
            #expect(original.layoutDistance(to: imageHash) < 0.03, "\(name)")
        }
    }

    @Test("Different images have large distances") func different() {
        let scenes = (0..<12).map { ImageHash(.scene($0 + 100)) }
        for first in scenes.indices {
            #expect(scenes[first].appearanceDistance(to: scenes[first]) < 0.001)
            for second in scenes.indices where second != first {
                #expect(scenes[first].layoutDistance(to: scenes[second]) > 0.3)
                #expect(scenes[first].appearanceDistance(to: scenes[second]) > 0.1)
            }
        }
    }

    @Test("Two crops of one scene are more similar than crops of two scenes") func scenes() {
        func part(_ seed: Int, left: Int) -> ImageHash {
            ImageHash(.scene(UInt64(seed), width: 160, height: 80).part(left: left, top: 0, width: 120, height: 80))
        }
        let alike = (0..<12).count { part($0, left: 0).appearanceDistance(to: part($0, left: 20)) < 0.3 }
        let unlike = (0..<12).count { part($0, left: 0).appearanceDistance(to: part($0 + 50, left: 0)) > 0.3 }
        #expect(alike >= 10 && unlike >= 10, "\(alike), \(unlike)")
    }

    @Test("Uniform, grey and transparent images also have hashes") func specialImages() {
        for grey in [0, 128, 255] as [UInt8] {
            #expect(ImageHash(RasterImage(width: 20, height: 10, filledWith: grey)).isEven)
        }
        let scene = RasterImage.scene(1)
        let rgba = RasterImage(
            width: scene.width, height: scene.height, channels: 4,
            samples: stride(from: 0, to: scene.samples.count, by: 3).flatMap { scene.samples[$0..<($0 + 3)] + [255] })
        #expect(ImageHash(rgba) == ImageHash(scene))
        let grey = RasterImage.noise(width: 6, height: 5, channels: 1)
        let rgb = RasterImage(width: 6, height: 5, channels: 3, samples: grey.samples.flatMap { [$0, $0, $0] })
        #expect(ImageHash(grey) == ImageHash(rgb))
        #expect(!ImageHash(grey).isEven)
    }
}
