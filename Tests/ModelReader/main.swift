import Foundation
import Imprint
import ImprintImages
import ImprintModel

// Opens a model, prints "ready", waits for a line, then classifies an image and prints the label.
// Usage: ModelReader FILE
let model = try ModelFile(copyingContentsOf: URL(filePath: CommandLine.arguments[1]))
let opened = try ImageClassifier(model)
// Unbuffered, unlike print.
let output = FileHandle.standardOutput
try output.write(contentsOf: Data("ready\n".utf8))
_ = readLine()
let image = RasterImage(width: 8, height: 8, filledWith: 200)
// The second one reads all parameters again.
for classifier in [opened, try ImageClassifier(model)] {
    let label = try classifier.classify(image).first?.label ?? "none"
    try output.write(contentsOf: Data("\(label)\n".utf8))
}
