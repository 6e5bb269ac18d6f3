// TypedModel PHOTO…: a model that is a type. `TwoCircles` is made by the plugin ImprintModels of TwoCircles.imprint, so that the
// compiler knows its labels: a switch that forgets one does not compile.
import Foundation
import Imprint

let photos = CommandLine.arguments.dropFirst()
guard !photos.isEmpty else { end("usage: TypedModel PHOTO…", 64) }
do {
    let model = try TwoCircles()
    for photo in photos {
        let sure = ConfidenceRule(threshold: .confidence(0.7))
        switch try await model.best(in: .file(URL(filePath: photo)), rule: sure)?.label {
        case .twoCircles: print("\(photo): two circles")
        case .other: print("\(photo): something else")
        case nil: print("\(photo): not sure")
        }
    }
} catch {
    end("\(error)", 1)
}

func end(_ sentence: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("\(sentence)\n".utf8))
    exit(status)
}
