import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite("Preprocessing") struct PreprocessingTests {
    private func normalized(_ image: RasterImage, _ rules: Preprocessing) -> [Float] {
        var values = [Float](repeating: .nan, count: image.samples.count)
        values.withUnsafeMutableBufferPointer { rules.normalize(image, into: $0) }
        return values
    }

    @Test("The default maps black to −1 and white to 1", arguments: [1, 3]) func symmetric(channels: Int) {
        let rules = Preprocessing(width: 2, height: 1, channels: channels)
        let image = RasterImage(
            width: 2, height: 1, channels: channels,
            samples: [UInt8](repeating: 0, count: channels) + [UInt8](repeating: 255, count: channels))
        let expected = [Float](repeating: -1, count: channels) + [Float](repeating: 1, count: channels)
        for (value, target) in zip(normalized(image, rules), expected) { #expect(abs(value - target) < 1e-6) }
    }

    @Test("Each channel has its own mean and scale, and keeps its position") func channelByChannel() {
        var rules = Preprocessing(width: 5, height: 3)
        rules.mean = [10, 20.5, 300]
        rules.scale = [1, 0.25, -2]
        let image = RasterImage.noise(width: 5, height: 3, channels: 3)
        let expected = image.samples.enumerated().map { index, sample in
            (Float(sample) - rules.mean[index % 3]) * rules.scale[index % 3]
        }
        #expect(normalized(image, rules) == expected)
    }

    @Test("Values after the image are not written") func longerBuffer() {
        let rules = Preprocessing(width: 3, height: 3)
        var values = [Float](repeating: 7, count: 30)
        values.withUnsafeMutableBufferPointer { rules.normalize(RasterImage(width: 3, height: 3), into: $0) }
        #expect(values[27...].allSatisfy { $0 == 7 })
        #expect(values[..<27].allSatisfy { $0 == -1 })
    }

    @Test(
        "Grey is the rounded Rec. 601 luma",
        arguments: [
            ([0, 0, 0], 0), ([255, 255, 255], 255), ([255, 0, 0], 76), ([0, 255, 0], 150), ([0, 0, 255], 29),
            ([12, 200, 99], 132), ([77, 77, 77], 77),
        ] as [([UInt8], UInt8)])
    func grey(color: [UInt8], expected: UInt8) {
        let image = RasterImage(width: 2, height: 1, channels: 3, samples: color + [0, 0, 0])
        #expect(Preprocessing(width: 2, height: 1, channels: 1).prepare(image).samples == [expected, 0])
    }

    @Test("A grey image becomes three equal channels") func color() {
        let image = RasterImage(width: 2, height: 1, channels: 1, samples: [9, 200])
        #expect(Preprocessing(width: 2, height: 1).prepare(image).samples == [9, 9, 9, 200, 200, 200])
    }

    @Test("Transparent images in memory are composited on white, like files", arguments: [1, 3])
    func transparency(channels: Int) throws {
        let image = RasterImage.noise(width: 8, height: 8, channels: 4)
        let rules = Preprocessing(width: 8, height: 8, channels: channels)
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "x.png")
            try ImageFile.write(image, to: url)
            #expect(try rules.prepare(url) == rules.prepare(image))
        }
    }

    @Test(
        "A photo of any shape gets the size of the input", arguments: CropAndScale.allCases,
        [(40, 10), (7, 90), (16, 12)])
    func sizes(rule: CropAndScale, size: (Int, Int)) {
        let source = RasterImage.gradient(width: size.0, height: size.1)
        for (width, height, channels) in [(16, 12, 3), (1, 1, 1), (5, 30, 3)] {
            let rules = Preprocessing(width: width, height: height, channels: channels, cropAndScale: rule)
            let image = rules.prepare(source)
            #expect((image.width, image.height, image.channels) == (width, height, channels))
            if channels == 3 { #expect(image == rule.apply(source, width: width, height: height)) }
        }
    }

    @Test("A file is preprocessed like its image in memory") func file() throws {
        try withTemporaryFolder { folder in
            let image = RasterImage.gradient(width: 30, height: 20)
            let url = folder.appending(path: "x.png")
            try ImageFile.write(image, to: url)
            let rules = Preprocessing(width: 12, height: 12, cropAndScale: .scaleFit)
            #expect(try rules.prepare(url) == rules.prepare(image))
            let absent = folder.appending(path: "absent.png")
            #expect(throws: ImageError.self) { try rules.prepare(absent) }
        }
    }

    @Test("Valid settings have no problem", arguments: [1, 3]) func valid(channels: Int) {
        #expect(Preprocessing(width: 1, height: 1 << 14, channels: channels).problem == nil)
    }

    @Test("An invalid setting is reported") func problems() throws {
        func expectProblem(_ word: String, _ change: (inout Preprocessing) -> Void) throws {
            var rules = Preprocessing(width: 5, height: 5)
            change(&rules)
            let problem = try #require(rules.problem, "\(word)")
            #expect(problem.contains(word), "\(problem)")
        }
        try expectProblem("0x5") { $0.width = 0 }
        try expectProblem("5x-1") { $0.height = -1 }
        try expectProblem("16385x5") { $0.width = 16_385 }
        try expectProblem("2 channels") { $0.channels = 2 }
        try expectProblem("0 channels") { $0.channels = 0 }
        try expectProblem("2 means") { $0.mean = [1, 2] }
        try expectProblem("0 scales") { $0.scale = [] }
        try expectProblem("3 means") { $0.channels = 1 }
        try expectProblem("finite") { $0.mean[1] = .nan }
        try expectProblem("finite") { $0.scale[2] = .infinity }
        try expectProblem("\"Display P3\"") { $0.colorSpace = "Display P3" }
    }

    @Test("Encoding and decoding give the same settings") func codable() throws {
        var rules = Preprocessing(width: 5, height: 6, channels: 1, cropAndScale: .scaleFill)
        rules.mean = [0.1]
        let read = try JSONDecoder().decode(Preprocessing.self, from: JSONEncoder().encode(rules))
        #expect(read == rules)
    }
}
