import Foundation
import TestSupport
import Testing

/// A folder with photos in many formats and with files that are damaged or not photos.
@Suite struct HostileFolderTests {
    @Test(
        "Training uses the 500 readable photos and reports the 200 other files, each with its reason",
        .enabled(if: Python.path != nil, "IMPRINT_PYTHON is not set"))
    func hostileFolder() throws {
        try withTemporaryFolder { folder in
            let output = try Python.output(
                of: "CLITests/Fixtures/make-hostile-folder.py", [folder.appending(path: "photos").path, "500", "200"])
            let unreadable = try #require(try JSONSerialization.jsonObject(with: output) as? [String: String])
            #expect(unreadable.count == 200)

            let trained = try imprint(
                "train", "photos", "--output", "m.imprint", "--epochs", "1", "--input-size", "16", "--width", "0.25",
                "--json", folder: folder)
            #expect(trained.status == 0, "\(trained.errors)")
            let finished = try #require(trained.lines.last)
            #expect(finished["images"] as? Int == 500)
            let skipped = try reasons(finished)
            #expect(Set(skipped.keys) == Set(unreadable.keys))
            for (file, kind) in unreadable {
                let reason = try #require(skipped[file])
                #expect(reason.contains(file) && reason.contains(expectedReasons[kind] ?? "?"), "\(kind): \(reason)")
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

    /// A part of the reason for every kind of file that the script creates.
    private let expectedReasons = [
        "empty": "an empty file", "text": "text", "web page": "a web page", "noise": "unknown data",
        "zeros": "unknown data",
        "half of a JPEG": "cut short", "start of a JPEG": "cut short", "only a JPEG marker": "cut short",
        "half of a PNG": "cut short", "PNG without its last chunk": "cut short", "half of a WebP": "cut short",
        "half of a lossless WebP": "cut short", "PNG of 100,000 x 100,000": "100000x100000 pixels",
        "PNG of size zero": "no size", "JPEG of 65,000 x 65,000": "65000x65000 pixels",
        "JPEG of size zero": "cut short", "GIF": "GIF, which is not supported",
        "TIFF": "TIFF, which is not supported", "half of a HEIC": "cut short", "only a PNG signature": "no header",
    ]

    /// Returns the reasons for the skipped files, by label and file name.
    private func reasons(_ line: [String: Any]) throws -> [String: String] {
        let skipped = try #require(line["skipped"] as? [[String: String]])
        return try Dictionary(
            skipped.map { image in
                let file = try #require(image["file"]).split(separator: "/").suffix(2).joined(separator: "/")
                return (file, try #require(image["reason"]))
            }, uniquingKeysWith: { first, _ in first })
    }
}
