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

private let trained = Result {
    try withPictures(perLabel: 16, seed: 5) { folder in try train(folder, quickTraining(epochs: 8)) }
}

/// A model that tells left from right, trained in a second, with features of its photos.
func leftOrRight() throws -> ModelFile { try trained.get() }

/// A classifier of that model.
func leftOrRightClassifier() throws -> ImageClassifier { try ImageClassifier(leftOrRight()) }

/// A model that looks for so many marks and has learnt nothing.
func detectorModel(marks: [String], rehearsal: Rehearsal? = nil) throws -> ModelFile {
    let network = try Network.logoDetector(marks: marks.count)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 2), labels: ["nothing"] + marks,
        preprocessing: .logoDetector,
        detector: DetectorHead(
            levels: [96, 136], stride: 16, span: 44,
            marks: marks.map { DetectorHead.Mark(label: $0, slope: 0.5, offset: -1) }),
        rehearsal: rehearsal)
}

/// Pictures with stripes of a width, dark or bright: what one person has.
func stripes(_ width: Int, count: Int, seed: UInt64 = 0) -> [RasterImage] {
    (0..<count).map { index in
        var stream = RandomStream(seed: seed, "stripes", width, index)
        var image = RasterImage(width: 20, height: 20)
        for place in image.samples.indices {
            let isBright = place / 3 % 20 / width % 2 == 0
            image.samples[place] = UInt8(stream.index(below: 100) + (isBright ? 150 : 0))
        }
        return image
    }
}

/// Writes pictures into a folder of their label.
func write(_ images: [RasterImage], label: String, in folder: URL) throws {
    let place = folder.appending(path: label)
    try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
    for (index, image) in images.enumerated() { try ImageFile.write(image, to: place.appending(path: "\(index).png")) }
}

extension ImageClassifier {
    /// The confidence in a label.
    func confidence(_ label: String, _ image: RasterImage) throws -> Float {
        try classify(image).first { $0.label == label }?.confidence ?? .nan
    }
}
