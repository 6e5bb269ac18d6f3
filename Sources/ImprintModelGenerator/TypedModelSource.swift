/// The Swift source of a model's type.
struct TypedModelSource {
    /// The name of the model file.
    let fileName: String
    /// The labels of the model.
    let labels: [String]

    /// The name of the type.
    var type: String { Self.type(of: fileName) }

    /// The name of the type for a file.
    static func type(of fileName: String) -> String { Identifier.type(for: stem(of: fileName)) }

    private static func stem(of fileName: String) -> String {
        String(fileName.dropLast(fileName.hasSuffix(".imprint") ? 8 : 0))
    }

    /// The source; equal models give equal texts.
    ///
    /// Types are named with their modules, and nothing is left to a module's settings: a user's code may have types of the same names
    /// and the main actor for everything. Imports alone are as a module's settings have them: an explicit `internal` beside a user's
    /// imports without a word is an error.
    var text: String {
        let file = Self.escaped(fileName)
        let cases = zip(Identifier.cases(for: labels), labels).map { name, label in
            "        case \(name) = \"\(Self.escaped(label))\""
        }
        return """
            // Made by the plugin ImprintModels from \(file), and anew whenever that file changes.

            import Foundation
            import Imprint

            /// The model in `\(file)`.
            ///
            /// ```swift
            /// let best = try await \(type)().best(in: .file(photo))
            /// ```
            struct \(type): Imprint.TypedModel {
                /// What the model tells apart; raw values are the labels as the file has them.
                enum Label: Swift.String, Swift.CaseIterable, Swift.Sendable {
            \(cases.joined(separator: "\n"))
                }

                /// The model, ready to use.
                let classifier: Imprint.ImageClassifier

                /// Reads the model in the resources of this module.
                /// - Parameter threads: How many threads one classification may use.
                /// - Throws: What reading a weights file throws, and `TypedModelError.otherLabels` where the file was exchanged for one
                ///   with other labels.
                init(threads: Swift.Int = 1) throws {
                    try self.init(resource: "\(Self.escaped(Self.stem(of: fileName)))", in: Foundation.Bundle.module, threads: threads)
                }

                /// Uses a classifier that there is already, as one that is personalized.
                /// - Throws: `TypedModelError.otherLabels` where its labels are not those of `Label`.
                init(_ classifier: Imprint.ImageClassifier) throws {
                    self.classifier = try Self.checked(classifier)
                }
            }

            """
    }

    /// What stands for a text in a string literal, and may stand in a comment: all on one line, nothing invisible.
    static func escaped(_ text: String) -> String {
        text.unicodeScalars.map { scalar in
            switch scalar {
            case "\\": "\\\\"
            case "\"": "\\\""
            case " ": " "
            case _ where isVisible(scalar): String(scalar)
            default: "\\u{\(String(scalar.value, radix: 16))}"
            }
        }.joined()
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .spaceSeparator, .surrogate,
            .unassigned:
            false
        default: true
        }
    }
}
