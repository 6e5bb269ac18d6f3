public import ImprintCore

/// Why a typed model cannot be made of a classifier.
public enum TypedModelError: DescribedError, Equatable {
    /// The labels are not those that the type was made of.
    case otherLabels(model: String, type: String, missing: [String], unknown: [String])
    /// The resources of a module have no such file.
    case noResource(name: String, bundle: String)

    /// A sentence with what was found, what was expected and how to fix it.
    public var description: String {
        switch self {
        case .otherLabels(let model, let type, let missing, let unknown):
            "\(model): has other labels than the type \(type), "
                + [missing.isEmpty ? nil : "without \(few(missing))", unknown.isEmpty ? nil : "with \(few(unknown))"]
                .compactMap { $0 }.joined(separator: " and ")
                + ". Use a model with the same labels, or build the program again with this one in its resources"
        case .noResource(let name, let bundle):
            "\(bundle): has no \(name), expected as a resource of the target. Add resources: [.copy(\"\(name)\")] to it in Package.swift"
        }
    }
}
