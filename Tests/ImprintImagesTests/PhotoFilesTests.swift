import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Photos of every format", .enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python; ./run test sets it"))
struct PhotoFilesTests {
    /// The maximum difference between decoders of the same file.
    private static let tolerances = ["jpg": 2, "png": 2, "webp": 2, "heic": 4]

    @Test("Each photo is decoded upright and in sRGB, as by Pillow") func decodesLikePillow() throws {
        try PhotoFile.withAll { folder, photos in
            #expect(photos.count == 70)
            for photo in photos where canRead(photo.name) {
                let url = folder.appending(path: photo.name)
                let decoded = try ImageFile.decode(url, keepsAlpha: true)
                #expect((decoded.width, decoded.height) == (photo.width, photo.height), "\(photo.name)")
                #expect(decoded.channels == photo.channels, "\(photo.name)")
                let difference = largestDifference(decoded.visible, photo.image.visible)
                // Versions of Little CMS interpolate CMYK differently.
                let tolerance = photo.name == "cmyk-profile.jpg" ? 10 : try #require(Self.tolerances[url.pathExtension])
                #expect(difference <= tolerance, "\(photo.name)")
            }
        }
    }

    @Test("Decoding without the colour description gives other samples than Pillow") func withoutColorDescription()
        throws
    {
        try PhotoFile.withAll { folder, photos in
            for photo in photos
            where ["p3.jpg", "cmyk-profile.jpg", "grey-profile.png", "linear.png"].contains(photo.name) {
                let url = folder.appending(path: photo.name)
                let bytes = try ImageFile.read(url)
                var header = try ImageHeader(bytes, file: url)
                header.colors = nil
                let plain = try StoredImage(bytes, header, file: url, coveringShortSide: nil).image
                #expect(largestDifference(plain.samples, photo.image.samples) > 20, "\(photo.name)")
            }
        }
    }

    @Test("Preprocessing converts colours after scaling, which hardly changes the result") func prepared() throws {
        try PhotoFile.withAll { folder, photos in
            for photo in photos where canRead(photo.name) && photo.channels == 3 {
                let rules = Preprocessing(width: 20, height: 20)
                let prepared = try rules.prepare(folder.appending(path: photo.name))
                let decibels = peakSignalToNoise(prepared.samples, rules.prepare(photo.image).samples)
                #expect(decibels > 36, "\(photo.name)")
            }
        }
    }

    @Test("Threads decode concurrently") func threads() throws {
        try PhotoFile.withAll { folder, photos in
            let urls = photos.filter { canRead($0.name) }.map { folder.appending(path: $0.name) }
            let together = try Workers(4).parallelMap(urls.count) { try ImageFile.decode(urls[$0]) }
            for (url, image) in zip(urls, together) { #expect(try ImageFile.decode(url) == image, "\(url)") }
        }
    }

    @Test("Metadata is read without decoding") func information() throws {
        try PhotoFile.withAll { folder, photos in
            func information(_ name: String) throws -> ImageInformation {
                try ImageFile.information(of: folder.appending(path: name))
            }
            for photo in photos where canRead(photo.name) {
                let found = try information(photo.name)
                let sides = found.uprightSize
                #expect(sides == (photo.width, photo.height), "\(photo.name)")
                let isKept = photo.channels == 4
                #expect(found.hasAlpha == isKept || photo.name == "animated-part.webp", "\(photo.name)")
                #expect(found.isAnimated == photo.name.hasPrefix("animated"), "\(photo.name)")
                let name = URL(filePath: photo.name).deletingPathExtension().lastPathComponent
                let isBroken = [
                    "missing-part", "damaged-profile", "wrong-profile", "high-dynamic-range", "gamma-0",
                    "chromaticities-0", "packed-gigabyte",
                ].contains(name)  // swift-format-ignore
                #expect((found.colorProblem != nil) == isBroken, "\(photo.name): \(found.colorProblem ?? "no problem")")
            }
            #expect(try information("p3.jpg").format == .jpeg)
            #expect(try information("orientation-6.jpg").orientation == .right)
            #expect(try information("long-profile.jpg").colorProfile == "Display P3")
            #expect(try information("srgb.jpg").colorProfile == "sRGB")
            #expect(try information("lossless.webp").colorProfile == nil)
            #expect(try information("orientation-8.webp").colorProfile == "Display P3")
            if canRead(".heic") { #expect(try information("alpha-p3.heic").colorProfile == "Display P3") }
        }
    }

    @Test("A truncated file is an error") func truncated() throws {
        try PhotoFile.withAll { folder, photos in
            let names = ["p3.jpg", "p3.png", "lossy-alpha-p3.webp", "animated-p3.webp", "grid-p3.heic", "alpha.heic"]
            for name in names where canRead(name) {
                let whole = [UInt8](try Data(contentsOf: folder.appending(path: name)))
                for length in stride(from: 16, to: whole.count - 1, by: max(whole.count / 60, 1)) {
                    #expect("\(name), \(length) of \(whole.count) bytes") {
                        try decode(Array(whole[..<length]))
                    } throws: { error in
                        error is ImageError
                    }
                }
            }
        }
    }

    @Test("Damaged files give an image or an error, and never crash", arguments: ["jpg", "png", "webp", "heic"])
    func damaged(type: String) throws {
        try PhotoFile.withAll { folder, photos in
            var random = RandomStream(seed: 7, "damage", 0)
            var rejected = 0
            for photo in photos where photo.name.hasSuffix(type) && canRead(photo.name) {
                let whole = [UInt8](try Data(contentsOf: folder.appending(path: photo.name)))
                for _ in 0..<30 {
                    var bytes = whole
                    for _ in 0..<(1 + random.index(below: 4)) {
                        // Headers are small, so they get extra damage.
                        let end = random.chance(0.5) ? min(bytes.count, 700) : bytes.count
                        let position = 4 + random.index(below: end - 4)
                        let values: [UInt8] = [0, 1, 0x7F, 0x80, 0xFF, UInt8(random.index(below: 256))]
                        bytes[position] = values[random.index(below: values.count)]
                    }
                    do { _ = try decode(bytes) } catch is ImageError { rejected += 1 }
                }
            }
            #expect(rejected > 50 || !canRead("." + type))
        }
    }

    #if HEIC && !canImport(ImageIO)
        @Test("An HEIC whose tiles form a larger image than its header claims is an error") func largerTiles() throws {
            try PhotoFile.withAll { folder, _ in
                var bytes = [UInt8](try Data(contentsOf: folder.appending(path: "grid-p3.heic")))
                // The grid: version, flags, rows and columns minus 1, then the size, 300x200, which becomes 2000x2000.
                let grid = try #require(bytes.firstRange(of: [0, 0, 1, 2, 0x01, 0x2C, 0x00, 0xC8]))
                bytes.replaceSubrange((grid.lowerBound + 4)..<grid.upperBound, with: [0x07, 0xD0, 0x07, 0xD0])
                #expect(throws: ImageError.self) { try decode(bytes) }
            }
        }
    #endif
}

/// Whether this build supports the format of a file.
private func canRead(_ name: String) -> Bool {
    #if HEIC
        true
    #else
        !name.hasSuffix(".heic")
    #endif
}

extension RasterImage {
    /// The visible samples: the colours of transparent pixels are ignored.
    fileprivate var visible: [UInt8] {
        guard channels == 4 else { return samples }
        return samples.enumerated().map { $0 % 4 < 3 && samples[$0 / 4 * 4 + 3] == 0 ? 0 : $1 }
    }
}
