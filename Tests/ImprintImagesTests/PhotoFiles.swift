import Foundation
import ImprintImages
import TestSupport

/// A small photo from Fixtures/make-photos.py, and its upright sRGB version from Pillow.
struct PhotoFile: Decodable {
    let name: String
    let width: Int
    let height: Int
    let channels: Int
    let samples: Data

    var image: RasterImage { RasterImage(width: width, height: height, channels: channels, samples: [UInt8](samples)) }

    /// Calls `body` with a folder of the photos and a list of them.
    static func withAll(_ body: (_ folder: URL, _ photos: [PhotoFile]) throws -> Void) throws {
        try withTemporaryFolder { folder in
            let list = try Python.output(of: "ImprintImagesTests/Fixtures/make-photos.py", [folder.path])
            try body(folder, JSONDecoder().decode([PhotoFile].self, from: list))
        }
    }
}
