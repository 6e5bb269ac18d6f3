import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite struct AugmentTests {
    @Test("The contact sheet has a row per photo and a column per epoch, and depends only on the seed")
    func contactSheet() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 10)
            try Data("not an image".utf8).write(to: folder.appending(path: "photos/dark/4.png"))
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

    @Test("Without --json, the text output lists the photos of the rows")
    func names() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            let run = try imprint("augment", "photos", "--contact-sheet", "sheet.png", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.isEmpty)
            #expect(run.errors.contains("photos/bright/0.png") && run.errors.contains("photos/dark/0.png"))
        }
    }

    @Test(
        "Invalid options are usage errors that state the expected value",
        arguments: [
            ("--augment spin", "There is no augmentation \"spin\""),
            ("--augment none,flip", "--augment: \"none\" means no augmentation and cannot be combined with others"),
            ("--count 0", "--count is 0, expected 1 to 100"),
            ("--input-size 1024 --count 100 --epochs 100", "more than 100 million pixels"),
            ("--artwork Logo=logo.png", "Expected DATA or --artwork, found both"),
            ("--artwork logo.png", "--artwork"), ("--artwork =logo.png", "--artwork"),
            ("--backgrounds photos", "--artwork LABEL=FILE, which is missing"),
            ("--cut-out c.png", "--cut-out: there are 0 options --artwork, expected one"),
        ])
    func wrongUse(options: String, message: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell("$imprint augment photos --contact-sheet s.png \(options)", folder: folder)
            #expect(run.status == 64)
            #expect(run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("With artwork, the rows show composites and hard negatives, and depend only on the seed")
    func artwork() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeLogo(to: folder.appending(path: "logo.png"))
            for (name, seed, threads) in [("a", "1", "1"), ("b", "1", "3"), ("c", "2", "2")] {
                let run = try imprint(
                    "augment", "--artwork", "Logo=logo.png", "--artwork", "Logo=logo.png", "--artwork",
                    "Circles=\(packageFolder.path)/datasets/two-circles.json", "--backgrounds", "photos",
                    "--contact-sheet", "\(name).png", "--input-size", "64", "--count", "2", "--epochs", "5", "--seed",
                    seed, "--threads", threads, "--json", folder: folder)
                #expect(run.status == 0, "\(run.errors)")
                let rows = try #require(run.lines.last?["rows"] as? [[String: Any]])
                #expect(rows.map { $0["label"] as? String } == ["Logo", "Logo", "Circles", "Circles"])
                #expect(rows.map { $0["showsLogo"] as? Bool } == [true, false, true, false])
                #expect(rows.allSatisfy { ($0["kinds"] as? [String])?.count == 5 })
            }
            let sheets = ["a", "b", "c"].map { folder.appending(path: "\($0).png") }
            let sheet = try ImageFile.decode(sheets[0])
            #expect((sheet.width, sheet.height) == (5 * 68 + 4, 4 * 68 + 4))
            #expect(try Data(contentsOf: sheets[0]) == Data(contentsOf: sheets[1]))
            #expect(try Data(contentsOf: sheets[0]) != Data(contentsOf: sheets[2]))
            let plain = try imprint(
                "augment", "--artwork", "Logo=logo.png", "--contact-sheet", "d.png", "--count", "2", folder: folder)
            #expect(plain.status == 0 && plain.errors.contains("Logo, hard negatives: "), "\(plain.errors)")
        }
    }

    @Test("The cut-out is the logo without its background")
    func cutOut() throws {
        try withTemporaryFolder { folder in
            var image = RasterImage(width: 120, height: 90, filledWith: 240)
            for y in 20..<70 {
                for x in 30..<100 {
                    image.samples.replaceSubrange((3 * (y * 120 + x))..<(3 * (y * 120 + x) + 3), with: [200, 20, 20])
                }
            }
            try ImageFile.write(image, to: folder.appending(path: "logo.png"))
            func augment(_ options: String...) throws -> CommandOutput {
                try run(
                    tool, ["augment", "--contact-sheet", "s.png", "--count", "1", "--epochs", "1"] + options,
                    folder: folder)
            }
            let output = try augment("--artwork", "Logo=logo.png", "--cut-out", "cut.png")
            #expect(
                output.status == 0 && output.errors.contains("Wrote cut.png, the logo as Imprint uses it"),
                "\(output.errors)")
            let cutOut = try ImageFile.decode(folder.appending(path: "cut.png"), keepsAlpha: true)
            #expect(
                cutOut
                    == RasterImage(
                        width: 70, height: 50, channels: 4,
                        samples: Array(repeating: [200, 20, 20, 255], count: 3500).flatMap { $0 }))
            // The cut-out can be replaced, but not the artwork or another file of the user.
            #expect(try augment("--artwork", "Logo=logo.png", "--cut-out", "cut.png").status == 0)
            let wrong = [
                ("logo.png", "the file is the artwork"), ("s.png", "names the same file"),
                ("cut.jpg", "has no transparency, expected a name that ends in .png"),
            ]
            for (file, message) in wrong {
                let output = try augment("--artwork", "Logo=logo.png", "--cut-out", file)
                #expect(output.status == 64 && output.errors.contains(message), "\(output.errors)")
            }
            let recipe = try augment("--artwork", "Logo=two-circles", "--cut-out", "cut.png")
            #expect(recipe.status == 64 && recipe.errors.contains("two-circles is a recipe"), "\(recipe.errors)")
        }
    }

    @Test(
        "Options that only affect photos are an error with artwork",
        arguments: [
            (["--augment", "blur"], "--augment"), (["--crop-and-scale", "scale-fit"], "--crop-and-scale"),
            (["--augment", "none", "--crop-and-scale", "center-crop"], "--augment and --crop-and-scale"),
        ])
    func photoOptions(options: [String], named: String) throws {
        try withTemporaryFolder { folder in
            let output = try run(
                tool, ["augment", "--artwork", "Leaf=leaf.png", "--contact-sheet", "s.png"] + options, folder: folder)
            #expect(output.status == 64)
            #expect(
                output.errors.contains(
                    "\(named): expected only with a folder of photos, not with --artwork. Leave out \(named)."))
        }
    }

    @Test("Unusable artwork and backgrounds are one error")
    func badArtwork() throws {
        try withTemporaryFolder { folder in
            try writeLogo(to: folder.appending(path: "logo.png"))
            try ImageFile.write(
                RasterImage(width: 40, height: 40, filledWith: 90), to: folder.appending(path: "plain.png"))
            try FileManager.default.createDirectory(
                at: folder.appending(path: "empty"), withIntermediateDirectories: true)
            try #require(mkfifo(folder.appending(path: "pipe").path, 0o600) == 0)
            try Data("a text".utf8).write(to: folder.appending(path: "notes"))
            try Data("{\"images\": [], \"annotations\": []}".utf8).write(to: folder.appending(path: "coco.json"))
            for (options, message) in [
                (["Logo=pipe"], "pipe cannot be read: it is a pipe, expected a regular file"),
                (["Logo=notes"], "notes: expected an image (JPEG, PNG, WebP or HEIC) or an SVG drawing, found text"),
                (["Logo=empty"], "There is no recipe"), (["Logo=coco.json"], "imprint train-detector --annotations"),
                (["Logo=nothing.png"], "nothing.png cannot be read"), (["Logo=no-recipe"], "There is no recipe"),
                (["Logo=plain.png"], "plain.png: the image contains no logo"),
                (["Logo=logo.png", "--backgrounds", "empty"], "it holds none"),
                (["Logo=logo.png", "--backgrounds", "logo.png"], "it is a file"),
                (["Logo=logo.png", "--backgrounds", "nowhere"], "it does not exist"),
            ] {
                let run = try run(tool, ["augment", "--contact-sheet", "s.png", "--artwork"] + options, folder: folder)
                #expect(run.status == (message == "There is no recipe" ? 64 : 1))
                #expect(run.errors.contains(message), "\(run.errors)")
            }
        }
    }

    @Test("Artwork without transparency is composited unchanged, with a warning, even with --quiet")
    func photoAsArtwork() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 1)
            let run = try imprint(
                "augment", "--artwork", "Logo=photos/bright/0.png", "--backgrounds", "drawn", "--contact-sheet",
                "s.png",
                "--count", "1", "--epochs", "3", "--json", "--quiet", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.errors.contains("0.png has no transparency"), "\(run.errors)")
            let row = try #require((run.lines.last?["rows"] as? [[String: Any]])?.first)
            #expect(row["kinds"] as? [String] == ["own colours", "own colours", "own colours"])
        }
    }

    /// Writes a red disc with a tail on a transparent background.
    private func writeLogo(to file: URL) throws {
        var logo = RasterImage(width: 60, height: 60, channels: 4)
        for y in 0..<60 {
            for x in 0..<60 where (x - 20) * (x - 20) + (y - 20) * (y - 20) < 300 || (y > 30 && abs(x - y) < 5) {
                for (channel, sample) in [200, 20, 20, 255].enumerated() {
                    logo.samples[(y * 60 + x) * 4 + channel] = UInt8(sample)
                }
            }
        }
        try ImageFile.write(logo, to: file)
    }

    @Test("A contact sheet that cannot be written is one error")
    func unwritable() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            for (name, status, message) in [
                ("nowhere/s.png", 1, "cannot be written"), ("s.gif", 64, "ends in .png, .jpg or .jpeg"),
            ] {
                let run = try imprint("augment", "photos", "--contact-sheet", name, folder: folder)
                #expect(run.status == status)
                #expect(run.errors.contains(message), "\(run.errors)")
            }
        }
    }
}
