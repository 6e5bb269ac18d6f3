// UploadGate MODEL LABEL PHOTO…: stops what is unsuitable before it leaves the machine.
//
// A photo of which the model is at least half sure that it shows LABEL is stopped, and so is one that cannot be looked at. The program
// ends with 1 where something was stopped, so that `UploadGate model nsfw *.jpg && upload *.jpg` uploads all or nothing.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3 else { end("usage: UploadGate MODEL LABEL PHOTO…", 64) }
let label = arguments[1]
var stopped = 0
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    guard classifier.labels.contains(label) else {
        end("\(arguments[0]) has no label \(label), expected one of \(classifier.labels.joined(separator: ", "))", 64)
    }
    let request = ClassificationRequest(classifier)
    for photo in arguments.dropFirst(2) {
        do {
            let observations = try await request.perform(on: .file(URL(filePath: photo)))
            let confidence = observations.filter { $0.label == label }.map(\.confidence).reduce(0, +)
            if confidence >= 0.5 { stopped += 1 }
            print(
                "\(photo): \(confidence >= 0.5 ? "stopped" : "may go"), \(label) \(Int((confidence * 100).rounded())) %"
            )
        } catch {
            // What cannot be looked at is not let through.
            stopped += 1
            print("\(photo): stopped, \(error)")
        }
    }
} catch {
    end("\(error)", 1)
}
exit(stopped == 0 ? 0 : 1)

func end(_ sentence: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(status)
}
