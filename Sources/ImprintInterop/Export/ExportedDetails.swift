internal import ImprintModel

/// The version, licence and intended use of a model in the fields that other formats define for them.
///
/// ONNX has an integer `model_version`, the description `doc_string`, and the metadata `model_license` (ONNX, "Optional metadata").
/// Core ML has the texts `versionString`, `license` and `shortDescription`. No format has a field for the intended use, so it is the
/// description of the model, and also metadata with a key of Imprint, from which the importer reads it.
enum ExportedDetails {
    /// The key of the licence in the metadata of ONNX.
    static let onnxLicense = "model_license"
    /// The key of the intended use in the metadata of both formats.
    static let intendedUse = "imprint.intendedUse"

    /// Returns the intended use as metadata; empty if it is unknown.
    static func metadata(_ details: ModelDetails) -> [(key: String, value: String)] {
        details.intendedUse.map { [(intendedUse, $0)] } ?? []
    }

    /// Encodes the message Metadata of Core ML.
    /// - Parameters:
    ///   - kind: The description of a model without intended use.
    ///   - userDefined: The user-defined metadata.
    static func coreML(
        _ details: ModelDetails, kind: String, userDefined: [(key: String, value: String)]
    ) -> MessageBuilder {
        var message = MessageBuilder()
        message.add(1, details.intendedUse ?? kind)
        if let version = details.version { message.add(2, "\(version)") }
        if let license = details.license { message.add(4, license) }
        for (key, value) in userDefined + metadata(details) { message.add(100, key: key, value: value) }
        return message
    }
}

/// The version, licence and intended use that a file of another format states.
struct ImportedDetails {
    /// The details that Imprint can store.
    private(set) var details = ModelDetails()
    /// A sentence for each detail that Imprint cannot store, because the model can be used without it.
    private(set) var notes: [String] = []

    init() {}

    /// - Parameters:
    ///   - version: The version as a text; blank if it is unknown.
    ///   - license: The licence; blank if it is unknown.
    ///   - metadata: The metadata of the file, which may contain the intended use.
    init(version: String?, license: String?, metadata: [String: String]) {
        if let version = stated(version) {
            if let number = Int(version) {
                set(\.version, number)
            } else {
                note("the version is \(version.prefix(40).debugDescription), expected a whole number")
            }
        }
        set(\.license, stated(license))
        set(\.intendedUse, stated(metadata[ExportedDetails.intendedUse]))
    }

    private func stated(_ text: String?) -> String? { text.flatMap { $0.allSatisfy(\.isWhitespace) ? nil : $0 } }

    private mutating func set<Value>(_ detail: WritableKeyPath<ModelDetails, Value?>, _ value: Value?) {
        var other = ModelDetails()
        other[keyPath: detail] = value
        if let problem = other.problem { note(problem) } else { details[keyPath: detail] = value }
    }

    private mutating func note(_ problem: String) {
        notes.append("Imprint leaves out a detail of the file: \(problem).")
    }
}
