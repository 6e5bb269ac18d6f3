import Foundation
import ImprintCore
import ImprintImages
import TestSupport

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintModel
@testable import ImprintNetwork
@testable import ImprintSynthesis
@testable import ImprintTraining

/// Returns the nodes of a network with one heat map that needs 300 activations at the same time, each with `channels` channels.
///
/// At a pyramid level of 26,000 pixels with 3 channels, or 6,000 pixels with 59, each activation needs about 8 GB.
func nodesBeyondMemory(channels: Int) -> [Network.Node] {
    let count = 300
    var nodes = (1...count).map { index in
        Network.Node(
            name: "\(index)", layer: Convolution(outputChannels: channels, kernelSize: 1),
            inputs: [index == 1 ? "input" : "\(index - 1)"])
    }
    // The sums need the activations in reverse order, so all of them are live at once.
    for index in (1..<count).reversed() {
        nodes.append(
            Network.Node(
                name: "sum \(index)", layer: AddLayer(),
                inputs: [index == count - 1 ? "\(count)" : "sum \(index + 1)", "\(index)"]))
    }
    nodes.append(Network.Node(name: "head", layer: Convolution(outputChannels: 1, kernelSize: 1), inputs: ["sum 1"]))
    return nodes
}

/// Writes artwork: a red cross on a transparent background.
func writeCross(to folder: URL) throws -> Artwork {
    var image = RasterImage(width: 48, height: 48, channels: 4)
    for y in 0..<48 {
        for x in 0..<48 where (16..<32).contains(x) || (16..<32).contains(y) {
            let pixel = (y * 48 + x) * 4
            (image.samples[pixel], image.samples[pixel + 3]) = (200, 255)
        }
    }
    let file = folder.appending(path: "cross.png")
    try ImageFile.write(image, to: file)
    return try Artwork(contentsOf: file)
}

/// Writes noise images into one folder per label, and calls `painting` to draw the object of the label at a random position of each.
func writeNoise(
    to folder: URL, labels: [String], count: Int,
    painting: (_ label: String, _ image: inout RasterImage, _ left: Int, _ top: Int) throws -> Void
) throws {
    for label in labels {
        let labelFolder = folder.appending(path: label)
        try FileManager.default.createDirectory(at: labelFolder, withIntermediateDirectories: true)
        for index in 0..<count {
            var random = RandomStream(seed: 3, label, index)
            var image = RasterImage(width: 120, height: 90, channels: 3)
            for sample in image.samples.indices { image.samples[sample] = UInt8(100 + random.index(below: 100)) }
            let (left, top) = (10 + random.index(below: 60), 10 + random.index(below: 40))
            try painting(label, &image, left, top)
            try ImageFile.write(image, to: labelFolder.appending(path: "\(index).png"))
        }
    }
}

/// Returns the configuration of a short training.
/// - Parameter steps: The steps of a phase of composites and of a phase with all kinds of patches; nil for the standard phases.
func shortDetectorTraining(
    steps: [Int]?, poolSize: Int, change: (inout DetectorConfiguration) -> Void
) -> DetectorConfiguration {
    var configuration = DetectorConfiguration()
    configuration.seed = 4
    configuration.keepsGroupsTogether = false
    configuration.poolSize = poolSize
    configuration.pyramidLevels = shortPyramidLevels
    configuration.phases = steps.map { steps in
        [
            DetectorPhase(
                steps: steps[0], learningRate: 1e-3, composites: 0.5, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0),
            DetectorPhase(
                steps: steps[1], learningRate: 2e-3, composites: 0.3, hardNegatives: 0.2, background: 0.1, mined: 0.2,
                located: 0.2),
        ]
    }
    change(&configuration)
    return configuration
}

/// Trains a detector on photos and artwork, and returns the result.
/// - Parameter steps: The steps of a phase of composites and of a phase with all kinds of patches; nil for the standard phases.
func trainDetector(
    _ artwork: [String: [Artwork]], photos: any TrainingSource, backgrounds: [URL]? = nil, steps: [Int]?, poolSize: Int,
    checkpoints: CheckpointOptions? = nil, onEvent: @escaping (TrainingEvent) -> Void = { _ in },
    shouldStop: @escaping () -> Bool = { false }, change: (inout DetectorConfiguration) -> Void
) throws -> TrainingResult {
    let configuration = shortDetectorTraining(steps: steps, poolSize: poolSize, change: change)
    return try DetectorTrainer(
        artwork: artwork, photos: photos, backgrounds: backgrounds, configuration: configuration,
        checkpoints: checkpoints
    ).train(onEvent: onEvent, shouldStop: shouldStop)
}
