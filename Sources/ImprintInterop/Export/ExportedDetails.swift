internal import ImprintModel

/// The version, license and intended use of a model in the fields that other formats define for them.
///
/// ONNX has an integer `model_version`, the description `doc_string`, and the metadata `model_license` (ONNX, "Optional metadata").
/// Core ML has the texts `versionString`, `license` and `shortDescription`. No format has a field for the intended use, so it is the
/// description of the model, and also metadata with a key of Imprint, from which the importer reads it.
enum ExportedDetails {
    /// The key of the license in the metadata of ONNX.
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

extension ModelDetails {
    /// Creates the details that a file of another format states.
    ///
    /// Invalid values are ignored, because the model can be used without them: a version that is not a positive whole number, and a text
    /// that is blank or too long.
    init(importedVersion: Int?, license: String?, metadata: [String: String]) {
        func valid(_ details: ModelDetails) -> Bool { details.problem == nil }
        self.init(
            version: importedVersion.flatMap { valid(ModelDetails(version: $0)) ? $0 : nil },
            license: license.flatMap { valid(ModelDetails(license: $0)) ? $0 : nil },
            intendedUse: metadata[ExportedDetails.intendedUse].flatMap {
                valid(ModelDetails(intendedUse: $0)) ? $0 : nil
            })
    }
}
