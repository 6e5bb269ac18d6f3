import Foundation
import ImprintCore
import ImprintNetwork
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintImages
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Finding all occurrences of logos from their artwork.
@Suite struct SeveralMatchesTests {
    private static let artwork: [String: Artwork] = {
        let folder = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures")
        return Dictionary(
            uniqueKeysWithValues: ["leaf", "crest"].compactMap { name in
                (try? Artwork(contentsOf: folder.appending(path: "artwork-\(name).png"))).map { (name, $0) }
            })
    }()

    private static let matcher = Result { try ArtworkMatcher(artwork.mapValues { [$0] }, threads: 2) }

    /// A logo in a scene: its label, and a square around it in pixels.
    struct Placement: Sendable, CustomTestStringConvertible {
        let label: String
        let x: Int
        let y: Int
        let side: Int

        init(_ label: String, _ x: Int, _ y: Int, _ side: Int) {
            (self.label, self.x, self.y, self.side) = (label, x, y, side)
        }

        var testDescription: String { "\(label) of \(side) pixels" }
    }

    /// Draws logos on a drawn background, each in the middle of its square, with the aspect ratio of its artwork.
    /// - Returns: The scene, and the boxes of the logos.
    private static func scene(_ placements: [Placement]) throws -> (image: RasterImage, boxes: [NormalizedRectangle]) {
        var image = try Backdrops([], size: 480, seed: 5, workers: Workers(1)).background(at: 2, seed: 3)
        let boxes = try placements.map { placement in
            let logo = try #require(artwork[placement.label]?.cutOut)
            let scale = Float(max(logo.width, logo.height)) / Float(placement.side)
            let (width, height) = (Int(Float(logo.width) / scale), Int(Float(logo.height) / scale))
            let (left, top) = (placement.x + (placement.side - width) / 2, placement.y + (placement.side - height) / 2)
            for row in 0..<height {
                for column in 0..<width {
                    // The mean of 3 x 3 samples of the logo.
                    var (sums, opacity): ([Float], Float) = ([0, 0, 0], 0)
                    for sample in 0..<9 {
                        let y = min(Int((Float(row) + (Float(sample / 3) + 0.5) / 3) * scale), logo.height - 1)
                        let x = min(Int((Float(column) + (Float(sample % 3) + 0.5) / 3) * scale), logo.width - 1)
                        let source = (y * logo.width + x) * 4
                        let alpha = Float(logo.samples[source + 3]) / 255
                        opacity += alpha / 9
                        for channel in 0..<3 { sums[channel] += alpha * Float(logo.samples[source + channel]) / 9 }
                    }
                    let target = ((top + row) * image.width + left + column) * 3
                    for channel in 0..<3 {
                        let value = sums[channel] + (1 - opacity) * Float(image.samples[target + channel])
                        image.samples[target + channel] = UInt8(min(max(value.rounded(), 0), 255))
                    }
                }
            }
            let (columns, rows) = (Float(image.width), Float(image.height))
            return NormalizedRectangle(
                x: Float(left) / columns, y: Float(top) / rows, width: Float(width) / columns,
                height: Float(height) / rows)
        }
        return (image, boxes)
    }

    static let scenes: [[Placement]] = [
        [Placement("leaf", 30, 40, 150), Placement("leaf", 280, 250, 150)],
        [Placement("crest", 20, 20, 120), Placement("crest", 180, 180, 120), Placement("crest", 340, 340, 120)],
        // At different levels of the pyramid.
        [Placement("crest", 20, 20, 260), Placement("crest", 350, 350, 90)],
        [Placement("leaf", 40, 280, 160), Placement("crest", 270, 40, 160)],
        [Placement("leaf", 20, 20, 120), Placement("crest", 330, 30, 120), Placement("leaf", 180, 320, 130)],
    ]

    @Test("Each occurrence of each logo has one object with its label and box", arguments: scenes)
    func occurrences(placements: [Placement]) throws {
        let matcher = try Self.matcher.get()
        let (image, boxes) = try Self.scene(placements)
        let objects = try matcher.detect(image)
        #expect(objects.count == placements.count, "\(objects)")
        for (placement, box) in zip(placements, boxes) {
            let found = objects.filter { $0.label == placement.label && $0.box.iou(with: box) >= 0.5 }
            #expect(found.count == 1, "\(placement.testDescription): \(objects)")
        }
        #expect(objects.map(\.confidence) == objects.map(\.confidence).sorted(by: >))
        #expect(objects.allSatisfy { $0.box.isWithinImage && (0.5...1).contains($0.confidence) })
        // The best object of a label has the confidence of the image.
        for classification in try matcher.classify(image) where classification.confidence >= 0.5 {
            let best = objects.first { $0.label == classification.label }
            #expect(best?.confidence == classification.confidence)
        }
    }

    @Test("The minimum confidence only filters the objects") func minimumConfidence() throws {
        let matcher = try Self.matcher.get()
        let (image, _) = try Self.scene(Self.scenes[4])
        let all = try matcher.detect(image, minimumConfidence: 0)
        #expect(try matcher.detect(image) == all.filter { $0.confidence >= 0.5 })
        #expect(all.allSatisfy { $0.confidence >= 0.01 })
        for value in [-0.1, 1.5, .nan] as [Float] {
            #expect(throws: ImprintError.self) { _ = try matcher.detect(image, minimumConfidence: value) }
        }
    }

    @Test("Two variants of a logo find an occurrence once") func variants() throws {
        let crest = try #require(Self.artwork["crest"])
        let matcher = try ArtworkMatcher(["logo": [crest, crest, try #require(Self.artwork["leaf"])]], threads: 2)
        let (image, boxes) = try Self.scene(Self.scenes[3])
        let objects = try matcher.detect(image)
        #expect(objects.count == 2 && objects.allSatisfy { $0.label == "logo" })
        for box in boxes { #expect(objects.count { $0.box.iou(with: box) >= 0.5 } == 1) }
    }

    @Test("An image without logos, and a matcher without artwork, have no objects") func nothing() throws {
        let image = try Self.scene([]).image
        #expect(try Self.matcher.get().detect(image).isEmpty)
        #expect(try ArtworkMatcher([:]).detect(image).isEmpty)
    }

    // MARK: Scores

    /// Returns the scores of one template of 32x32 pixels at one level of 160x160 pixels.
    private func scores(_ peaks: [(row: Int, column: Int, score: Float)]) -> TemplateScores {
        var values = [Float](repeating: 0, count: 81)
        for peak in peaks { values[peak.row * 9 + peak.column] = peak.score }
        var scores = TemplateScores(templates: 1)
        let window = Size2D(height: 2, width: 2)
        scores.append(
            .init(
                values: values, rows: 9, columns: 9, window: window, padding: Size2D(height: 0, width: 0),
                level: SIMD2(160, 160), size: SIMD2(32, 32)), template: 0)
        return scores
    }

    @Test("Peaks are local maxima by descending score, and the first one is the best match") func peaks() {
        let scores = scores([(1, 1, 0.5), (1, 2, 0.4), (6, 7, 0.8)])
        let peaks = scores.peaks(0).filter { $0.score > 0 }
        #expect(peaks.map(\.score) == [0.8, 0.5])
        let best = scores.best(0)
        #expect(best.score == 0.8)
        let expected = NormalizedRectangle(x: 0.7, y: 0.6, width: 0.2, height: 0.2)
        for box in [best.box] + peaks.prefix(1).map(\.box) { #expect(box.iou(with: expected) > 0.999) }
    }

    @Test(
        "Only scores near the position of a part count",
        arguments: [(0.1, 0.5), (0.4, 0.6), (0.45, 0.6), (0.5, 0), (0.7, 0.8)] as [(Float, Float)])
    func parts(y: Float, expected: Float) {
        // The logo has 64 pixels, so the centre of a part may be 9.6 pixels away: less than a row, which has 16.
        let scores = scores([(1, 1, 0.5), (4, 1, 0.6), (7, 1, 0.8), (4, 7, 0.9)])
        let region = NormalizedRectangle(x: 0, y: 0, width: 0.5, height: 0.5)
        let logo = NormalizedRectangle(x: 0.1, y: y, width: 0.4, height: 0.4)
        #expect(scores.highest(0, at: region, of: logo) == expected)
    }

    @Test(
        "Of the matches of one position, the best remains",
        arguments: [
            (("crest", 0.9, 0.1, 0.4), ("leaf", 0.8, 0.12, 0.4), ["crest"]),
            (("crest", 0.6, 0.1, 0.4), ("leaf", 0.8, 0.12, 0.4), ["leaf"]),
            (("crest", 0.9, 0.1, 0.4), ("leaf", 0.8, 0.2, 0.1), ["crest", "leaf"]),
            (("leaf", 0.9, 0.1, 0.4), ("leaf", 0.8, 0.2, 0.1), ["leaf"]),
            (("leaf", 0.9, 0.1, 0.4), ("leaf", 0.8, 0.55, 0.4), ["leaf", "leaf"]),
        ] as [((String, Float, Float, Float), (String, Float, Float, Float), [String])])
    func competition(
        first: (String, Float, Float, Float), second: (String, Float, Float, Float), expected: [String]
    ) {
        let objects = [first, second].map { label, confidence, corner, side in
            DetectedObject(
                label: label, confidence: confidence,
                box: NormalizedRectangle(x: corner, y: corner, width: side, height: side))
        }
        let labels = Set(objects.map(\.label)).sorted()
        let found = ObjectPeaks.objects(labels.map { label in objects.filter { $0.label == label } })
        #expect(found.map(\.label) == expected)
    }
}
