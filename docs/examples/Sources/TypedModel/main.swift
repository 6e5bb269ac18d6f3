// TypedModel PHOTO…: a model as a type. The plugin ImprintModels generates `TwoCircles` from TwoCircles.imprint, so the compiler
// knows its labels: a switch without one of them does not compile.
import Foundation
import Imprint

let photos = CommandLine.arguments.dropFirst()
guard !photos.isEmpty else { end("usage: TypedModel PHOTO…", 64) }
do {
    let model = try TwoCircles()
    for photo in photos {
        let rule = ConfidenceRule(threshold: .confidence(0.7))
        switch try await model.best(in: .file(URL(filePath: photo)), rule: rule)?.label {
        case .twoCircles: print("\(photo): two circles")
        case .other: print("\(photo): something else")
        case nil: print("\(photo): not sure")
        }
    }
} catch {
    end("\(error)", 1)
}

func end(_ message: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(message)\n".utf8))
    exit(status)
}
