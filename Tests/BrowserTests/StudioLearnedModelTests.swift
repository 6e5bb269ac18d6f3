import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintSynthesis
import TestSupport
import Testing

@testable import ImprintStudio
@testable import ImprintTraining

/// The end of a training run in the studio, without a browser.
@Suite("Learned models of the studio") struct StudioLearnedModelTests {
    @Test("A model is in use even if its file cannot be written, and can be downloaded later") func unwritable()
        async throws
    {
        try await withTemporaryFolder { folder in
            let photos = folder.appending(path: "pets")
            try PhotoSamples.write(to: photos)
            // A file, in which no folder can be created.
            let temporary = folder.appending(path: "temporary", directoryHint: .notDirectory)
            try Data("no folder".utf8).write(to: temporary)
            let trainer = ExampleTrainer(
                nil, threads: 1, installer: StudioSamples.installer(folder), temporaryFolder: temporary)
            let source = PhotoSource(
                try ImageFolder(at: photos).items.enumerated().map { index, item in
                    LabelledPhoto(
                        id: index + 1, url: item.url, name: item.url.lastPathComponent,
                        label: item.url.deletingLastPathComponent().lastPathComponent)
                })
            try trainer.start(source, audit: nil, PhotoSamples.configuration()) { _ in }
            while trainer.status.stage == .running { try await Task.sleep(for: .milliseconds(50)) }
            let message = trainer.status.message
            #expect(trainer.status.stage == .learned && message.hasPrefix("Trained on "), "\(message)")
            let note = " The model is in use, but it cannot be downloaded yet: \(temporary.path): cannot be written ("
            #expect(message.contains(note), "\(message)")
            #expect(trainer.classifier?.labels == PhotoSamples.labels && trainer.report != nil)

            let learned = try #require(trainer.learned)
            await #expect(throws: (any Error).self) { try await trainer.file(of: learned) }
            try FileManager.default.removeItem(at: temporary)
            let file = try await trainer.file(of: learned)
            #expect(try ModelFile([UInt8](file), named: "the download").labels == PhotoSamples.labels)
        }
    }

    @Test("A detector of a run that lost its photos is not reported as complete") func lostPhotos() throws {
        let model = try StudioSamples.detector().model
        let photo = URL(filePath: "/photos/a.jpg")
        let object = AnnotatedPhoto.Object(label: "leaf", box: NormalizedRectangle(x: 0, y: 0, width: 1, height: 1))
        let data = DetectorData(
            annotations: BoxAnnotations(
                uncheckedLabels: ["leaf"], photos: [AnnotatedPhoto(url: photo, width: 9, height: 9, objects: [object])]),
            artwork: [:])
        func message(
            _ ending: TrainingResult.Ending, _ error: ImageError? = nil, divergence: ImprintError? = nil
        ) -> String {
            let result = TrainingResult(
                model: model, evaluation: nil, ending: ending, seconds: 1, unreadable: [], photoError: error,
                divergence: divergence, checkpointFailure: nil, isRepeatable: false)
            return ExampleTrainer.message(about: result, data)
        }
        #expect(message(.completed) == "Trained a detector from 1 photo with 1 box.")
        #expect(message(.stopped).hasPrefix("Stopped early, "))
        let reason = ImageError.unreadable(file: photo, reason: "No such file or directory")
        let lost = message(
            .tooFewReadablePhotos,
            .tooManyUnreadable(images: 1, skipped: [SkippedImage(url: photo, reason: reason)]))
        #expect(lost.hasPrefix("Training ended early because too few photos are left: 1 of 1 photos cannot be read, "))
        #expect(lost.contains("The new detector is the best one so far") && lost.hasSuffix("and train again."))
        let diverged = message(.diverged, divergence: .diverged(epoch: 2, learningRate: 1, isDetector: true))
        #expect(diverged.hasPrefix("Training ended early: training diverged in phase 2: "))
        #expect(diverged.hasSuffix(" The new detector is the best one so far, from 1 photo with 1 box."))
    }
}
