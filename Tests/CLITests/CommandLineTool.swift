import Foundation
import ImprintCore
import ImprintImages
import TestSupport

/// The executable `imprint`, which SwiftPM builds into the folder of the test bundle.
let tool = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: "imprint")

/// Runs `imprint`.
func imprint(_ arguments: String..., folder: URL? = nil) throws -> CommandOutput {
    try run(tool, arguments, folder: folder)
}

/// Runs a shell script in which `$imprint` is the path of the executable.
func shell(_ script: String, folder: URL) throws -> CommandOutput {
    try run(URL(filePath: "/bin/sh"), ["-c", "imprint='\(tool.path)'\n\(script)"], folder: folder)
}

/// Writes noisy images, alternately with the labels "bright" and "dark".
func writeImages(to folder: URL, count: Int) throws {
    for index in 0..<count {
        let label = index % 2 == 0 ? "bright" : "dark"
        var stream = RandomStream(seed: 1, "pictures", index)
        var image = RasterImage(width: 20, height: 24)
        for sampleIndex in image.samples.indices {
            image.samples[sampleIndex] = UInt8(stream.uniform(in: label == "dark" ? 0...150 : 105...255))
        }
        let file = folder.appending(path: "\(label)/\(index / 2).png")
        try FileManager.default.createDirectory(
            at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try ImageFile.write(image, to: file)
    }
}
