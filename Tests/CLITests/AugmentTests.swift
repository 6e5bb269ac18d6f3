import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite struct AugmentTests {
    @Test("The contact sheet has a row per photo and a column per epoch, the same for the same seed")
    func contactSheet() throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 10)
            try Data("no picture".utf8).write(to: folder.appending(path: "photos/dark/4.png"))
            let files = try [("a", "1"), ("b", "1"), ("c", "2")].map { name, seed in
                let run = try imprint(
                    "augment", "photos", "--contact-sheet", "\(name).png", "--augment", "flip,rotate,noise,jpeg",
                    "--input-size", "64", "--count", "5", "--epochs", "3", "--seed", seed, "--json", folder: folder)
                #expect(run.status == 0, "\(run.errors)")
                let line = try #require(run.lines.last)
                #expect(line["event"] as? String == "finished")
                #expect((line["images"] as? [String])?.count == 4)
                #expect((line["skipped"] as? [[String: Any]])?.count == 1)
                #expect(line["output"] as? String == "\(name).png")
                return folder.appending(path: "\(name).png")
            }
            let sheet = try ImageFile.decode(files[0])
            #expect((sheet.width, sheet.height) == (4 * 68 + 4 + 12, 4 * 68 + 4))
            #expect(try Data(contentsOf: files[0]) == Data(contentsOf: files[1]))
            #expect(try Data(contentsOf: files[0]) != Data(contentsOf: files[2]))
        }
    }

    @Test("Without --json the rows are named for people")
    func names() throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 2)
            let run = try imprint("augment", "photos", "--contact-sheet", "sheet.png", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.isEmpty)
            #expect(run.errors.contains("photos/bright/0.png") && run.errors.contains("photos/dark/0.png"))
        }
    }

    @Test(
        "Wrong use is refused with what is right",
        arguments: [
            ("--augment spin", "There is no augmentation \"spin\""),
            ("--count 0", "--count is 0, expected 1 to 100"),
            ("--input-size 1024 --count 100 --epochs 100", "more than 100 million pixels"),
        ])
    func wrongUse(options: String, message: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell("$imprint augment photos --contact-sheet s.png \(options)", folder: folder)
            #expect(run.status == 64)
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("A sheet that cannot be written is one clear error")
    func unwritable() throws {
        try withTemporaryFolder { folder in
            try writePictures(to: folder.appending(path: "photos"), count: 2)
            for (name, message) in [("nowhere/s.png", "cannot be written"), ("s.gif", "ends in .jpg, .jpeg or .png")] {
                let run = try imprint("augment", "photos", "--contact-sheet", name, folder: folder)
                #expect(run.status == 1)
                #expect(run.errors.contains(message), "\(run.errors)")
            }
        }
    }
}
