// UploadFilter MODEL LABEL PHOTO…: blocks unsuitable photos before they leave the machine.
//
// It blocks photos with a confidence in LABEL of at least 50 %, and unreadable photos. The program exits with 1 if it blocked a photo, so
// that `UploadFilter model nsfw *.jpg && upload *.jpg` uploads all photos or none.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3 else { end("usage: UploadFilter MODEL LABEL PHOTO…", 64) }
let label = arguments[1]
var blockedCount = 0
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    guard classifier.labels.contains(label) else {
        end("\(arguments[0]) has no label \(label), expected one of \(classifier.labels.joined(separator: ", "))", 64)
    }
    let request = ClassificationRequest(classifier)
    for photo in arguments.dropFirst(2) {
        do {
            let classifications = try await request.perform(on: .file(URL(filePath: photo)))
            let confidence = classifications.filter { $0.label == label }.map(\.confidence).reduce(0, +)
            if confidence >= 0.5 { blockedCount += 1 }
            print(
                "\(photo): \(confidence >= 0.5 ? "blocked" : "passed"), \(label) \(Int((confidence * 100).rounded())) %"
            )
        } catch {
            // An unreadable photo is blocked.
            blockedCount += 1
            print("\(photo): blocked, \(error)")
        }
    }
} catch {
    end("\(error)", 1)
}
exit(blockedCount == 0 ? 0 : 1)

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
