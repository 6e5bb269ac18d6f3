// Circles PHOTO…: classifies photos with the newest model.
// Circles --update URL SHA256: installs a newer model.
import Foundation
import Imprint
import ImprintStore

let arguments = Array(CommandLine.arguments.dropFirst())
do {
    let store = try ModelStore(at: URL(filePath: "models"))
    if arguments.count == 3, arguments[0] == "--update", let url = URL(string: arguments[1]) {
        let model = try await store.install(from: url, verification: Verification(sha256: arguments[2]))
        print("Installed a model of \(model.byteCount) bytes.")
    } else {
        // The store is empty before the first update; then the app uses the model that it was built with.
        let circles = try store.current == nil ? TwoCircles() : TwoCircles(store.load())
        for photo in arguments {
            let rule = ConfidenceRule(threshold: .confidence(0.7))
            switch try await circles.best(in: .file(URL(filePath: photo)), rule: rule)?.label {
            case .twoCircles: print("\(photo): the logo")
            case .other: print("\(photo): something else")
            case nil: print("\(photo): not sure")
            }
        }
    }
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(1)
}
