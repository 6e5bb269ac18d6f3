import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Augmentation") struct AugmentationTests {
    private func augmented(_ image: RasterImage, _ kinds: Augmentation.Kind..., seed: UInt64 = 1) -> RasterImage {
        var stream = RandomStream(seed: seed, "augmentation")
        do {
            return try Augmentation(Set(kinds)).apply(to: image, using: &stream)
        } catch {
            Issue.record(error)
            return image
        }
    }

    // MARK: Names

    @Test("Names enable the kinds of augmentation") func names() throws {
        #expect(try Augmentation(named: "none") == .none)
        #expect(try Augmentation(named: "blur,flip,rotate,flip") == Augmentation([.flip, .rotate, .blur]))
        let all = try Augmentation(named: Augmentation.allNames.joined(separator: ","))
        #expect(all.kinds == Set(Augmentation.Kind.allCases))
        #expect(
            all.names == [
                "flip", "flip-vertical", "rotate", "crop", "exposure", "blur", "noise", "perspective", "color", "jpeg",
            ])
    }

    @Test("Create ML's names and British spelling are aliases") func synonyms() throws {
        let augmentation = try Augmentation(named: "rotation,expose,colour,rotate")
        #expect(augmentation == Augmentation([.rotate, .exposure, .color]))
        #expect(augmentation.names == ["rotate", "exposure", "color"])
    }

    @Test(
        "An unknown name is an error that contains it",
        arguments: ["", "spin", "flip,", "flip,none", "none,none", "Flip", "flip, blur"])
    func unknownNames(list: String) {
        let name = list.split(separator: ",", omittingEmptySubsequences: false).last.map(String.init) ?? ""
        let known = Augmentation.allNames
        #expect(throws: ImageError.unknownAugmentation(name: name, known: known)) {
            try Augmentation(named: list)
        }
        let text = "\(ImageError.unknownAugmentation(name: name, known: known))"
        for part in ["\"\(name)\"", "none"] + known { #expect(text.contains(part)) }
    }

    // MARK: Random values

    @Test("The same stream gives the same image, another stream another image") func repeatable() {
        let image = RasterImage.noise(width: 20, height: 20, channels: 3)
        var different: Set<RasterImage> = []
        for seed in 0..<10 as Range<UInt64> {
            let result = augmented(image, .rotate, .crop, .exposure, seed: seed)
            #expect(result == augmented(image, .rotate, .crop, .exposure, seed: seed))
            different.insert(result)
        }
        #expect(different.count == 10)
    }

    @Test("Without kinds the image does not change, but the stream advances") func none() throws {
        let image = RasterImage.noise(width: 9, height: 7, channels: 3)
        var (idle, busy) = (RandomStream(seed: 3, "x"), RandomStream(seed: 3, "x"))
        #expect(try Augmentation.none.apply(to: image, using: &idle) == image)
        _ = try Augmentation(Set(Augmentation.Kind.allCases)).apply(to: image, using: &busy)
        #expect(idle.next() == busy.next())
    }

    @Test("The random values of one kind do not depend on the other kinds") func independent() {
        let image = RasterImage.gradient(width: 24, height: 24)
        for seed in 0..<20 as Range<UInt64> {
            // A flip is exact, so it can be undone.
            let flips = augmented(image, .flip, seed: seed) != image
            let rotated = augmented(image, .rotate, seed: seed)
            let both = augmented(image, .rotate, .flip, seed: seed)
            #expect(largestDifference(both.samples, (flips ? rotated.mirrored() : rotated).samples) <= 1)

            let blurs = augmented(image, .blur, seed: seed) != image
            #expect((augmented(image, .flip, .blur, seed: seed) != augmented(image, .flip, seed: seed)) == blurs)
            let gain = augmented(RasterImage(width: 4, height: 4, filledWith: 100), .exposure, seed: seed).samples[0]
            let gainWithOthers = augmented(
                RasterImage(width: 4, height: 4, filledWith: 100), .rotate, .crop, .exposure, seed: seed
            ).samples[0]
            #expect(gain == gainWithOthers)
            let compressed = augmented(image, .jpeg, seed: seed) != image
            #expect((augmented(image, .flip, .jpeg, seed: seed) != augmented(image, .flip, seed: seed)) == compressed)
        }
    }

    @Test("A seed gives the same image as in versions with fewer kinds") func sameDraws() {
        let values = (0..<6 as Range<UInt64>).map { seed in
            augmented(RasterImage(width: 1, height: 1, filledWith: 100), .exposure, seed: seed).samples[0]
        }
        #expect(values == [84, 88, 105, 111, 78, 108])
    }

    @Test("Flips and JPEG apply with probability 1/2, blur and noise with probability 1/3") func shares() {
        // Large enough that the weakest blur is visible.
        let image = RasterImage.noise(width: 110, height: 110, channels: 1)
        func count(_ kind: Augmentation.Kind) -> Int {
            (0..<200 as Range<UInt64>).count { augmented(image, kind, seed: $0) != image }
        }
        #expect((75...125).contains(count(.flip)))
        #expect((75...125).contains(count(.flipVertical)))
        #expect((45...90).contains(count(.blur)))
        #expect((45...90).contains(count(.noise)))
        #expect((75...125).contains(count(.jpeg)))
        #expect(count(.perspective) > 195)
        #expect(count(.color) > 195)
        #expect(count(.rotate) > 195)
    }

    // MARK: Geometry

    @Test("Rotation is at most 15° in both directions") func rotationRange() {
        // A dot 40 pixels right of the centre moves up or down by at most 40 · sin 15° = 10.4 pixels.
        var image = RasterImage(width: 101, height: 101, channels: 1)
        for y in 49...51 { for x in 89...91 { image.samples[y * 101 + x] = 255 } }
        let heights = (0..<100 as Range<UInt64>).map { augmented(image, .rotate, seed: $0).brightest[1] - 50 }
        #expect(heights.allSatisfy { abs($0) <= 12 })
        #expect((heights.min() ?? 0) < -7 && (heights.max() ?? 0) > 7)
    }

    // MARK: Exposure

    @Test("Exposure stays within 0.4 stops and within 0…255") func exposure() {
        let grey = (0..<200 as Range<UInt64>).map {
            augmented(RasterImage(width: 2, height: 2, filledWith: 100), .exposure, seed: $0)
        }
        #expect(grey.allSatisfy { Set($0.samples).count == 1 })
        let values = grey.map { $0.samples[0] }
        // 100 · 2^±0.4
        #expect(values.allSatisfy { (75...133).contains($0) })
        #expect((values.min() ?? 255) < 80 && (values.max() ?? 0) > 127)
        for seed in 0..<20 as Range<UInt64> {
            #expect(augmented(RasterImage(width: 2, height: 2), .exposure, seed: seed).samples.allSatisfy { $0 == 0 })
            let white = augmented(RasterImage(width: 2, height: 2, filledWith: 255), .exposure, seed: seed).samples
            #expect(white.allSatisfy { $0 >= 193 })
        }
    }

    // MARK: Blur

    @Test(
        "A blur agrees with a direct Gaussian sum", arguments: [(1, 1), (1, 9), (12, 5), (33, 20)],
        [0.05, 0.3, 1, 2.7, 6] as [Float])
    func likeDirectBlur(size: (Int, Int), standardDeviation: Float) {
        for channels in [1, 3, 4] {
            let image = RasterImage.noise(width: size.0, height: size.1, channels: channels)
            let result = image.blurred(standardDeviation: standardDeviation)
            #expect(largestDifference(result.samples, directBlur(image, Double(standardDeviation))) <= 1)
        }
    }

    @Test("A blur preserves the mean") func meanOfBlur() {
        // The border is uniform, so repeating it does not change the mean.
        var image = RasterImage(width: 40, height: 40, channels: 1, filledWith: 60)
        for y in 15..<25 { for x in 15..<25 { image.samples[y * 40 + x] = UInt8((37 * x + 91 * y) % 256) } }
        func mean(_ image: RasterImage) -> Double { Double(image.samples.reduce(0) { $0 + Int($1) }) / 1600 }
        for standardDeviation in [0.5, 1, 2, 3] as [Float] {
            #expect(abs(mean(image.blurred(standardDeviation: standardDeviation)) - mean(image)) < 0.25)
        }
    }

    @Test("A very wide blur does not overflow", arguments: [40, 90, 200] as [Float])
    func wide(standardDeviation: Float) {
        let white = RasterImage(width: 30, height: 20, channels: 1, filledWith: 255)
            .blurred(standardDeviation: standardDeviation)
        #expect(white.samples.allSatisfy { $0 >= 250 })
        let black = RasterImage(width: 30, height: 20, channels: 1).blurred(standardDeviation: standardDeviation)
        #expect(black.samples.allSatisfy { $0 <= 5 })
    }

    @Test(
        "A blur of a uniform image, or with a standard deviation of 0, changes nothing",
        arguments: [0, 1, 128, 255] as [UInt8])
    func flat(value: UInt8) {
        let image = RasterImage(width: 15, height: 10, filledWith: value)
        #expect(image.blurred(standardDeviation: 2.2) == image)
        let noise = RasterImage.noise(width: 5, height: 5, channels: 3)
        #expect(noise.blurred(standardDeviation: 0) == noise)
    }
}

private func directBlur(_ image: RasterImage, _ standardDeviation: Double) -> [UInt8] {
    let radius = max(1, Int((3 * standardDeviation).rounded(.up)))
    func weight(_ x: Int, _ y: Int) -> Double {
        exp(-Double(x * x + y * y) / (2 * standardDeviation * standardDeviation))
    }
    var total = 0.0
    for dy in -radius...radius { for dx in -radius...radius { total += weight(dx, dy) } }
    var result: [UInt8] = []
    for y in 0..<image.height {
        for x in 0..<image.width {
            var sums = [Double](repeating: 0, count: image.channels)
            for dy in -radius...radius {
                for dx in -radius...radius {
                    let pixel =
                        (min(max(y + dy, 0), image.height - 1) * image.width + min(max(x + dx, 0), image.width - 1))
                        * image.channels
                    let factor = weight(dx, dy)
                    for channel in 0..<image.channels {
                        sums[channel] += factor * Double(image.samples[pixel + channel])
                    }
                }
            }
            result += sums.map { UInt8(($0 / total).rounded()) }
        }
    }
    return result
}
