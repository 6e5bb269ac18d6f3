import Foundation
import ImprintInterop
import ImprintModel
import TestSupport
import Testing

@Suite struct ExampleTests {
    @Test("TypedModel classifies at least 90 % of new images correctly")
    func typedModel() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(50, in: folder)
            for (label, answer) in [("TwoCircles", "two circles"), ("Other", "something else")] {
                let files = (0..<50).map { images.appending(path: "\(label)/\($0).jpg").path }
                let result = try Examples.run("TypedModel", files)
                #expect(result.status == 0, "\(result.errors)")
                let lines = result.output.split(separator: "\n")
                #expect(lines.count == 50)
                #expect(zip(lines, files).filter { $0 == "\($1): \(answer)" }.count >= 45, "\(result.output)")
            }
        }
    }

    @Test("A model file with other labels than the generated type is an error")
    func exchangedModel() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(1, in: folder)
            // The program looks for its resources in its own folder.
            let (program, resources) = ("TypedModel", "imprint-examples_TypedModel.resources")
            for name in [program, resources] {
                try FileManager.default.copyItem(at: Examples.program(name), to: folder.appending(path: name))
            }
            let model = folder.appending(path: "\(resources)/TwoCircles.imprint")
            let photo = images.appending(path: "TwoCircles/0.jpg").path
            try makeUntrainedModel(labels: ["TwoCircles", "Other"]).write(to: model)
            #expect(try run(folder.appending(path: program), [photo]).status == 0)
            try makeUntrainedModel(labels: ["TwoCircles", "Another"]).write(to: model)
            let exchanged = try run(folder.appending(path: program), [photo])
            #expect(exchanged.status == 1 && exchanged.output.isEmpty)
            #expect(
                exchanged.errors.hasPrefix(
                    "\(model.path): the labels do not match the type TwoCircles (missing: Other; unexpected: Another). "
                ),
                "\(exchanged.errors)")
        }
    }

    @Test("CustomTraining trains with a custom layer and objective, saves the model, loads it and classifies")
    func customTraining() throws {
        try withTemporaryFolder { folder in
            let model = folder.appending(path: "patches.imprint")
            let result = try Examples.run("CustomTraining", [model.path])
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.output.split(separator: "\n")
            try #require(lines.count == 7, "\(result.output)")
            #expect(lines[4].wholeMatch(of: /epoch 5: loss 0\.0\d+, (9\d|100) % correct/) != nil, "\(lines[4])")
            for (line, label) in [(lines[5], "warm"), (lines[6], "cold")] {
                let match = try #require(try Regex("a \(label) patch: \(label) (\\d+) %").wholeMatch(in: line))
                let percent = try #require(match[1].substring.flatMap { Int($0) })
                #expect((50...100).contains(percent), "\(line)")
            }
            // The test process does not register the layer, so it cannot load the model.
            let error = #expect(throws: (any Error).self) { try ModelFile(contentsOf: model) }
            #expect("\(try #require(error))".contains("example.channelGain"), "\(String(describing: error))")
        }
    }

    @Test("An app that imports only Imprint contains no code of ImprintTraining, ImprintInterop or ImprintSynthesis")
    func linkedModules() throws {
        let symbols = try run(
            URL(filePath: "/usr/bin/env"), ["nm", "--defined-only", Examples.program("PhotoLabels").path])
        try #require(symbols.status == 0, "\(symbols.errors)")
        // The mangled name of a declaration begins with its module.
        #expect(symbols.output.contains("$s7Imprint"))
        for module in ["ImprintTraining", "ImprintInterop", "ImprintSynthesis"] {
            let count = symbols.output.split(separator: "\n").count { $0.contains("$s\(module.count)\(module)") }
            #expect(count == 0, "\(count) symbols of \(module)")
        }
    }

    @Test("PhotoLabels prints the five best labels in percent")
    func photoLabels() throws {
        try withTemporaryFolder { folder in
            let photo = try Examples.draw(1, in: folder).appending(path: "TwoCircles/0.jpg").path
            let result = try Examples.run("PhotoLabels", [Examples.model, photo])
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.output.split(separator: "\n")
            try #require(lines.count == 3 && lines[0] == photo)
            #expect(lines[1].wholeMatch(of: /\ +\d\d\.\d %\ \ TwoCircles/) != nil, "\(lines[1])")
            #expect(lines[2].wholeMatch(of: /\ +\d\.\d %\ \ Other/) != nil, "\(lines[2])")
        }
    }

    @Test("PhotoLabels prints categories if the model has them")
    func categories() throws {
        try withTemporaryFolder { folder in
            let photo = try Examples.draw(1, in: folder).appending(path: "TwoCircles/0.jpg").path
            var model = try ModelFile(contentsOf: URL(filePath: Examples.model))
            model.categories = try Categories(["a logo": ["TwoCircles", "Other"]])
            let file = folder.appending(path: "categories.imprint")
            try model.write(to: file)
            let result = try Examples.run("PhotoLabels", [file.path, photo])
            #expect(result.status == 0 && result.output == "\(photo)\n  100.0 %  a logo\n", "\(result)")
        }
    }

    @Test("IsItTheLogo raises its confidence when the logo appears, and drops frames that arrive too fast")
    func isItTheLogo() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(1, in: folder)
            let (other, logo) = (images.appending(path: "Other/0.jpg"), images.appending(path: "TwoCircles/0.jpg"))
            // On a busy machine most frames are dropped, so the logo is in many: the smoothed confidence needs a few of them.
            let frames = [String](repeating: other.path, count: 6) + [String](repeating: logo.path, count: 54)
            let result = try Examples.run("IsItTheLogo", [Examples.model] + frames)
            #expect(result.status == 0, "\(result.errors)")
            let lines = result.output.split(separator: "\n")
            try #require(lines.count >= 2 && lines.count < 60, "\(result.output)")
            #expect(
                lines[0].wholeMatch(of: /no ▲·{40} yes\ \ [01] %\ \ frame 1, 0 dropped/) != nil, "\(lines[0])")
            let last = try #require(
                lines.last?.wholeMatch(of: /no ·*▲·* yes\ \ (\d+) %\ \ frame 60, (\d+) dropped/))
            #expect(Int(last.1)! >= 90 && Int(last.2)! >= 1, "\(result.output)")

            let model = folder.appending(path: "unsure.imprint")
            try makeUntrainedModel(labels: ["a", "b"]).write(to: model)
            let wrong = try Examples.run("IsItTheLogo", [model.path, other.path])
            #expect(wrong.status == 1 && wrong.errors.contains("has no label Other or NoLogo"), "\(wrong)")
        }
    }

    @Test("UploadFilter passes suitable photos, and blocks unsuitable and unreadable photos")
    func uploadFilter() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(1, in: folder)
            let (good, bad) = (images.appending(path: "Other/0.jpg"), images.appending(path: "TwoCircles/0.jpg"))
            let passed = try Examples.run("UploadFilter", [Examples.model, "TwoCircles", good.path])
            #expect(passed.status == 0 && passed.output.hasPrefix("\(good.path): passed, TwoCircles "), "\(passed)")
            let blocked = try Examples.run("UploadFilter", [Examples.model, "TwoCircles", good.path, bad.path])
            #expect(blocked.status == 1 && blocked.output.contains("\(bad.path): blocked, TwoCircles 9"), "\(blocked)")
            try Data("not an image".utf8).write(to: bad)
            let unreadable = try Examples.run("UploadFilter", [Examples.model, "TwoCircles", bad.path])
            #expect(
                unreadable.status == 1 && unreadable.output.contains("blocked, \(bad.path): expected an image"),
                "\(unreadable)")
            let unknown = try Examples.run("UploadFilter", [Examples.model, "nsfw", good.path])
            #expect(
                unknown.status == 64 && unknown.errors.contains("no label nsfw, expected one of Other, TwoCircles"),
                "\(unknown)")
        }
    }

    @Test("AltText suggests an escaped text if the confidence is high enough")
    func altText() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(1, in: folder)
            let photo = folder.appending(path: "a&b \"<1>\"\u{301}.jpg")
            try FileManager.default.moveItem(at: images.appending(path: "TwoCircles/0.jpg"), to: photo)
            let result = try Examples.run("AltText", [Examples.model, photo.path])
            #expect(
                result.output
                    == "<img src=\"\(folder.path)/a&amp;b%20%22%3C1%3E%22%CC%81.jpg\" alt=\"Probably: TwoCircles\">\n",
                "\(result)")
            let model = folder.appending(path: "unsure.imprint")
            try makeUntrainedModel(labels: (1...20).map(String.init)).write(to: model)
            let unsure = try Examples.run("AltText", [model.path, photo.path])
            #expect(
                unsure.status == 0
                    && unsure.output == "\(photo.path): no label with enough confidence; write the text yourself\n",
                "\(unsure)")
        }
    }

    @Test("ObjectCamera classifies each new photo once, and writes a history")
    func objectCamera() throws {
        try withTemporaryFolder { folder in
            let images = try Examples.draw(2, in: folder.appending(path: "drawn"))
            let camera = folder.appending(path: "camera")
            try FileManager.default.createDirectory(at: camera, withIntermediateDirectories: true)
            func addPhoto(_ image: String, as name: String) throws {
                try FileManager.default.copyItem(
                    at: images.appending(path: image), to: camera.appending(path: name))
            }
            func runOnce() throws -> CommandOutput { try Examples.run("ObjectCamera", [Examples.model, camera.path]) }

            #expect(try runOnce().output.isEmpty)
            try addPhoto("TwoCircles/0.jpg", as: "1.jpg")
            try Data("half an image".utf8).write(to: camera.appending(path: "2.jpg"))
            let first = try runOnce()
            #expect(first.status == 0 && first.output.wholeMatch(of: /1\.jpg: TwoCircles \d\d %\n/) != nil, "\(first)")
            #expect(first.errors.contains("2.jpg: expected an image"))
            try FileManager.default.removeItem(at: camera.appending(path: "2.jpg"))
            try addPhoto("Other/0.jpg", as: "2.jpg")
            let second = try runOnce()
            #expect(second.status == 0 && second.output.hasPrefix("2.jpg: Other "), "\(second)")
            #expect(try runOnce().output.isEmpty)

            let history = try String(contentsOf: camera.appending(path: "history.jsonl"), encoding: .utf8)
            let sightings = CommandOutput(status: 0, output: history, errors: "").lines
            #expect(sightings.compactMap { $0["picture"] as? String } == ["1.jpg", "2.jpg"])
            #expect(sightings.compactMap { $0["label"] as? String } == ["TwoCircles", "Other"])
            // With --watch, the program runs until it is terminated.
            try addPhoto("Other/1.jpg", as: "3.jpg")
            let watched = try run(
                URL(filePath: "/bin/sh"),
                [
                    "-c",
                    #"""
                    "$@" > "$0" &
                    while [ ! -s "$0" ] && kill -0 $!; do sleep 0.05; done
                    kill $! && wait
                    cat "$0"
                    """#, folder.appending(path: "watched").path, Examples.program("ObjectCamera").path, Examples.model,
                    camera.path, "--watch",
                ])
            #expect(watched.output.hasPrefix("3.jpg: "), "\(watched)")

            try Data("half a li".utf8).write(to: camera.appending(path: "history.jsonl"))
            let damaged = try runOnce()
            #expect(damaged.status == 1 && damaged.errors.contains("history.jsonl: is damaged"), "\(damaged)")
            for sighting in sightings {
                let time = try #require((sighting["time"] as? String).flatMap { try? Date($0, strategy: .iso8601) })
                #expect(abs(time.timeIntervalSinceNow) < 3600)
            }
        }
    }

    @Test(
        "Missing arguments are one line of usage and exit code 64",
        arguments: ["IsItTheLogo", "PhotoLabels", "UploadFilter", "AltText", "ObjectCamera", "TypedModel", "MyLabels"])
    func missingArguments(program: String) throws {
        let result = try Examples.run(program, [])
        #expect(result.status == 64 && result.output.isEmpty)
        #expect(result.errors.hasPrefix("usage: \(program) ") && result.errors.split(separator: "\n").count == 1)
    }

    @Test(
        "A missing model is an error with its path",
        arguments: ["IsItTheLogo", "PhotoLabels", "UploadFilter", "AltText", "ObjectCamera"])
    func missingModel(program: String) throws {
        try withTemporaryFolder { folder in
            let model = folder.appending(path: "none.imprint").path
            let result = try Examples.run(program, [model] + (program == "UploadFilter" ? ["a"] : []) + [folder.path])
            #expect(
                result.status == 1 && result.output.isEmpty && result.errors.hasPrefix("\(model): cannot be read"),
                "\(result)")
        }
    }

    /// Whether the reference data contains the photos and third-party models.
    private static let hasReference =
        ReferenceData.has("models/EfficientNetLite0.mlmodel") && ReferenceData.has("models/Nudity.mlmodel")
        && ReferenceData.has("data/viget-train/VigetLogo")

    @Test(
        "The examples classify real photos with third-party models",
        .enabled(if: hasReference, "the reference photos and models are missing")
    )
    func realPhotos() throws {
        try withTemporaryFolder { folder in
            let photos = ReferenceData.folder.appending(path: "data/viget-train/VigetLogo")
            let names = try FileManager.default.contentsOfDirectory(atPath: photos.path).sorted().prefix(3)
            let files = names.map { photos.appending(path: $0).path }
            func imported(_ name: String) throws -> String {
                let model = folder.appending(path: "\(name).imprint")
                try ModelImporter().read(ReferenceData.folder.appending(path: "models/\(name).mlmodel")).model.write(
                    to: model)
                return model.path
            }
            let objects = try imported("EfficientNetLite0")
            let labels = try ModelFile(contentsOf: URL(filePath: objects)).labels
            let seen = try Examples.run("PhotoLabels", [objects] + files)
            #expect(seen.status == 0, "\(seen.errors)")
            let lines = seen.output.split(separator: "\n").map(String.init)
            try #require(lines.count == 6 * files.count)
            for (index, file) in files.enumerated() {
                #expect(lines[6 * index] == file)
                let best = lines[(6 * index + 1)..<(6 * index + 6)]
                #expect(best.allSatisfy { line in labels.contains { line.hasSuffix("%  \($0)") } }, "\(best)")
            }
            let texts = try Examples.run("AltText", [objects] + files)
            #expect(texts.status == 0 && texts.output.split(separator: "\n").count == files.count, "\(texts)")
            let upload = try Examples.run("UploadFilter", [try imported("Nudity"), "NSFW"] + files)
            #expect(
                upload.status == 0
                    && upload.output.split(separator: "\n").allSatisfy { $0.contains(": passed, NSFW ") },
                "\(upload)")
            let gauge = try Examples.run("IsItTheLogo", [Examples.model] + files)
            #expect(gauge.status == 0 && gauge.output.contains("▲"), "\(gauge)")
            let typed = try Examples.run("TypedModel", files)
            #expect(typed.status == 0 && typed.output.split(separator: "\n").count == files.count, "\(typed)")
            let camera = folder.appending(path: "camera")
            try FileManager.default.createDirectory(at: camera, withIntermediateDirectories: true)
            for name in names {
                try FileManager.default.copyItem(at: photos.appending(path: name), to: camera.appending(path: name))
            }
            let sightings = try Examples.run("ObjectCamera", [objects, camera.path])
            #expect(
                sightings.status == 0 && sightings.output.split(separator: "\n").count == names.count, "\(sightings)")
        }
    }
}
