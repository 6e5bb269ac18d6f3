import Foundation
import ImprintImages
import ImprintSynthesis
import TestSupport
import Testing

@Suite("Crop and scale") struct CropAndScaleTests {
    @Test("The result agrees with Pillow") func likePillow() throws {
        let vectors = try PillowVectors.load()
        let source = RasterImage(
            width: vectors.width, height: vectors.height, channels: 3, samples: [UInt8](vectors.source))
        for resize in vectors.resizes {
            let image = resize.rule.apply(source, width: resize.width, height: resize.height)
            // Pillow rounds between its two passes.
            #expect(
                largestDifference(image.samples, resize.rgb) <= 1,
                "\(resize.rule.rawValue) to \(resize.width)x\(resize.height)")
        }
    }

    @Test("Antialiasing agrees with Pillow: the signal is 50 dB above the difference")
    func ringsLikePillow() throws {
        for resize in try PillowVectors.load().rings {
            let image = resize.rule.apply(PillowVectors.ringImage, width: resize.width, height: resize.height)
            let squares = zip(image.samples, resize.rgb).map { pow(Double($0) - Double($1), 2) }
            let noise = squares.reduce(0, +) / Double(squares.count)
            #expect(squares.count == resize.width * resize.height * 3)
            #expect(10 * log10(255 * 255 / max(noise, 1e-9)) > 50, "\(resize.rule) to \(resize.width)x\(resize.height)")
        }
    }

    @Test(
        "The result agrees with a direct sum over all pixels", arguments: CropAndScale.allCases,
        [(1, 1), (1, 9), (9, 1), (16, 12), (33, 40)])
    func likePlainSum(rule: CropAndScale, size: (Int, Int)) {
        for channels in [1, 3] {
            let source = RasterImage.noise(width: size.0, height: size.1, channels: channels)
            for (width, height) in [(1, 1), (8, 8), (5, 20), (20, 5), (16, 12), (50, 50)] {
                let image = rule.apply(source, width: width, height: height, padding: 77)
                let expected = plainSum(rule, source, width: width, height: height, padding: 77)
                #expect((image.width, image.height, image.channels) == (width, height, channels))
                #expect(
                    largestDifference(image.samples, expected) <= 1,
                    "\(size.0)x\(size.1)x\(channels) to \(width)x\(height)")
            }
        }
    }

    @Test("An image of the target size does not change", arguments: CropAndScale.allCases, [1, 3, 4])
    func sameSize(rule: CropAndScale, channels: Int) {
        var image = RasterImage.noise(width: 11, height: 7, channels: channels)
        if channels == 4 { for pixel in 0..<77 { image.samples[pixel * 4 + 3] = 255 } }
        #expect(rule.apply(image, width: 11, height: 7) == image)
    }

    @Test("White stays white and black stays black at any size", arguments: CropAndScale.allCases, [0, 255] as [UInt8])
    func extremes(rule: CropAndScale, value: UInt8) {
        for size in [1, 3, 17, 61] {
            let image = RasterImage(width: 31, height: 17, filledWith: value)
            #expect(rule.apply(image, width: size, height: size, padding: value).samples.allSatisfy { $0 == value })
        }
    }

    @Test("Centre crop keeps the middle of the longer side, scale to fit keeps the whole image") func rules() {
        // Three squares side by side: 0, 100, 200.
        let samples = (0..<8).flatMap { _ in (0..<24).map { UInt8($0 / 8 * 100) } }
        let image = RasterImage(width: 24, height: 8, channels: 1, samples: samples)
        #expect(CropAndScale.centerCrop.apply(image, width: 8, height: 8).samples.allSatisfy { $0 == 100 })
        let fitted = CropAndScale.scaleFit.apply(image, width: 24, height: 24, padding: 9)
        #expect(fitted.samples == [UInt8](repeating: 9, count: 24 * 8) + samples + [UInt8](repeating: 9, count: 24 * 8))
        let filled = CropAndScale.scaleFill.apply(image, width: 3, height: 1)
        #expect(filled.samples[1] == 100)
        #expect(filled.samples[0] < 20 && filled.samples[2] > 180)
    }

    @Test("Stripes finer than the target become grey without aliasing") func antialiased() {
        let stripes = RasterImage(
            width: 300, height: 4, channels: 1, samples: (0..<1200).map { $0 % 2 == 0 ? 0 : 255 })
        let shrunk = CropAndScale.scaleFill.apply(stripes, width: 40, height: 4)
        #expect(shrunk.samples.allSatisfy { (118...137).contains($0) })
    }

    @Test("Colours of transparent pixels do not bleed into edges; padding is transparent") func alpha() {
        // Left: visible red; right: invisible green.
        let row: [UInt8] = (0..<8).flatMap { $0 < 4 ? [255, 0, 0, 255] : [0, 255, 0, 0] as [UInt8] }
        let image = RasterImage(width: 8, height: 1, channels: 4, samples: row)
        for width in [2, 3, 5, 16] {
            let scaled = CropAndScale.scaleFill.apply(image, width: width, height: 1)
            for x in 0..<width {
                let pixel = Array(scaled.samples[(4 * x)..<(4 * x + 4)])
                #expect(pixel[3] == 0 || (pixel[0] >= 254 && pixel[1] == 0), "\(width): \(pixel)")
            }
        }
        let padded = CropAndScale.scaleFit.apply(image, width: 8, height: 3, padding: 128)
        #expect(padded.pixel(0, 0) == [128, 128, 128, 0])
        #expect(padded.pixel(0, 1) == [255, 0, 0, 255])
    }

    @Test("A very long image keeps at least one pixel per side") func extremeAspectRatio() {
        let image = RasterImage(width: 3000, height: 2, filledWith: 50)
        for rule in CropAndScale.allCases {
            let scaled = rule.apply(image, width: 10, height: 10)
            #expect(scaled.samples.contains(50))
        }
    }

    @Test("The raw values stored in files do not change") func rawValues() {
        #expect(CropAndScale.allCases.map(\.rawValue) == ["center-crop", "scale-fit", "scale-fill"])
    }
}

/// Crop and scale by the definition, in double precision: each target pixel is a sum over all source pixels of the
/// product of two triangles, divided by the sum of those weights.
private func plainSum(_ rule: CropAndScale, _ source: RasterImage, width: Int, height: Int, padding: UInt8) -> [UInt8] {
    let (sourceWidth, sourceHeight) = (Double(source.width), Double(source.height))
    var (scaleX, scaleY) = (Double(width) / sourceWidth, Double(height) / sourceHeight)
    var (left, top) = (0, 0)
    var (innerWidth, innerHeight) = (width, height)
    var (firstX, firstY) = (0.0, 0.0)
    switch rule {
    case .scaleFill: break
    case .centerCrop:
        scaleX = max(scaleX, scaleY)
        scaleY = scaleX
        (firstX, firstY) = ((sourceWidth - Double(width) / scaleX) / 2, (sourceHeight - Double(height) / scaleY) / 2)
    case .scaleFit:
        let scale = min(scaleX, scaleY)
        innerWidth = max(Int((sourceWidth * scale).rounded()), 1)
        innerHeight = max(Int((sourceHeight * scale).rounded()), 1)
        (left, top) = ((width - innerWidth) / 2, (height - innerHeight) / 2)
        (scaleX, scaleY) = (Double(innerWidth) / sourceWidth, Double(innerHeight) / sourceHeight)
    }
    func triangle(_ sourceIndex: Int, _ targetIndex: Int, _ first: Double, _ scale: Double) -> Double {
        let distance = (Double(sourceIndex) + 0.5) - (first + (Double(targetIndex) + 0.5) / scale)
        return max(1 - abs(distance) * min(scale, 1), 0)
    }
    var result = [UInt8](repeating: padding, count: width * height * source.channels)
    for y in 0..<innerHeight {
        for x in 0..<innerWidth {
            var sums = [Double](repeating: 0, count: source.channels)
            var total = 0.0
            for sourceY in 0..<source.height {
                let weightY = triangle(sourceY, y, firstY, scaleY)
                if weightY == 0 { continue }
                for sourceX in 0..<source.width {
                    let weight = weightY * triangle(sourceX, x, firstX, scaleX)
                    if weight == 0 { continue }
                    total += weight
                    for channel in 0..<source.channels {
                        let index = (sourceY * source.width + sourceX) * source.channels + channel
                        sums[channel] += weight * Double(source.samples[index])
                    }
                }
            }
            for channel in 0..<source.channels {
                result[((y + top) * width + x + left) * source.channels + channel] =
                    UInt8((sums[channel] / total).rounded())
            }
        }
    }
    return result
}
