import Foundation
import ImprintImages
import TestSupport

/// Images decoded and resized by Pillow, from Fixtures/make-pillow-vectors.py.
struct PillowVectors: Decodable {
    struct File: Decodable {
        let name: String
        let file: Data
        let rgb: Data
    }

    struct Resize: Decodable {
        let rule: CropAndScale
        let width: Int
        let height: Int
        let rgb: Data
    }

    let width: Int
    let height: Int
    let files: [File]
    let source: Data
    let resizes: [Resize]
    /// The resized versions of `ringImage`.
    let rings: [Resize]

    static func load() throws -> PillowVectors {
        let url = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/pillow-vectors.json")
        return try JSONDecoder().decode(PillowVectors.self, from: Data(contentsOf: url))
    }

    func file(_ name: String) throws -> File {
        guard let file = files.first(where: { $0.name == name }) else { throw CocoaError(.fileNoSuchFile) }
        return file
    }

    /// The source image of `rings`, 160x120 pixels; its rings become finer outwards.
    static var ringImage: RasterImage {
        var image = RasterImage(width: 160, height: 120)
        for y in 0..<120 {
            for x in 0..<160 {
                let square = (x - 80) * (x - 80) + (y - 60) * (y - 60)
                for (channel, step) in [300, 500, 800].enumerated() {
                    image.samples[(y * 160 + x) * 3 + channel] = square / step % 2 == 1 ? 255 : 0
                }
            }
        }
        return image
    }
}
