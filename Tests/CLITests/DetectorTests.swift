import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import TestSupport
import Testing

/// The commands for logo detectors; the tests of the library cover the training itself.
@Suite struct DetectorTests {
    @Test(
        "classify --boxes adds a box for each logo, as text and as JSON", arguments: [["bright"], ["bright", "leaf"]])
    func boxes(logos: [String]) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: logos, to: folder.appending(path: "detector.imprint"))
            let photo = "photos/dark/0.png"
            let json = try imprint("classify", "detector.imprint", photo, "--boxes", "--json", folder: folder)
            #expect(json.status == 0, "\(json.errors)")
            let line = try #require(json.lines.first)
            let labels = (line["observations"] as? [[String: Any]])?.map { $0["label"] as? String }
            let boxes = try #require(line["boxes"] as? [Any])
            #expect(boxes.count == 1 + logos.count && Set(labels ?? []) == Set(["dark"] + logos))
            for (label, box) in zip(labels ?? [], boxes) {
                let sides = (box as? [String: Double]).map { Set($0.keys) }
                #expect(sides == (label == "dark" ? nil : ["x", "y", "width", "height"]))
            }
            let text = try imprint("classify", "detector.imprint", photo, "--boxes", folder: folder)
            #expect(logos.allSatisfy(text.output.contains))
            #expect(text.output.components(separatedBy: " at x ").count == 1 + logos.count)
            let plain = try imprint("classify", "detector.imprint", photo, "--json", folder: folder)
            #expect(plain.lines.first?.keys.sorted() == ["file", "observations"])
            let table = try imprint("inspect", "detector.imprint", folder: folder)
            #expect(table.output.contains("labels       " + logos.joined(separator: ", ") + "; without a logo: dark\n"))
            let evaluated = try imprint("evaluate", "detector.imprint", "photos", "--json", folder: folder)
            #expect((evaluated.lines.last?["labels"] as? [String])?.count == 1 + logos.count, "\(evaluated.errors)")
        }
    }

    @Test(
        "train-detector, and train with --artwork, need photos without a logo",
        arguments: [["train-detector", "--photos", "photos"], ["train", "photos"]])
    func backgroundPhotos(command: [String]) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            let logo = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png")
            let options = ["dark", "bright"].flatMap { ["--artwork", "\($0)=\(logo.path)"] }
            let run = try run(tool, command + ["--output", "m.imprint"] + options, folder: folder)
            #expect(run.status == 1 && run.errors.contains("has no label besides bright, dark"), "\(run.errors)")
        }
    }

    @Test("A folder of photos whose name is similar to a logo is an error, and similar logos give a warning")
    func similarLabels() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            let script = """
                "$imprint" train-detector --photos photos --artwork Dark=\(Self.leaf) --artwork DARK=\(Self.leaf) --output m.imprint
                """
            let run = try shell(script, folder: folder)
            #expect(run.status == 1, "\(run.errors)")
            #expect(run.errors.contains("count as photos without the logo \"Dark\""), "\(run.errors)")
            #expect(run.errors.contains("\"Dark\" and \"DARK\" differ only in case"), "\(run.errors)")
        }
    }

    @Test(
        "draw and detect warn about artwork with similar labels",
        arguments: ["draw --output drawn --count 2", "detect photos/dark/0.png"])
    func similarArtwork(command: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            let run = try shell(
                "$imprint \(command) --artwork Leaf=\(Self.leaf) --artwork 'leaf =\(Self.leaf)'", folder: folder)
            #expect(
                run.status == 0 && run.errors.contains("The labels \"Leaf\" and \"leaf \" differ only in case"),
                "\(run.errors)")
        }
    }

    @Test("classify --boxes and detect need a detector") func noBoxes() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            let photo = "photos/dark/0.png"
            let options = "--epochs 1 --input-size 16 --width 0.25 --output m.imprint"
            #expect(try shell("$imprint train photos \(options)", folder: folder).status == 0)
            let other = try imprint("classify", "m.imprint", photo, "--boxes", folder: folder)
            #expect(other.status == 64)
            #expect(other.errors.contains("expected a detector. Train one with imprint train-detector"))
            let detect = try imprint("detect", "m.imprint", photo, folder: folder)
            #expect(detect.status == 64)
            #expect(detect.errors.contains("expected a detector. Train one with imprint train-detector"))
        }
    }

    @Test("classify --crop-and-scale is an error for a detector") func cropAndScale() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            try writeRandomDetector(logos: ["bright"], to: folder.appending(path: "detector.imprint"))
            let run = try imprint(
                "classify", "detector.imprint", "photos/dark/0.png", "--crop-and-scale", "scale-fit", folder: folder)
            #expect(run.status == 64 && run.output.isEmpty)
            #expect(
                run.errors.contains("--crop-and-scale: detector.imprint is a detector, which has its own rule."),
                "\(run.errors)")
        }
    }

    @Test("detect --artwork finds logos without a model") func matching() throws {
        try withTemporaryFolder { folder in
            let fixtures = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures")
            let leaf = fixtures.appending(path: "artwork-leaf.png")
            let crest = fixtures.appending(path: "artwork-crest.png")
            let backdrops = try Backdrops([], size: 320, seed: 5, workers: Workers(1))
            let compositor = Compositor(
                artworks: [try Artwork(contentsOf: leaf)], backdrops: backdrops, seed: 9,
                configuration: Compositor.Configuration(span: 0.5...0.7, rotatedShare: 0))
            let photos = folder.appending(path: "photos")
            try FileManager.default.createDirectory(at: photos, withIntermediateDirectories: true)
            try ImageFile.write(compositor.positive(0).image, to: photos.appending(path: "a.png"))
            try ImageFile.write(backdrops.background(at: 1, seed: 3), to: photos.appending(path: "b.png"))
            try Data("text".utf8).write(to: photos.appending(path: "c.png"))
            let artwork = ["--artwork", "Leaf=\(leaf.path)", "--artwork", "Crest=\(crest.path)"]
            let found = try run(tool, ["detect", "photos/a.png", "photos"] + artwork + ["--json"], folder: folder)
            #expect(found.status == 1 && found.errors.contains("photos/c.png: expected an image"), "\(found.errors)")
            #expect(found.lines.map { $0["file"] as? String } == ["a", "a", "b", "c"].map { "photos/\($0).png" })
            let detections = found.lines.map { $0["detections"] as? [[String: Any]] }
            #expect(detections[0]?.map { $0["label"] as? String } == ["Leaf"])
            #expect(detections[2]?.isEmpty == true && detections[3] == nil)
            let confidence = try #require(detections[0]?.first?["confidence"] as? Double)
            #expect((0.5...1).contains(confidence))
            let all = try run(tool, ["detect", "photos/a.png", "--threshold", "0", "--json"] + artwork, folder: folder)
            let confidences = all.lines.first?["confidences"] as? [String: Double]
            #expect(all.status == 0 && confidences?.keys.sorted() == ["Crest", "Leaf"], "\(all.errors)")
        }
    }

    @Test("detect --artwork counts, cuts out and exports every occurrence of a logo") func occurrences() throws {
        try withTemporaryFolder { folder in
            let leaf = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png")
            let logo = try #require(try Artwork(contentsOf: leaf).cutOut)
            var photo = RasterImage(width: 640, height: 320, channels: 3, filledWith: 190)
            for left in [40, 360] {
                for row in 0..<logo.height {
                    for column in 0..<logo.width where logo.samples[(row * logo.width + column) * 4 + 3] > 127 {
                        let source = (row * logo.width + column) * 4
                        let target = ((row + 30) * photo.width + left + column) * 3
                        photo.samples.replaceSubrange(target..<(target + 3), with: logo.samples[source..<(source + 3)])
                    }
                }
            }
            try ImageFile.write(photo, to: folder.appending(path: "a.png"))
            let detect = ["detect", "a.png", "--artwork", "Leaf=\(leaf.path)"]
            let found = try run(
                tool, detect + ["--json", "--crop-to", "crops", "--coco", "boxes.json"], folder: folder)
            let line = try #require(found.lines.first)
            #expect(
                found.status == 0 && line.keys.sorted() == ["confidences", "detections", "file"], "\(found.errors)")
            let detections = try #require(line["detections"] as? [[String: Any]])
            let positions = detections.compactMap { ($0["box"] as? [String: Double])?["x"] }.sorted()
            #expect(positions.count == 2 && positions[0] < 0.5 && positions[1] >= 0.5)
            let confidences = try #require(line["confidences"] as? [String: Double])
            #expect(confidences == ["Leaf": try #require(detections[0]["confidence"] as? Double)])
            let crops = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "crops/Leaf").path)
            #expect(crops.count == 2)
            let coco = try JSONSerialization.jsonObject(
                with: Data(contentsOf: folder.appending(path: "boxes.json")))
            #expect(((coco as? [String: Any])?["annotations"] as? [Any])?.count == 2)
            let count = try run(tool, detect + ["--count", "--json"], folder: folder)
            #expect(count.lines.first?["counts"] as? [String: Int] == ["Leaf": 2])
            let table = try run(tool, detect + ["--csv"], folder: folder)
            #expect(table.output.split(separator: "\n").count == 3, "\(table.output)")
        }
    }

    @Test("detect --base needs a convolutional network for photos of any size") func unsuitableBase() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            try brightnessModel(labels: ["dark", "bright"], weights: alternatingWeights(1, labels: 2))
                .write(to: folder.appending(path: "small.imprint"))
            let leaf = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png").path
            let run = try imprint(
                "detect", "photos/dark/0.png", "--artwork", "Leaf=\(leaf)", "--base", "small.imprint", folder: folder)
            #expect(
                run.status == 64 && run.errors.contains("--base small.imprint: the network ")
                    && run.errors.contains("has no feature map for local features"), "\(run.errors)")
        }
    }

    @Test("detect prints the boxes above the threshold, as text and as JSON") func detect() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 4)
            try writeRandomDetector(logos: ["bright", "leaf"], to: folder.appending(path: "detector.imprint"))
            let photos = ["photos/dark/0.png", "photos/bright/1.png"]
            let all = try run(
                tool, ["detect", "detector.imprint", "--threshold", "0", "--json"] + photos, folder: folder)
            #expect(all.status == 0, "\(all.errors)")
            #expect(all.lines.map { $0["file"] as? String } == photos)
            for line in all.lines {
                #expect(line.keys.sorted() == ["detections", "file"])
                let detections = try #require(line["detections"] as? [[String: Any]])
                #expect(Set(detections.compactMap { $0["label"] as? String }) == ["bright", "leaf"])
                let confidences = detections.compactMap { $0["confidence"] as? Double }
                #expect(confidences.count >= 2 && confidences == confidences.sorted(by: >))
                for detection in detections {
                    let box = try #require(detection["box"] as? [String: Double])
                    #expect(box.keys.sorted() == ["height", "width", "x", "y"])
                    #expect(box.values.allSatisfy { (0...1).contains($0) })
                }
            }
            let none = try run(
                tool, ["detect", "detector.imprint", "--threshold", "1", "--json"] + photos, folder: folder)
            #expect(none.lines.allSatisfy { ($0["detections"] as? [Any])?.isEmpty == true })
            let text = try run(tool, ["detect", "detector.imprint", "--threshold", "1"] + photos, folder: folder)
            #expect(text.output == photos.map { "\($0): no logo\n" }.joined())
            let missing = try run(tool, ["detect", "detector.imprint", "missing.jpg", photos[0]], folder: folder)
            #expect(missing.status == 1 && missing.errors.contains("missing.jpg") && missing.output.contains(photos[0]))
        }
    }

    private static let leaf = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png").path

    @Test("Training on artwork only starts with the labels of the logos and none") func trainingOnArtwork() throws {
        try withTemporaryFolder { folder in
            let run = try startDetectorTraining("--artwork Leaf=\(Self.leaf)", folder: folder)
            #expect(run.errors.contains("Training a logo detector from artwork: "), "\(run.errors)")
            #expect(run.errors.contains("parameters, 3 phases."), "\(run.errors)")
            let checkpoint = try Checkpoint(contentsOf: folder.appending(path: "run/checkpoint.safetensors"))
            #expect(checkpoint.labels == ["Leaf", "none"] && checkpoint.state.progress.batch > 0)
        }
    }

    @Test("A logo cannot have a reserved label, in any case", arguments: ["none", "None", "none of these"])
    func reservedLabel(label: String) throws {
        try withTemporaryFolder { folder in
            let run = try imprint(
                "train-detector", "--artwork", "\(label)=\(Self.leaf)", "--output", "m.imprint", folder: folder)
            #expect(run.status == 64, "\(run.errors)")
            #expect(
                run.errors.contains("--artwork \(label)=…: this label is reserved for photos without a logo"),
                "\(run.errors)")
        }
    }

    @Test(
        "Without photos, options about photos are errors",
        arguments: ["--validation 0.2", "--random-split", "--rehearsal 8", "--validation 0.2 --backgrounds drawn"])
    func photoOptions(options: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell(
                "$imprint train-detector --artwork Leaf=\(Self.leaf) --output m.imprint \(options)", folder: folder)
            let option = options.prefix { $0 != " " }
            #expect(run.status == 64 && run.errors.contains("\(option): there are no photos"), "\(run.errors)")
        }
    }

    @Test(
        "The outputs and the base model are checked before the photos with boxes are read",
        arguments: [
            ("--output nowhere/m.imprint", "nowhere"), ("--output m.imprint --report nowhere/r.html", "nowhere"),
            ("--output m.imprint --base absent.imprint", "absent.imprint"),
        ])
    func earlyChecks(options: String, name: String) throws {
        try withTemporaryFolder { folder in
            let run = try shell("$imprint train-detector --annotations missing.json \(options)", folder: folder)
            #expect(run.status == 1 && run.errors.contains(name), "\(run.errors)")
            #expect(!run.errors.contains("missing.json"), "\(run.errors)")
        }
    }

    @Test("A folder of backgrounds without photos is an error that names the option") func emptyBackgrounds() throws {
        try withTemporaryFolder { folder in
            let run = try shell(
                "mkdir empty; $imprint train-detector --artwork Leaf=\(Self.leaf) --backgrounds empty --output m.imprint",
                folder: folder)
            #expect(run.status == 1 && run.errors.contains("--backgrounds: "), "\(run.errors)")
            #expect(run.errors.contains("empty: expected a folder of photos, but it holds none."), "\(run.errors)")
        }
    }

    @Test(
        "A detector trains with photos in any folders",
        arguments: ["--photos photos", "--backgrounds photos/dark"])
    func trainingOnPhotos(options: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 6)
            let run = try startDetectorTraining("--artwork Leaf=\(Self.leaf) \(options)", folder: folder)
            #expect(run.errors.contains("Training a logo detector from artwork: "), "\(run.errors)")
            #expect(run.errors.contains(" photos of 1 label (Leaf) and without a logo: "), "\(run.errors)")
            let checkpoint = try Checkpoint(contentsOf: folder.appending(path: "run/checkpoint.safetensors"))
            #expect(checkpoint.labels == ["Leaf", "none"] && checkpoint.state.progress.batch > 0)
        }
    }

    @Test("Resuming a detector's checkpoint with train is an error that names train-detector") func otherKindOfModel()
        throws
    {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 6)
            try FileManager.default.createDirectory(
                at: folder.appending(path: "run"), withIntermediateDirectories: true)
            var builder = NetworkBuilder(name: "line", input: TensorShape(channels: 1))
            builder.add(Dense(outputChannels: 1), named: "line")
            try Checkpoint(
                network: builder.network(), labels: ["Leaf", "none"], settings: ["backgrounds": "drawn patterns"],
                images: .init(digests: [], training: [], validation: [], leakage: nil),
                state: TrainingState(
                    progress: TrainingProgress(learningRate: 0.1, plannedRounds: 1), parameters: [1, 2],
                    optimizer: ["firstMoments": [3, 4], "secondMoments": [5, 6]])
            ).write(to: folder.appending(path: "run/checkpoint.safetensors"))
            let run = try shell(
                "$imprint train photos --output m.imprint --input-size 16 --width 0.25 --checkpoint run --resume",
                folder: folder)
            #expect(run.status == 64 && run.errors.contains("it was a detector and is now a classifier"))
            #expect(run.errors.contains("imprint train-detector --resume continues the run."), "\(run.errors)")
        }
    }

    @Test(
        "With boxes, the photos of --backgrounds are only backgrounds of composites, and drawn selects drawn patterns",
        arguments: [("drawn", "drawn patterns"), ("photos/bright", "3 photos ")])
    func backgroundsWithBoxes(backgrounds: String, description: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 6)
            let images = (0..<3).map { "{\"id\": \($0), \"file_name\": \"\($0).png\"}" }.joined(separator: ", ")
            let box = "{\"id\": 1, \"image_id\": 1, \"category_id\": 7, \"bbox\": [1, 1, 9, 9]}"
            let text =
                "{\"images\": [\(images)], \"annotations\": [\(box)], \"categories\": [{\"id\": 7, \"name\": \"Leaf\"}]}"
            try Data(text.utf8).write(to: folder.appending(path: "photos/dark/boxes.json"))
            let run = try shell(
                """
                $imprint train-detector --artwork Leaf=\(Self.leaf) --annotations photos/dark/boxes.json \
                    --backgrounds \(backgrounds) --validation 0 --output m.imprint --epochs 1 \
                    --checkpoint run --checkpoint-interval 0 &
                while [ ! -e run/checkpoint.safetensors ] && kill -0 $!; do sleep 0.05; done
                kill -INT $!
                wait $!
                """, folder: folder)
            #expect(run.errors.contains("training was stopped too early"), "\(run.errors)")
            #expect(run.errors.contains(" photos of 1 label (Leaf) and without a logo: "), "\(run.errors)")
            let checkpoint = try Checkpoint(contentsOf: folder.appending(path: "run/checkpoint.safetensors"))
            #expect(checkpoint.settings["backgrounds"]?.hasPrefix(description) == true)
            #expect(checkpoint.images.training == (0..<3).map { "annotated/\($0)/\($0).png" })
        }
    }
}
