import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import ImprintNetwork
import ImprintSynthesis
import TestSupport

@testable import Imprint
@testable import ImprintInterop
@testable import ImprintTraining

private let trainedModel = Result {
    try withImages(perLabel: 16, seed: 5) { folder in try train(folder, quickTraining(epochs: 8)) }
}

/// Returns a model that distinguishes left from right, with replay features of its training photos.
func leftOrRight() throws -> ModelFile { try trainedModel.get() }

/// Returns a classifier with the model of `leftOrRight()`.
func leftOrRightClassifier() throws -> ImageClassifier { try ImageClassifier(leftOrRight()) }

/// Returns an untrained detector of the given logos.
func detectorModel(logos: [String], rehearsal: Rehearsal? = nil) throws -> ModelFile {
    let network = try Network.logoDetector(logos: logos.count)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: ["nothing"] + logos,
        preprocessing: .logoDetector,
        detector: DetectorHead(
            levels: [96, 136], stride: 16, span: 44,
            logos: logos.map { DetectorHead.Logo(label: $0, slope: 0.5, offset: -1) }),
        rehearsal: rehearsal)
}

/// Returns images with vertical stripes of a width in pixels: the photos of one user.
func stripes(_ width: Int, count: Int, seed: UInt64 = 0) -> [RasterImage] {
    (0..<count).map { index in
        var stream = RandomStream(seed: seed, "stripes", width, index)
        var image = RasterImage(width: 20, height: 20)
        for sample in image.samples.indices {
            let isBright = sample / 3 % 20 / width % 2 == 0
            image.samples[sample] = UInt8(stream.index(below: 100) + (isBright ? 150 : 0))
        }
        return image
    }
}

/// Writes images into the sub-folder of their label.
func write(_ images: [RasterImage], label: String, in folder: URL) throws {
    let labelFolder = folder.appending(path: label)
    try FileManager.default.createDirectory(at: labelFolder, withIntermediateDirectories: true)
    for (index, image) in images.enumerated() {
        try ImageFile.write(image, to: labelFolder.appending(path: "\(index).png"))
    }
}

extension ImageClassifier {
    /// Returns the confidence in a label.
    func confidence(_ label: String, _ image: RasterImage) throws -> Float {
        try classify(image).first { $0.label == label }?.confidence ?? .nan
    }
}
