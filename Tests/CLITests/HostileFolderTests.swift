import Foundation
import TestSupport
import Testing

/// A folder as it may come out of a drawer: among photos of many kinds lie files that are none, or no longer.
@Suite struct HostileFolderTests {
    @Test(
        "Training takes the 500 good photos and names the 200 bad files, each with its reason",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON names no Python"))
    func hostileFolder() throws {
        try withTemporaryFolder { folder in
            let made = try Python.output(
                of: "CLITests/Fixtures/make-hostile-folder.py", [folder.appending(path: "photos").path, "500", "200"])
            let wrong = try #require(try JSONSerialization.jsonObject(with: made) as? [String: String])
            #expect(wrong.count == 200)

            let trained = try imprint(
                "train", "photos", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", "--width", "0.25",
                "--json", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
            let finished = try #require(trained.lines.last)
            #expect(finished["images"] as? Int == 500)
            let skipped = try reasons(finished)
            #expect(Set(skipped.keys) == Set(wrong.keys))
            for (file, kind) in wrong {
                let reason = try #require(skipped[file])
                #expect(reason.contains(file) && reason.contains(expectedWords[kind] ?? "?"), "\(kind): \(reason)")
            }

            let evaluated = try imprint("evaluate", "m.imprint", "photos", "--json", folder: folder)
            #expect(try reasons(#require(evaluated.lines.first)).count == 200)
            let audited = try imprint("audit", "photos", folder: folder)
            #expect(audited.status == 0, "\(audited.errors)")
            let prepared = try imprint(
                "prepare", "photos", "--output", "small", "--size", "24", "--json", folder: folder)
            #expect(try #require(prepared.lines.last)["images"] as? Int == 500, "\(prepared.errors)")
        }
    }

    /// What the reason says, for every kind of bad file that the script makes.
    private let expectedWords = [
        "empty": "an empty file", "text": "text", "a page": "a web page", "noise": "unknown data",
        "zeros": "unknown data",
        "half a JPEG": "cut short", "the head of a JPEG": "cut short", "a JPEG's mark alone": "cut short",
        "half a PNG": "cut short", "a PNG without its end": "cut short", "half a WebP": "cut short",
        "half a lossless WebP": "cut short", "a PNG of 100,000 x 100,000": "100000x100000 pixels",
        "a PNG of no size": "no size", "a JPEG of 65,000 x 65,000": "65000x65000 pixels",
        "a JPEG of no size": "cut short", "a GIF": "GIF, which is not supported",
        "a TIFF": "TIFF, which is not supported", "half a HEIC": "cut short", "nothing but a signature": "no header",
    ]

    /// The reasons of what was skipped, by label and name of the file.
    private func reasons(_ line: [String: Any]) throws -> [String: String] {
        let skipped = try #require(line["skipped"] as? [[String: String]])
        return try Dictionary(
            skipped.map { image in
                let file = try #require(image["file"]).split(separator: "/").suffix(2).joined(separator: "/")
                return (file, try #require(image["reason"]))
            }, uniquingKeysWith: { first, _ in first })
    }
}
