import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintTraining
import TestSupport
import Testing

/// Tests of runs that resume from checkpoints of earlier versions, which lack some metadata.
@Suite("Older checkpoints") struct OlderCheckpointTests {
    /// Removes the identities and the counts of the images, and the images of the best parameters, from a checkpoint.
    private func makeOlder(_ file: URL) throws {
        let checkpoint = try Checkpoint(contentsOf: file)
        var images = checkpoint.images
        images.identities = nil
        images.trainingCounts = nil
        try Checkpoint(
            network: checkpoint.network, labels: checkpoint.labels, settings: checkpoint.settings, images: images,
            state: checkpoint.state
        ).write(to: file)
    }

    @Test(
        "Without identities, a run resumes if all of its photos are edited, but not if most are missing",
        arguments: [true, false])
    func identities(renames: Bool) throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                _ = try train(folder, quickTraining(epochs: 1), checkpoints: options)
                try makeOlder(file)
                for label in ["left", "right"] {
                    for index in 0..<(renames && label == "right" ? 1 : 8) {
                        let photo = folder.appending(path: "\(label)/\(index).png")
                        if renames {
                            try FileManager.default.moveItem(at: photo, to: photo.appendingPathExtension("png"))
                        } else {
                            try ImageFile.write(RasterImage(width: 40, height: 30, filledWith: 90), to: photo)
                        }
                    }
                }
                if renames {
                    #expect(throws: ImprintError.checkpointOfOtherPhotos(file: file.path, kept: 7, of: 16)) {
                        try train(folder, quickTraining(epochs: 2), checkpoints: options)
                    }
                } else {
                    let model = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                    #expect(model.training?.history.count == 2)
                }
            }
        }
    }

    @Test("A run continues that an earlier version has resumed with other photos and stopped within an epoch")
    func imagesOfBest() throws {
        try withImages(perLabel: 8) { folder in
            try withTemporaryFolder { scratch in
                let options = CheckpointOptions(folder: scratch, resumes: true)
                let file = scratch.appending(path: CheckpointOptions.fileName)
                let first = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                try FileManager.default.copyItem(
                    at: folder.appending(path: "left/0.png"), to: folder.appending(path: "left/new.png"))
                var batches = 0
                _ = try train(
                    folder, quickTraining(epochs: 3), checkpoints: options, shouldStop: { batches == 1 },
                    onEvent: { if case .batch = $0 { batches += 1 } })
                #expect(try Checkpoint(contentsOf: file).imagesOfBest != nil)
                try makeOlder(file)
                // The photos of the best epoch are unknown, so the model has the digest of the current ones, and no counts.
                let model = try train(folder, quickTraining(epochs: 2), checkpoints: options)
                #expect(model.parameters["conv1.weight"] == first.parameters["conv1.weight"])
                #expect(model.training?.trainingImages.isEmpty == true)
                let longer = try train(folder, quickTraining(epochs: 3), checkpoints: options)
                #expect(longer.training?.history.count == 3 && longer.training?.trainingImages["left"] == 9)
            }
        }
    }
}
