import Foundation
import ImprintCore
import ImprintImages
import ImprintSynthesis
import TestSupport
import Testing

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintTraining

/// Training from artwork, on pictures of a cross and of other things; a few steps of each phase.
@Suite("Training from artwork", .timeLimit(.minutes(5))) struct SpotJobTests {
    /// A red cross on nothing.
    private func writeArtwork(to folder: URL) throws -> Artwork {
        var image = RasterImage(width: 48, height: 48, channels: 4)
        for y in 0..<48 {
            for x in 0..<48 where (16..<32).contains(x) || (16..<32).contains(y) {
                let place = (y * 48 + x) * 4
                (image.samples[place], image.samples[place + 3]) = (200, 255)
            }
        }
        let file = folder.appending(path: "cross.png")
        try ImageFile.write(image, to: file)
        return try Artwork(contentsOf: file)
    }

    /// Writes photos of noise; those of the label "cross" show one.
    private func writePhotos(to folder: URL, labels: [String], count: Int) throws {
        try writeNoise(to: folder, labels: labels, count: count) { label, image, left, top in
            for y in 0..<24 where label == "cross" {
                for x in 0..<24 where (8..<16).contains(x) || (8..<16).contains(y) {
                    let pixel = ((top + y) * 120 + left + x) * 3
                    (image.samples[pixel], image.samples[pixel + 1], image.samples[pixel + 2]) = (200, 0, 0)
                }
            }
        }
    }

    private func run(
        _ folder: URL, _ artwork: Artwork, steps: [Int]? = [2, 2], threads: Int = 1, memoryLimit: Int? = nil,
        checkpoints: CheckpointOptions? = nil, backgrounds: [URL]? = nil,
        onEvent: @escaping (TrainingEvent) -> Void = { _ in }, shouldStop: @escaping () -> Bool = { false }
    ) throws -> TrainingResult {
        try trainDetector(
            ["cross": [artwork]], photos: ImageFolder(at: folder, minimumClasses: 1), backgrounds: backgrounds,
            steps: steps, poolSize: 4, checkpoints: checkpoints, onEvent: onEvent, shouldStop: shouldStop
        ) {
            $0.threads = threads
            $0.memoryLimit = memoryLimit
            $0.validation = .fraction(0.34)
        }
    }

    @Test("A run gives the same file on any number of threads, and stopped and resumed after every step")
    func sameBits() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let whole = try run(photos, artwork)
            let expected = try bytes(of: whole.weights)
            #expect(try bytes(of: run(photos, artwork, threads: 2).weights) == expected)
            // Two photos in memory, or none; the others are read again and again.
            for memoryLimit in [0, 2 * 120 * 90 * 3] {
                #expect(try bytes(of: run(photos, artwork, threads: 2, memoryLimit: memoryLimit).weights) == expected)
            }
            let options = CheckpointOptions(folder: place.appending(path: "run"), interval: .zero, resumes: true)
            var result: TrainingResult?
            for _ in 0..<6 where result?.ending != .completed {
                var steps = 0
                do {
                    result = try run(
                        photos, artwork, checkpoints: options, onEvent: { if case .batch = $0 { steps += 1 } },
                        shouldStop: { steps == 1 })
                } catch ImprintError.stoppedTooEarly {}
            }
            #expect(result?.ending == .completed)
            #expect(try bytes(of: #require(result).weights) == expected)
        }
    }

    @Test("A run does not go on with artwork that looks otherwise, nor with other backgrounds") func otherArtwork()
        throws
    {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["other"], count: 6)
            let options = CheckpointOptions(folder: place.appending(path: "run"), interval: .zero, resumes: true)
            #expect(throws: ImprintError.self) {
                try run(photos, artwork, checkpoints: options, shouldStop: { true })
            }
            let file = place.appending(path: "cross.png")
            var image = try ImageFile.decode(file, keepsAlpha: true)
            for sample in image.samples.indices where sample % 4 == 1 { image.samples[sample] ^= 0x40 }
            try ImageFile.write(image, to: file)
            let other = try Artwork(contentsOf: file)
            #expect(other.name == artwork.name)
            for (artwork, backgrounds) in [(other, nil), (artwork, [])] as [(Artwork, [URL]?)] {
                let error = #expect(throws: ImprintError.self) {
                    try run(photos, artwork, checkpoints: options, backgrounds: backgrounds)
                }
                guard case .checkpointMismatch = try #require(error) else {
                    Issue.record("\(String(describing: error))")
                    continue
                }
            }
        }
    }

    @Test("Behind the logo are the photos without it, others, or drawn patterns") func backgrounds() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["other"], count: 6)
            try writePhotos(to: place.appending(path: "more"), labels: ["drawer"], count: 2)
            let more = try ImageFolder.images(in: place.appending(path: "more"))
            let files = try [nil, [], more].map { try bytes(of: run(photos, artwork, backgrounds: $0).weights) }
            #expect(Set(files).count == 3)
        }
    }

    @Test("Without any photo that shows no logo the run ends; once they are back, it goes on to the same file")
    func lostPhotos() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let expected = try bytes(of: run(photos, artwork).weights)
            let options = CheckpointOptions(folder: place.appending(path: "run"), interval: .zero, resumes: true)
            let (there, gone) = (photos.appending(path: "other"), place.appending(path: "gone"))
            let error = #expect(throws: ImprintError.self) {
                try run(
                    photos, artwork, memoryLimit: 0, checkpoints: options,
                    onEvent: { if case .batch = $0 { try? FileManager.default.moveItem(at: there, to: gone) } })
            }
            let text = try #require(error).description
            #expect(text.contains("other/") && text.contains(".png cannot be read") && text.contains("resume from"))
            try FileManager.default.moveItem(at: gone, to: there)
            #expect(try bytes(of: run(photos, artwork, memoryLimit: 0, checkpoints: options).weights) == expected)
        }
    }

    @Test("More than half of the photos lost end a run") func mostPhotosLost() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let gone = (0..<5).flatMap { ["cross/\($0).png", "other/\($0).png"] }.map { photos.appending(path: $0) }
            let error = #expect(throws: ImprintError.self) {
                try run(
                    photos, artwork, memoryLimit: 0,
                    onEvent: {
                        if case .batch = $0 { for file in gone { try? FileManager.default.removeItem(at: file) } }
                    })
            }
            #expect(try #require(error).description.contains("too few photos were left"))
        }
    }

    @Test("A run that found the logo in photos does not go on where none of them is left") func otherPhases() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let options = CheckpointOptions(folder: place.appending(path: "run"), interval: .zero, resumes: true)
            _ = try? run(photos, artwork, steps: nil, checkpoints: options, shouldStop: { true })
            try FileManager.default.removeItem(at: photos.appending(path: "cross"))
            let error = #expect(throws: ImprintError.self) {
                try run(photos, artwork, steps: nil, checkpoints: options, shouldStop: { true })
            }
            #expect(try #require(error).description.contains("photos of the logo is none, expected some, as before"))
        }
    }

    @Test(
        "A photo that is lost in the middle is told of once and left out; without it, a run also goes on from its checkpoint",
        arguments: [("cross", 1), ("other", 3)])
    func lostPhoto(label: String, steps: Int) throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            let options = CheckpointOptions(folder: place.appending(path: "run"), interval: .zero, resumes: true)
            let gone = photos.appending(path: "\(label)/3.png")
            var told: [String] = []
            func remove(_ event: TrainingEvent) {
                if case .batch = event { try? FileManager.default.removeItem(at: gone) }
                if case .lost(let image) = event { told.append(image.url.lastPathComponent) }
            }
            let result = try run(photos, artwork, memoryLimit: 0, onEvent: remove)
            #expect(result.ending == .completed && told == ["3.png"])
            #expect(result.lost.map(\.url.lastPathComponent) == told && !result.isRepeatable)
            #expect(try !#require(result.evaluation).results.contains { $0.url.path == gone.path })

            try writePhotos(to: photos, labels: ["cross", "other"], count: 6)
            var done = 0
            _ = try? run(
                photos, artwork, memoryLimit: 0, checkpoints: options, onEvent: { if case .batch = $0 { done += 1 } },
                shouldStop: { done == steps })
            try FileManager.default.removeItem(at: gone)
            var resumed: TrainingStart.Resumption?
            let end = try run(photos, artwork, checkpoints: options) {
                if case .started(let start) = $0 { resumed = start.resumed }
            }
            #expect(resumed?.hasSameImages == false && end.ending == .completed && !end.isRepeatable)
        }
    }

    @Test(
        "The model says what and where, alike when it is read back; there need be no photo of the logo",
        arguments: [true, false])
    func model(hasPhotos: Bool) throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: hasPhotos ? ["cross", "other"] : ["other"], count: 6)
            var start: TrainingStart?
            let result = try run(photos, artwork, onEvent: { if case .started(let event) = $0 { start = event } })
            #expect(start?.labels == ["cross", "other"] && start?.network == "logospot")
            let recipe: TrainingRecipe = hasPhotos ? .artworkAndPhotos : .artworkAlone
            #expect(start?.recipe == recipe && result.weights.recipe == recipe)
            #expect(Report(result.weights).html.contains(recipe.summary))
            let record = try #require(result.weights.training)
            #expect(record.seed == 4 && record.epochs == 2)
            if case .detector(let hyperparameters) = record.hyperparameters {
                #expect(hyperparameters.phases?.map(\.learningRate) == [1e-3, 2e-3])
                #expect(hyperparameters.averageDecay == 0.995)
            } else {
                Issue.record("the record of a detector has another trainer's hyperparameters")
            }
            let detector = try #require(result.weights.detector)
            #expect(detector.marks.map(\.label) == ["cross"] && detector.marks.allSatisfy { $0.slope > 0 })
            let file = place.appending(path: "m.imprint")
            try result.weights.write(to: file)
            let classifier = try ImageClassifier(contentsOf: file)
            #expect(classifier.weights.detector == detector)
            let photo = photos.appending(path: "other/0.png")
            let observations = try classifier.classify(photo)
            #expect(Set(observations.map(\.label)) == ["cross", "other"])
            #expect(abs(observations.reduce(0) { $0 + $1.confidence } - 1) < 1e-5)
            let box = try #require(observations.first { $0.label == "cross" }?.box)
            #expect(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1.0001 && box.y + box.height <= 1.0001)
            #expect(observations.first { $0.label == "other" }?.box == nil)
            // The same from memory, and in an evaluation.
            #expect(try classifier.classify(ImageFile.decode(photo)) == observations)
            let grey = RasterImage(width: 90, height: 60, channels: 1, samples: (0..<5400).map { UInt8($0 % 251) })
            let color = RasterImage(width: 90, height: 60, channels: 3, samples: grey.samples.flatMap { [$0, $0, $0] })
            #expect(try classifier.classify(grey) == classifier.classify(color))
            let evaluation = try classifier.evaluate(on: ImageFolder(at: photos, minimumClasses: 1), threads: 2)
            let found = try #require(evaluation.results.first { $0.url.lastPathComponent == "0.png" && $0.label == 1 })
            #expect(found.confidences[0] == observations.first { $0.label == "cross" }?.confidence)
            #expect(throws: ImprintError.noSaliency(network: "logospot")) {
                try classifier.saliency(of: RasterImage(width: 96, height: 96))
            }
            let report = Report(result.weights, evaluation: evaluation).html
            #expect(report.contains("this place, larger") && !report.contains("class=\"missing\""))
        }
    }

    @Test("Other than two labels, and photos of the logo alone, are refused") func labels() throws {
        try withTemporaryFolder { place in
            let artwork = try writeArtwork(to: place)
            let photos = place.appending(path: "photos")
            try writePhotos(to: photos, labels: ["cross"], count: 2)
            func error(_ found: [String]) -> ImprintError {
                .notOneLabelWithoutLogo(found: found, logos: ["cross"], folder: photos.path)
            }
            #expect(throws: error([])) { try run(photos, artwork) }
            try writePhotos(to: photos, labels: ["a", "b"], count: 2)
            #expect(throws: error(["a", "b"])) { try run(photos, artwork) }
        }
    }

    @Test("Pictures of ever new shapes take no more plans than a few") func shapes() throws {
        let network = try Network.logoDetector()
        let scanner = PyramidScanner(
            network, parameters: try Parameters(network, seed: 1), preprocessing: .logoDetector,
            detector: DetectorHead(levels: [48, 96], stride: 16, span: 44, marks: []))
        for width in stride(from: 20, to: 400, by: 20) {
            #expect(try scanner.scan(RasterImage(width: width, height: 60), peaks: 0).allSatisfy { $0.score.isFinite })
            #expect(scanner.plans.count <= 8)
        }
    }
}
