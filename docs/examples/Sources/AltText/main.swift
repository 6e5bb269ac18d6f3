// AltText MODEL PHOTO…: suggests an <img> element with a text for those who do not see the photo.
//
// A wrong text is worse than none, so below a confidence of 0.7 there is no suggestion.
import Foundation
import Imprint

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else { end("usage: AltText MODEL PHOTO…", 64) }
do {
    let classifier = try ImageClassifier(contentsOf: URL(filePath: arguments[0]))
    let request = ClassificationRequest(classifier, rule: ConfidenceRule(threshold: .confidence(0.7)))
    for photo in arguments.dropFirst() {
        if let best = try await request.perform(on: .file(URL(filePath: photo))).first {
            let address = photo.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? photo
            print("<img src=\"\(escaped(address))\" alt=\"\(escaped("Probably: \(best.label)"))\">")
        } else {
            print("\(photo): nothing is sure enough; describe it yourself")
        }
    }
} catch {
    end("\(error)", 1)
}

/// What stands for a text in an attribute of HTML.
func escaped(_ text: String) -> String {
    // By scalars: with a mark that combines with it, a quote is another character.
    text.unicodeScalars.map { scalar in
        switch scalar {
        case "&": "&amp;"
        case "<": "&lt;"
        case ">": "&gt;"
        case "\"": "&quot;"
        default: String(scalar)
        }
    }.joined()
}

func end(_ sentence: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(status)
}
