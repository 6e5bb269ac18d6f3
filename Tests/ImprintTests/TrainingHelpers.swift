import Foundation
import Imprint
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintTraining
import TestSupport

/// Returns a configuration for small images, with which training takes about a second.
func quickTraining(
    epochs: Int = 3, change: (inout ClassifierConfiguration) throws -> Void = { _ in }
) rethrows -> ClassifierConfiguration {
    var configuration = ClassifierConfiguration()
    configuration.start = .network("logonet", width: 0.125)
    configuration.inputSize = 16
    configuration.batchSize = 8
    configuration.epochs = epochs
    configuration.threads = 1
    configuration.validation = .none
    try change(&configuration)
    // A base model has its own input size.
    if case .network = configuration.start {} else { configuration.inputSize = nil }
    return configuration
}

/// Trains a classifier on a folder of photos and returns its model.
func train(
    _ folder: URL, _ configuration: ClassifierConfiguration, checkpoints: CheckpointOptions? = nil,
    shouldStop: @escaping () -> Bool = { false }, onEvent: @escaping (TrainingEvent) -> Void = { _ in }
) throws -> ModelFile {
    try ClassifierTrainer(photos: ImageFolder(at: folder), configuration: configuration, checkpoints: checkpoints)
        .train(onEvent: onEvent, shouldStop: shouldStop).model
}

/// Returns the bytes of the file of a model.
func bytes(of model: ModelFile) throws -> Data {
    try withTemporaryFolder { folder in
        let url = folder.appending(path: "x.imprint")
        try model.write(to: url)
        return try Data(contentsOf: url)
    }
}

/// Calls `body` with a folder of the images of `writeImages`.
@discardableResult
func withImages<Result>(
    _ labels: [String] = ["left", "right"], perLabel: Int, seed: UInt64 = 0, _ body: (URL) throws -> Result
) throws -> Result {
    try withTemporaryFolder { folder in
        try writeImages(labels, perLabel: perLabel, seed: seed, to: folder)
        return try body(folder)
    }
}

/// Writes 20x20 noise images, each brighter on the side that its label names, into one folder per label.
func writeImages(
    _ labels: [String] = ["left", "right"], perLabel: Int, seed: UInt64 = 0, to folder: URL
) throws {
    for label in labels {
        let labelFolder = folder.appending(path: label)
        try FileManager.default.createDirectory(at: labelFolder, withIntermediateDirectories: true)
        for index in 0..<perLabel {
            var stream = RandomStream(seed: seed, label, index)
            var image = RasterImage(width: 20, height: 20)
            for y in 0..<20 {
                for x in 0..<20 {
                    let isBright =
                        switch label {
                        case "left": x < 10
                        case "right": x >= 10
                        case "up": y < 10
                        default: y >= 10
                        }
                    for channel in 0..<3 {
                        let sample = stream.index(below: 120) + (isBright ? 120 : 0)
                        image.samples[(y * 20 + x) * 3 + channel] = UInt8(sample)
                    }
                }
            }
            try ImageFile.write(image, to: labelFolder.appending(path: "\(index).png"))
        }
    }
}
