import Foundation
import ImprintImages
import TestSupport

/// What Pillow decodes and resizes; Fixtures/make-pillow-vectors.py made it.
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

    static func load() throws -> PillowVectors {
        let url = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/pillow-vectors.json")
        return try JSONDecoder().decode(PillowVectors.self, from: Data(contentsOf: url))
    }

    func file(_ name: String) throws -> File {
        guard let file = files.first(where: { $0.name == name }) else { throw CocoaError(.fileNoSuchFile) }
        return file
    }
}
