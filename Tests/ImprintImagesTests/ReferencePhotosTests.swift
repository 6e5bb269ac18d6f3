import Foundation
import TestSupport
import Testing

@testable import ImprintImages

@Suite("Reference photos", .enabled(if: ReferenceData.has("data/viget-train")))
struct ReferencePhotosTests {
    @Test("Every photo decodes, upright") func everyPhotoDecodes() throws {
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
}
