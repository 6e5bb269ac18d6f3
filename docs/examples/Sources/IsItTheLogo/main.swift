// IsItTheLogo MODEL FRAME…: says once per second how sure it is that the logo is in view.
//
// The frames are files here, ten of them a second; those of a camera take their place, as `ImageSource.pixels`. What comes while no frame is
// looked at passes unseen, so that the needle never lags behind.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else { end("usage: IsItTheLogo MODEL FRAME…", 64) }
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    // Every other label is a form of the logo.
    let others = Set(["Other", "NoLogo"]).intersection(classifier.labels)
    guard !others.isEmpty else {
        end(
            "\(arguments[0]): has no label Other or NoLogo, so that everything would be the logo; use a model with one",
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
    for try await seen in classifier.observations(for: camera, every: .seconds(1)) {
        for error in seen.unreadable { FileHandle.standardError.write(Data("\(error)\n".utf8)) }
        let confidence = seen.observations.groupedConfidence(excluding: others, isShared: classifier.sharesConfidence)
        print("\(needle(confidence))  frame \(seen.frame + 1), \(seen.droppedCount) passed unseen")
        fflush(nil)
    }
} catch {
    end("\(error)", 1)
}

/// Such as "no ·······▲·· yes  70 %".
func needle(_ confidence: Float) -> String {
    let place = Int((confidence * 40).rounded())
    let (left, right) = (String(repeating: "·", count: place), String(repeating: "·", count: 40 - place))
    return "no \(left)▲\(right) yes  \(Int((confidence * 100).rounded())) %"
}

func end(_ sentence: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(status)
}
