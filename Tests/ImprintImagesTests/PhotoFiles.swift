import Foundation
import ImprintImages
import TestSupport

/// A small photo that Fixtures/make-photos.py wrote, and what Pillow makes of it: upright and in sRGB.
struct PhotoFile: Decodable {
    let name: String
    let width: Int
    let height: Int
    let channels: Int
    let samples: Data

    var image: RasterImage { RasterImage(width: width, height: height, channels: channels, samples: [UInt8](samples)) }

    /// Calls `body` with a folder that holds the photos, and with a list of them.
    static func withAll(_ body: (_ folder: URL, _ photos: [PhotoFile]) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let list = try Python.output(of: "ImprintImagesTests/Fixtures/make-photos.py", [folder.path])
            try body(folder, JSONDecoder().decode([PhotoFile].self, from: list))
        }
    }
}
