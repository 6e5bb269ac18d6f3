import Foundation
import ImprintCore
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Projective map") struct ProjectiveMapTests {
    @Test("A flip is exact", arguments: [(1, 1), (4, 3), (7, 2), (30, 31)], [1, 3, 4])
    func flip(size: (Int, Int), channels: Int) throws {
        let image = RasterImage.noise(width: size.0, height: size.1, channels: channels)
        #expect(image.warped(by: ProjectiveMap().flipped(horizontally: true)) == image.mirrored())
        #expect(image.warped(by: ProjectiveMap().flipped(horizontally: false)) == image.upsideDown())
        for seed in 0..<6 as Range<UInt64> {
            var stream = RandomStream(seed: seed, "flip")
            let flipped = try Augmentation([.flip]).apply(to: image, using: &stream)
            #expect([image, image.mirrored()].contains(flipped))
            let turned = try Augmentation([.flipVertical]).apply(to: image, using: &stream)
            #expect([image, image.upsideDown()].contains(turned))
        }
    }

    @Test("The identity is exact", arguments: [1, 3, 4]) func identity(channels: Int) {
        let image = RasterImage.noise(width: 13, height: 6, channels: channels)
        #expect(ProjectiveMap().isIdentity)
        #expect(image.warped(by: ProjectiveMap()) == image)
    }

    @Test("A positive angle rotates the image counter-clockwise") func direction() {
        // A quarter turn moves a dot right of the centre above the centre.
        var image = RasterImage(width: 21, height: 21, channels: 1)
        image.samples[10 * 21 + 18] = 255
        #expect(image.warped(by: ProjectiveMap().rotated(by: .pi / 2)).brightest == [10, 2])
        let turned = image.warped(by: ProjectiveMap().rotated(by: 15 * .pi / 180)).brightest
        #expect(turned == [18, 8])
    }

    @Test("Steps apply to the image in order") func order() {
        var image = RasterImage(width: 21, height: 21, channels: 1)
        image.samples[10 * 21 + 18] = 255
        // The dot moves to the top and then to the bottom; in reverse order the flip would not move it.
        let map = ProjectiveMap().rotated(by: .pi / 2).flipped(horizontally: false)
        #expect(image.warped(by: map).brightest == [10, 18])
    }

    @Test("Zooming enlarges around the centre, and a shift to the right shows more of the right side") func zoom() {
        var image = RasterImage(width: 21, height: 21, channels: 1)
        image.samples[10 * 21 + 14] = 255
        #expect(image.warped(by: ProjectiveMap().zoomed(by: 2, movedBy: (0, 0), in: image)).brightest == [18, 10])
        let moved = image.warped(by: ProjectiveMap().zoomed(by: 1, movedBy: (2 / 21, -3 / 21), in: image))
        #expect(moved.brightest == [12, 13])
    }

    @Test(
        "A warp agrees with a direct version in double precision", arguments: [(1, 1), (1, 8), (17, 11), (32, 32)],
        [1, 3, 4])
    func likePlainWarp(size: (Int, Int), channels: Int) {
        let image = RasterImage.noise(width: size.0, height: size.1, channels: channels)
        let maps = [
            ProjectiveMap().rotated(by: 0.2), ProjectiveMap().rotated(by: -0.26), ProjectiveMap().rotated(by: 1.9),
            ProjectiveMap().zoomed(by: 1.2, movedBy: (0.07, -0.05), in: image).rotated(by: 0.1).flipped(
                horizontally: true),
            ProjectiveMap(tilt: (0.2, -0.1), in: image),
            ProjectiveMap(tilt: (-0.15, 0.2), in: image)
                .zoomed(by: 1.2, movedBy: (0.07, -0.05), in: image).rotated(by: 0.1).flipped(horizontally: false),
            ProjectiveMap().zoomed(by: 0.5, movedBy: (0.9, 2), in: image),
            ProjectiveMap(a: 0, d: 0, shiftX: 1e6, shiftY: -1e6),
        ]
        for map in maps {
            for gain in [0.7, 1, 1.3] as [Float] {
                let result = image.warped(by: map, colors: ColorMap(gain: gain))
                #expect(largestDifference(result.samples, plainWarp(image, map, gain: gain)) <= 1, "\(map) \(gain)")
            }
        }
    }

    @Test("Perspective enlarges one edge, shrinks the other and keeps the centre") func perspective() {
        // Dots halfway from the centre to the edges move to x with x / (1 + x / 250) = ±25: to −22.7 and 27.8.
        var image = RasterImage(width: 101, height: 101, channels: 1)
        for x in [25, 50, 75] { image.samples[50 * 101 + x] = 255 }
        let tilted = image.warped(by: ProjectiveMap(tilt: (0.202, 0), in: image))
        let middle = tilted.samples[(50 * 101)..<(51 * 101)]
        let bright = middle.enumerated().filter { $0.element > 100 }.map(\.offset)
        #expect(bright == [27, 50, 78])
        let up = image.warped(by: ProjectiveMap(tilt: (0, 0.2), in: image))
        #expect(up.samples[50 * 101 + 50] == 255)
    }
}

extension RasterImage {
    func mirrored() -> RasterImage {
        var result = self
        for y in 0..<height {
            for x in 0..<width {
                for channel in 0..<channels {
                    result.samples[(y * width + x) * channels + channel] = pixel(width - 1 - x, y)[channel]
                }
            }
        }
        return result
    }

    func upsideDown() -> RasterImage {
        var result = self
        let row = width * channels
        for y in 0..<height {
            result.samples.replaceSubrange(
                (y * row)..<((y + 1) * row), with: samples[((height - 1 - y) * row)..<((height - y) * row)])
        }
        return result
    }

    /// The column and row of the brightest pixel of a grey image.
    var brightest: [Int] {
        let index = samples.indices.max { samples[$0] < samples[$1] } ?? 0
        return [index % width, index / width]
    }
}

private func plainWarp(_ image: RasterImage, _ map: ProjectiveMap, gain: Float) -> [UInt8] {
    var result: [UInt8] = []
    let (centreX, centreY) = (Double(image.width - 1) / 2, Double(image.height - 1) / 2)
    for y in 0..<image.height {
        for x in 0..<image.width {
            let (dx, dy) = (Double(x) - centreX, Double(y) - centreY)
            let scale = 1 / (1 + Double(map.tiltX) * dx + Double(map.tiltY) * dy)
            let sourceX = (Double(map.a) * dx + Double(map.b) * dy) * scale + Double(map.shiftX) + centreX
            let sourceY = (Double(map.c) * dx + Double(map.d) * dy) * scale + Double(map.shiftY) + centreY
            for channel in 0..<image.channels {
                var sum = 0.0
                for column in [floor(sourceX), floor(sourceX) + 1] {
                    for row in [floor(sourceY), floor(sourceY) + 1] {
                        let weight = (1 - abs(sourceX - column)) * (1 - abs(sourceY - row))
                        let fromX = Int(min(max(column, 0), Double(image.width - 1)))
                        let fromY = Int(min(max(row, 0), Double(image.height - 1)))
                        sum += weight * Double(image.pixel(fromX, fromY)[channel])
                    }
                }
                // Alpha is not transformed.
                result.append(UInt8(min((sum * (channel < 3 ? Double(gain) : 1)).rounded(), 255)))
            }
        }
    }
    return result
}
