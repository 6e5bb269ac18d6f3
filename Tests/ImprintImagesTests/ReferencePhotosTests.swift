import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Reference photos", .enabled(if: ReferenceData.has("data/viget-train")))
struct ReferencePhotosTests {
    @Test("Every photo decodes upright") func everyPhotoDecodes() throws {
        let folder = try ImageFolder(at: ReferenceData.folder.appending(path: "data/viget-train"))
        #expect(folder.labels == ["NotVigetLogo", "VigetLogo"])
        #expect(folder.items.count == 871)
        var turned = 0
        for item in folder.items {
            let image = try ImageFile.decode(item.url, coveringShortSide: 64)
            #expect(image.channels == 3 && min(image.width, image.height) >= 64)
            if JPEGSegments([UInt8](try Data(contentsOf: item.url))).orientation == .right {
                turned += 1
                #expect(image.height > image.width, "\(item.url.lastPathComponent)")
            }
        }
        #expect(turned == 517)
    }

    @Test(
        "Preprocessing agrees with Pillow to 32 dB for each photo",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python; ./run test sets it"))
    func preparedLikePillow() throws {
        let folder = try ImageFolder(at: ReferenceData.folder.appending(path: "data/viget-train"))
        // Every eighth photo; all photos take minutes in a debug build.
        let photos = stride(from: 0, to: folder.items.count, by: 8).map { folder.items[$0].url }
        let side = 224
        try withTemporaryFolder { temporary in
            let output = temporary.appending(path: "pillow").path
            _ = try Python.output(
                of: "ImprintImagesTests/Fixtures/resize-photos.py", ["\(side)", output] + photos.map(\.path))
            let expected = [UInt8](try Data(contentsOf: URL(filePath: output)))
            let length = side * side * 3
            #expect(expected.count == photos.count * length)
            let rules = Preprocessing(width: side, height: side)
            let decibels = try photos.enumerated().map { index, photo in
                let samples = try rules.prepare(photo).samples
                let decibels = peakSignalToNoise(samples, expected[(index * length)..<((index + 1) * length)])
                #expect(decibels >= 32, "\(photo.lastPathComponent)")
                return decibels
            }.sorted()
            let (worst, median) = (decibels[0], decibels[decibels.count / 2])
            print("\(photos.count) photos compared with Pillow: minimum \(worst) dB, median \(median) dB")
            #expect(median >= 40)
        }
    }
}
