// AltText MODEL PHOTO…: suggests an <img> element with an alternative text.
//
// A wrong text is worse than no text, so there is no suggestion below a confidence of 0.7.
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
            print("\(photo): no label with enough confidence; write the text yourself")
        }
    }
} catch {
    end("\(error)", 1)
}

/// Escapes a text for an HTML attribute.
func escaped(_ text: String) -> String {
    // Use scalars, because a quote with a combining mark is a different character.
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

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
