import Foundation
import ImprintImages
import TestSupport
import Testing

@Suite("Rejected photos in commands") struct NoveltyCommandTests {
    /// Calls `body` with a folder of a trained model, m.imprint, its photos, and a folder "unknown" of plain colours.
    private func withModel(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            for label in ["bright", "dark"] {
                let photos = folder.appending(path: "photos/\(label)")
                try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
                for index in 0..<15 {
                    var image = RasterImage(width: 16, height: 16)
                    for sample in image.samples.indices {
                        let noise = (sample * 31 + index * 17 + sample * sample % 13) % 60
                        image.samples[sample] = UInt8(noise + (label == "bright" ? 150 : 20))
                    }
                    try ImageFile.write(image, to: photos.appending(path: "\(index).png"))
                }
            }
            let unknown = folder.appending(path: "unknown/deep")
            try FileManager.default.createDirectory(at: unknown, withIntermediateDirectories: true)
            for (index, color) in [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 0]].enumerated() {
                var image = RasterImage(width: 16, height: 16)
                for sample in image.samples.indices {
                    image.samples[sample] = sample / 3 / (1 + index) % 2 == 0 ? UInt8(color[sample % 3]) : 0
                }
                try ImageFile.write(image, to: unknown.appending(path: "\(index).png"))
            }
            let run = try shell(
                "$imprint train photos --output m.imprint --network logonet --width 0.1 --input-size 16 --epochs 3 --validation 0",
                folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            try body(folder)
        }
    }

    @Test("classify reports rejected photos in text and JSON, and --accept-all shows their labels") func classify()
        throws
    {
        try withModel { folder in
            let json = try shell(
                "$imprint classify m.imprint unknown/deep/*.png photos/dark/*.png --json", folder: folder)
            let lines = json.lines
            #expect(lines.count == 19)
            var rejected: [String] = []
            for line in lines {
                let novelty = try #require(line["novelty"] as? Double)
                let isRejected = try #require(line["rejected"] as? Bool)
                #expect(isRejected == (novelty > 1))
                #expect((line["observations"] as? [Any])?.count == 2)
                if isRejected { rejected.append(try #require(line["file"] as? String)) }
            }
            let file = try #require(rejected.first { $0.hasPrefix("unknown") })
            #expect(rejected.count { $0.hasPrefix("photos") } <= 2)
            let text = try shell("$imprint classify m.imprint \(file)", folder: folder).output
            #expect(text.hasPrefix("\(file): none of these, closest ") && text.hasSuffix(" %\n"))
            let csv = try shell("$imprint classify m.imprint \(file) --csv", folder: folder).output
            #expect(csv.hasPrefix("file,rank,label,confidence,error,novelty,rejected\n\(file),,,,,"), "\(csv)")
            #expect(csv.hasSuffix(",true\n") && csv.split(separator: "\n").count == 2)
            let all = try shell("$imprint classify m.imprint \(file) --accept-all", folder: folder).output
            #expect(all.contains("bright ") && all.contains("dark ") && !all.contains("none of these"))
            let line = try #require(
                try shell("$imprint classify m.imprint \(file) --accept-all --json", folder: folder).lines.first)
            #expect(line["rejected"] as? Bool == false && line["novelty"] as? Double ?? 0 > 1)
        }
    }

    @Test("evaluate --unknown reports the share of accepted photos, and inspect shows the rule") func evaluate() throws
    {
        try withModel { folder in
            let text = try shell("$imprint evaluate m.imprint photos --unknown unknown", folder: folder).output
            let last = try #require(text.split(separator: "\n").last)
            #expect(last.hasPrefix("unknown photos: accepted ") && last.contains(" of 4 ("))
            let line = try #require(
                try shell("$imprint evaluate m.imprint photos --unknown unknown --json", folder: folder).lines.last)
            let unknown = try #require(line["unknown"] as? [String: Any])
            let accepted = try #require(unknown["accepted"] as? Int)
            #expect(unknown["images"] as? Int == 4 && unknown["acceptedShare"] as? Double == Double(accepted) / 4)
            #expect(last.contains("accepted \(accepted) of 4"))
            let plain = try #require(
                try shell("$imprint evaluate m.imprint photos --json", folder: folder).lines.last)
            #expect(plain["unknown"] == nil)
            #expect(
                try shell("$imprint inspect m.imprint", folder: folder).output.contains(
                    "\nnovelty      accepts 95.0 % of 30 "))
            let inspection = try #require(try shell("$imprint inspect m.imprint --json", folder: folder).lines.first)
            #expect((inspection["novelty"] as? [String: Any])?["images"] as? Int == 30)
        }
    }

    @Test("evaluate --unknown rejects a folder with labelled photos, which are in a folder or a list") func labelled()
        throws
    {
        try withModel { folder in
            try Data("photo,label\nphotos/dark/0.png,dark\n".utf8).write(to: folder.appending(path: "list.csv"))
            try FileManager.default.createSymbolicLink(
                atPath: folder.appending(path: "link").path, withDestinationPath: "photos")
            let links = folder.appending(path: "links")
            try FileManager.default.createDirectory(at: links, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(
                atPath: links.appending(path: "a.png").path, withDestinationPath: "../photos/dark/0.png")
            for (labelled, unknown) in [
                ("photos", "photos"), ("photos", "."), ("photos", "photos/dark"), ("photos", "link"),
                ("photos", "links"),
                ("list.csv", "photos/dark"),
            ] {
                let run = try shell("$imprint evaluate m.imprint \(labelled) --unknown \(unknown)", folder: folder)
                #expect(run.status == 64 && run.output.isEmpty, "\(run.output)")
                let text = "--unknown: \(unknown): the folder contains the labelled photo "
                #expect(run.errors.contains(text) && run.errors.contains("/0.png, expected only"), "\(run.errors)")
            }
            let run = try shell("$imprint evaluate m.imprint list.csv --unknown photos/bright", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
        }
    }

    @Test("evaluate --unknown --json lists the unreadable photos of each set") func unreadable() throws {
        try withModel { folder in
            try Data("no image".utf8).write(to: folder.appending(path: "unknown/broken.png"))
            let run = try shell("$imprint evaluate m.imprint photos --unknown unknown --json", folder: folder)
            let line = try #require(run.lines.last)
            #expect((line["skipped"] as? [Any])?.isEmpty == true)
            let unknown = try #require(line["unknown"] as? [String: Any])
            #expect(unknown["images"] as? Int == 4)
            let skipped = try #require(unknown["skipped"] as? [[String: String]])
            #expect(skipped.map { $0["file"]?.hasSuffix("unknown/broken.png") } == [true])
            #expect(skipped.first?["reason"]?.contains("expected an image") == true, "\(skipped)")
        }
    }

    @Test("evaluate --unknown fails for a model without a rule, and for a folder without photos") func refused() throws
    {
        try withModel { folder in
            try FileManager.default.createDirectory(
                at: folder.appending(path: "empty"), withIntermediateDirectories: true)
            let empty = try shell("$imprint evaluate m.imprint photos --unknown empty", folder: folder)
            #expect(empty.status != 0 && empty.errors.contains("empty"))
            // The folder is checked before the labelled photos.
            let absent = try shell("$imprint evaluate m.imprint no-photos --unknown absent", folder: folder)
            #expect(absent.status == 1 && absent.errors.contains("absent"), "\(absent.errors)")
            #expect(!absent.errors.contains("no-photos"), "\(absent.errors)")
            // Four photos are too few to calibrate a threshold.
            let run = try shell(
                """
                mkdir -p few/bright few/dark && cp photos/bright/[01].png few/bright && cp photos/dark/[01].png few/dark &&
                $imprint train few --output few.imprint --network logonet --width 0.1 --input-size 16 --epochs 1 --validation 0 2>/dev/null &&
                $imprint classify few.imprint photos/dark/1.png --json && $imprint evaluate few.imprint photos --unknown unknown
                """, folder: folder)
            #expect(run.status == 64 && run.errors.contains("has no novelty rule"))
            #expect(!run.output.contains("novelty") && !run.output.contains("rejected"))
        }
    }
}
