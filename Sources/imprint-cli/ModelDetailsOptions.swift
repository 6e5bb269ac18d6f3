internal import ArgumentParser
internal import ImprintModel

/// The options for the version, the licence and the intended use of a model file.
struct ModelDetailsOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The version to store in the model, a whole number from \(ModelDetails.versionRange.lowerBound) to "
                + "\(ModelDetails.versionRange.upperBound) that rises with each model that you publish. A store refuses to replace a "
                + "signed model with an older version.",
            valueName: "number"))
    var modelVersion: Int?

    @Option(
        help: ArgumentHelp(
            "The licence to store in the model, such as the SPDX identifier Apache-2.0.", valueName: "text"))
    var license: String?

    @Option(
        help: ArgumentHelp("A description of the intended use to store in the model.", valueName: "text"))
    var intendedUse: String?

    func validate() throws {
        if let modelVersion { try require(modelVersion, "--model-version", in: ModelDetails.versionRange) }
        for (option, text) in [("--license", license), ("--intended-use", intendedUse)] {
            guard let text else { continue }
            let (length, maximum) = (text.utf8.count, ModelDetails.maximumTextLength)
            if !text.contains(where: { !$0.isWhitespace }) {
                throw ValidationError("\(option) is empty, expected a text of 1 to \(maximum) bytes.")
            }
            if length > maximum {
                throw ValidationError("\(option) has \(length) bytes, expected a text of 1 to \(maximum) bytes.")
            }
        }
    }

    /// The options as arguments.
    var arguments: [String] {
        option("--model-version", modelVersion) + option("--license", license) + option("--intended-use", intendedUse)
    }

    /// Sets the details that are given.
    func apply(to model: inout ModelFile) {
        if let modelVersion { model.details.version = modelVersion }
        if let license { model.details.license = license }
        if let intendedUse { model.details.intendedUse = intendedUse }
    }
}
