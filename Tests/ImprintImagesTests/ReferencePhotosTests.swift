import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite("Reference photos", .enabled(if: ReferenceData.has("data/viget-train")))
struct ReferencePhotosTests {
    @Test("Every photo decodes, upright") func everyPhotoDecodes() throws {
        let folder = try ImageFolder(at: ReferenceData.folder.appending(path: "data/viget-train"))
        #expect(folder.labels == ["NotVigetLogo", "VigetLogo"])
        #expect(folder.items.count == 871)
        var portraits = 0
        for item in folder.items {
            let image = try ImageFile.decode(item.url, coveringShortSide: 64)
            #expect(image.channels == 3)
            if image.height > image.width { portraits += 1 }
        }
        #expect(portraits > 700)
    }
}
