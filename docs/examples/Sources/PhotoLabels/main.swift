// PhotoLabels MODEL PHOTO…: prints the five best labels of each photo, or their categories if the model has any.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else { end("usage: PhotoLabels MODEL PHOTO…", 64) }
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    let request = ClassificationRequest(classifier)
    for photo in arguments.dropFirst() {
        var classifications = try await request.perform(on: .file(URL(filePath: photo)))
        if let categories = classifier.model.categories {
            classifications = classifications.rolledUp(into: categories, sumToOne: classifier.confidencesSumToOne)
        }
        print(photo)
        for classification in classifications.prefix(5) { print(line(classification)) }
    }
} catch {
    end("\(error)", 1)
}

/// Formats a classification, such as "  97.3 %  TwoCircles".
func line(_ classification: Classification) -> String {
    let tenths = Int((classification.confidence * 1000).rounded())
    let number = "\(tenths / 10).\(tenths % 10)"
    return String(repeating: " ", count: 7 - number.count) + "\(number) %  \(classification.label)"
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
