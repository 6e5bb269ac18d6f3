import Foundation
import ImprintCore
import ImprintImages
import ImprintModel
import TestSupport

@testable import ImprintTraining

/// Writes noise photos with 0 to 2 bright frames or discs, and returns their annotations.
func annotatedFramesAndDiscs(in folder: URL, count: Int, seed: UInt64) throws -> BoxAnnotations {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let photos = try (0..<count).map { index in
        var random = RandomStream(seed: seed, "boxes", index)
        var image = RasterImage(width: 140, height: 100, channels: 3)
        for sample in image.samples.indices { image.samples[sample] = UInt8(90 + random.index(below: 60)) }
        let objects = (0..<(index % 3)).map { number in
            let side = 30 + random.index(below: 12)
            let (left, top) = (5 + 68 * number + random.index(below: 20), 5 + random.index(below: 45))
            let isFrame = random.chance(0.5)
            for row in 0..<side {
                for column in 0..<side {
                    let (dx, dy) = (2 * column - side, 2 * row - side)
                    let isPainted =
                        isFrame ? max(abs(dx), abs(dy)) > side / 2 : dx * dx + dy * dy < side * side
                    guard isPainted else { continue }
                    for channel in 0..<3 {
                        image.samples[((top + row) * 140 + left + column) * 3 + channel] = isFrame ? 250 : 10
                    }
                }
            }
            return AnnotatedPhoto.Object(
                label: isFrame ? "frame" : "disc",
                box: NormalizedRectangle(
                    x: Float(left) / 140, y: Float(top) / 100, width: Float(side) / 140, height: Float(side) / 100))
        }
        let url = folder.appending(path: "\(seed)-\(index).png")
        try ImageFile.write(image, to: url)
        return AnnotatedPhoto(url: url, width: 140, height: 100, objects: objects)
    }
    return BoxAnnotations(uncheckedLabels: ["disc", "frame"], photos: photos)
}

/// A configuration of two short phases without composites.
func boxConfiguration(steps: Int) -> DetectorConfiguration {
    var configuration = DetectorConfiguration()
    configuration.keepsGroupsTogether = false
    configuration.rehearsalImages = 0
    configuration.pyramidLevels = shortPyramidLevels
    configuration.phases = [
        DetectorPhase(
            steps: steps, learningRate: 3e-3, composites: 0, hardNegatives: 0, background: 0.4, mined: 0,
            located: 0.6),
        DetectorPhase(
            steps: steps, learningRate: 2e-3, composites: 0, hardNegatives: 0, background: 0.3, mined: 0.2,
            located: 0.5),
    ]
    return configuration
}
