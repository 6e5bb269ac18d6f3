import Foundation
import Imprint

/// Has the members of the type that the plugin ImprintModels generates from TwoCircles.imprint.
///
/// Other tests build a package with the plugin; this type saves a build of all modules.
struct TwoCircles: TypedModel {
    enum Label: String, CaseIterable, Sendable {
        case other = "Other"
        case twoCircles = "TwoCircles"
    }

    let classifier: ImageClassifier

    init(threads: Int = 1) throws {
        let package = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        try self.init(
            contentsOf: package.appending(path: "docs/examples/Sources/TypedModel/TwoCircles.imprint"),
            threads: threads)
    }

    init(_ classifier: ImageClassifier) throws {
        self.classifier = try Self.checked(classifier)
    }
}
