// MyLabels MODEL FILE teach LABEL PHOTO…: teaches MODEL photos of a label, and saves the change in FILE.
// MyLabels MODEL FILE correct LABEL PHOTO…: the photos do not have LABEL.
// MyLabels MODEL FILE classify PHOTO…: classifies photos with the change in FILE, if it exists.
import Foundation
import Imprint
import ImprintModel

let usage = "usage: MyLabels MODEL FILE teach|correct LABEL PHOTO… or MyLabels MODEL FILE classify PHOTO…"
let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 4 else { end(usage, 64) }
do {
    let base = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    let file = URL(filePath: arguments[1])
    let saved = FileManager.default.fileExists(atPath: file.path) ? try Personalization(contentsOf: file) : nil
    let session = try PersonalizationSession(base.personalized(with: saved))
    let (label, photos) = (arguments[3], arguments.dropFirst(4).map { URL(filePath: $0) })

    switch arguments[2] {
    case "teach": try session.teach(photos.map { (photo: .file($0), label: label) })
    case "correct": for photo in photos { try session.correct(photo, isNot: label) }
    case "classify":
        let request = ClassificationRequest(session.classifier)
        for photo in arguments.dropFirst(3) {
            guard let best = try await request.perform(on: .file(URL(filePath: photo))).first else { continue }
            print("\(photo): \(best.label) \(Int((best.confidence * 100).rounded())) %")
        }
    default: end(usage, 64)
    }
    if arguments[2] != "classify" {
        let byteCount = try session.save(to: file)
        print("Saved \(byteCount) bytes. Labels: \(session.classifier.labels.joined(separator: ", "))")
    }
} catch {
    end("\(error)", 1)
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
