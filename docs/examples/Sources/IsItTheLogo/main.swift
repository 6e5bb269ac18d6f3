// IsItTheLogo MODEL FRAME…: prints once per second the confidence that the logo is in view.
//
// Here the frames are files, ten per second; frames of a camera are `ImageSource.pixels`. Frames that arrive during a classification are
// dropped, so that the gauge does not lag behind.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else { end("usage: IsItTheLogo MODEL FRAME…", 64) }
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    // All other labels are variants of the logo.
    let others = Set(["Other", "NoLogo"]).intersection(classifier.labels)
    guard !others.isEmpty else {
        end(
            "\(arguments[0]): has no label Other or NoLogo, so every image would be the logo; use a model with such a label",
            1)
    }
    let camera = AsyncStream<ImageSource> { frames in
        Task {
            for file in arguments.dropFirst() {
                frames.yield(.file(URL(filePath: file)))
                try await Task.sleep(for: .milliseconds(100))
            }
            frames.finish()
        }
    }
    for try await result in classifier.classifications(for: camera, every: .seconds(1)) {
        for error in result.unreadable { FileHandle.standardError.write(Data("\(error)\n".utf8)) }
        let confidence = result.classifications.groupedConfidence(
            excluding: others, sumToOne: classifier.confidencesSumToOne)
        print("\(gauge(confidence))  frame \(result.frame + 1), \(result.droppedCount) dropped")
        fflush(nil)
    }
} catch {
    end("\(error)", 1)
}

/// Formats a confidence as a gauge, such as "no ·······▲··· yes  70 %".
func gauge(_ confidence: Float) -> String {
    let position = Int((confidence * 40).rounded())
    let (left, right) = (String(repeating: "·", count: position), String(repeating: "·", count: 40 - position))
    return "no \(left)▲\(right) yes  \(Int((confidence * 100).rounded())) %"
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
