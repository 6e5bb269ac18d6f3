import Foundation
import ImprintCore
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Augmentation preview") struct AugmentationPreviewTests {
    private let rules = Preprocessing(width: 70, height: 66)
    private let augmentation = Augmentation([.flip, .rotate, .exposure])

    private func withItems<Result>(_ body: ([TrainingPhoto]) throws -> Result) throws -> Result {
        try withTemporaryFolder { root in
            try body(
                (0..<6).map { index in
                    let url = root.appending(path: "\(index).png")
                    try ImageFile.write(
                        RasterImage.noise(width: 80, height: 90, channels: 3, seed: UInt64(index)), to: url)
                    return TrainingPhoto(url: url, label: index / 3)
                })
        }
    }

    private func cell(_ sheet: RasterImage, left: Int, top: Int) -> RasterImage {
        var cell = RasterImage(width: 70, height: 66)
        for y in 0..<66 {
            let start = ((top + y) * sheet.width + left) * 3
            cell.samples.replaceSubrange((y * 210)..<((y + 1) * 210), with: sheet.samples[start..<(start + 210)])
        }
        return cell
    }

    @Test("Each row has the preprocessed image and the loader's augmented images of each epoch") func likeLoader()
        throws
    {
        try withItems { items in
            let preview = AugmentationPreview(preprocessing: rules, augmentation: augmentation, seed: 5, epochs: 3)
            let sheet = try preview.sheet(of: items, count: 2)
            #expect(sheet.shown == [items[1], items[4]])
            #expect(sheet.skipped.isEmpty)
            #expect((sheet.image.width, sheet.image.height) == (4 * 74 + 4 + 12, 2 * 70 + 4))
            let loader = try BatchLoader(
                items: items, labels: ["a", "b"], preprocessing: rules, augmentation: augmentation, batchSize: 2,
                shuffles: true, seed: 5, workers: Workers(1))
            for (row, index) in [1, 4].enumerated() {
                let top = 4 + 70 * row
                #expect(cell(sheet.image, left: 4, top: top) == (try rules.prepare(items[index].url)))
                for epoch in 0..<3 {
                    let expected = try loader.image(at: index, epoch: epoch)
                    #expect(cell(sheet.image, left: 4 + 74 * (epoch + 1) + 12, top: top) == expected)
                }
            }
        }
    }

    @Test("Unreadable images are listed; if all are unreadable, the preview fails") func unreadable() throws {
        try withItems { items in
            try Data("not an image".utf8).write(to: items[1].url)
            let preview = AugmentationPreview(preprocessing: rules, augmentation: augmentation, seed: 5, epochs: 1)
            let sheet = try preview.sheet(of: items, count: 2)
            #expect(sheet.shown == [items[4]])
            #expect(sheet.skipped.map(\.url) == [items[1].url])
            #expect(throws: ImageError.notAnImage(file: items[1].url, found: "text")) {
                try preview.sheet(of: [items[1]], count: 8)
            }
        }
    }

    @Test("Small inputs are enlarged by an integer factor") func enlarged() throws {
        try withItems { items in
            let small = Preprocessing(width: 20, height: 10)
            let preview = AugmentationPreview(preprocessing: small, augmentation: .none, seed: 1, epochs: 1)
            let sheet = try preview.sheet(of: items, count: 100)
            #expect(sheet.shown == items)
            #expect((sheet.image.width, sheet.image.height) == (2 * 84 + 16, 6 * 44 + 4))
            let image = try small.prepare(items[0].url)
            for (x, y) in [(0, 0), (79, 39), (5, 30)] {
                #expect(sheet.image.pixel(4 + x, 4 + y) == image.pixel(x / 4, y / 4))
            }
        }
    }

    @Test("Photos in memory are shown, too") func inMemory() throws {
        let image = RasterImage.noise(width: 80, height: 90, channels: 3)
        var source = InMemorySource(labels: ["a"])
        try source.append(image, labels: ["a"])
        try source.append(Data(ImageFile.encodePNG(image)), labels: ["a"])
        let preview = AugmentationPreview(preprocessing: rules, augmentation: .none, seed: 1, epochs: 1)
        let sheet = try preview.sheet(of: source.items, count: 2)
        #expect(sheet.shown == source.items && sheet.skipped.isEmpty)
        for top in [4, 74] { #expect(cell(sheet.image, left: 4, top: top) == rules.prepare(image)) }
    }
}
