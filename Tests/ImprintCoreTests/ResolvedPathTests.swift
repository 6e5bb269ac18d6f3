import Foundation
import ImprintCore
import TestSupport
import Testing

/// The test whether a path leads into a folder, which has the folders `photos/cats` and `other`, and a link to `photos`.
@Suite("Resolved paths") struct ResolvedPathTests {
    @Test(
        "A path leads into a folder through links, also if it does not exist yet",
        arguments: [
            ("photos", true), ("photos/cats", true), ("photos/cats/1.jpg", true), ("photos/new/1.jpg", true),
            ("link", true), ("link/new/1.jpg", true), ("other/../photos/new", true), ("./photos//cats/", true),
            ("new/../photos/cats", true), ("photos2", false), ("other", false), ("photos/../other", false),
            ("link/../other", false), ("new/1.jpg", false), ("", false),
        ])
    func inside(path: String, isInside: Bool) throws {
        try withFolders { folder in
            let url = URL(filePath: folder.path + "/" + path)
            for name in ["photos", "link", "photos/", "other/../link"] {
                #expect(url.isInside(URL(filePath: folder.path + "/" + name)) == isInside)
            }
        }
    }

    @Test("A broken link exists, but not the file that it names") func brokenLink() throws {
        try withFolders { folder in
            let link = folder.appending(path: "broken")
            try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "nowhere")
            #expect(exists(link) && exists(folder.appending(path: "photos/")))
            #expect(!exists(folder.appending(path: "nowhere")))
        }
    }

    @Test("Only the folder itself is not strictly inside") func strictly() throws {
        try withFolders { folder in
            let (photos, link) = (folder.appending(path: "photos"), folder.appending(path: "link"))
            #expect(link.isInside(photos) && !link.isInside(photos, strictly: true))
            #expect(link.appending(path: "new").isInside(photos, strictly: true))
            #expect(!folder.isInside(photos, strictly: true))
        }
    }

    @Test("The current folder is inside of its parent folders") func relative() {
        #expect(URL(filePath: "new").isInside(URL(filePath: ".")) && URL(filePath: "new").isInside(URL(filePath: "/")))
        #expect(!URL(filePath: "/").isInside(URL(filePath: "new")))
    }

    private func withFolders(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            for name in ["photos/cats", "other"] {
                try FileManager.default.createDirectory(
                    at: folder.appending(path: name), withIntermediateDirectories: true)
            }
            try FileManager.default.createSymbolicLink(
                at: folder.appending(path: "link"), withDestinationURL: folder.appending(path: "photos"))
            try body(folder)
        }
    }
}
