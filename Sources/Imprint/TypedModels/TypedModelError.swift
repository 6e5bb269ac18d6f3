public import ImprintCore

/// An error of creating a typed model.
public enum TypedModelError: DescribedError, Equatable {
    /// The labels of the model differ from those of its type.
    ///
    /// `missing` are labels of the type that the model does not have, `unknown` are labels of the model that the type does not have.
    case labelMismatch(model: String, type: String, missing: [String], unknown: [String])
    /// A bundle does not contain the model file.
    case missingResource(name: String, bundle: String)

    /// A description of the problem and how to fix it.
    public var description: String { text.sentence }

    private var text: String {
        switch self {
        case .labelMismatch(let model, let type, let missing, let unknown):
            "\(model): the labels do not match the type \(type) ("
                + [
                    missing.isEmpty ? nil : "missing: \(abbreviated(missing))",
                    unknown.isEmpty ? nil : "unexpected: \(abbreviated(unknown))",
                ]
                .compactMap { $0 }.joined(separator: "; ")
                + "). Use a model with the labels of the type, or rebuild the program with this model in its resources"
        case .missingResource(let name, let bundle):
            "\(bundle): the bundle does not contain the resource \(name). "
                + "Add resources: [.copy(\"\(name)\")] to the target in Package.swift"
        }
    }
}
