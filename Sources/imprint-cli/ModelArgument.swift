internal import ArgumentParser
internal import Foundation
internal import ImprintBaseModels
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

/// The name of the base model that comes with Imprint.
let builtInBaseName = BaseModels.builtInName

/// Returns the model of an argument: a file or, if there is no such file, the installed or built-in model with this name.
///
/// The parameters of a file are copied: another program may overwrite the file while this process runs.
/// - Throws: `ValidationError` if the text is a name that is not installed; the errors of `BaseModels` and `ModelFile`.
func namedModel(_ text: String) throws -> ModelFile {
    if let model = try modelWithName(text, prefix: "") { return model }
    if isUnknownName(text) {
        throw ValidationError(
            "\(text) is neither a file nor an installed model. imprint models list shows the installed models.")
    }
    return try ModelFile(copyingContentsOf: URL(filePath: text))
}

/// Returns the base model of --base: a file, or the name of an installed or built-in base model.
/// - Throws: `ValidationError` if the text names neither; the errors of `BaseModels` and `ModelFile`.
func baseModel(_ text: String) throws -> ModelFile {
    if let model = try modelWithName(text, prefix: "--base: ") { return model }
    if isUnknownName(text) {
        throw ValidationError(
            "--base: \(text) is neither a file nor an installed base model. imprint models list shows the base models."
        )
    }
    return try ModelFile(copyingContentsOf: URL(filePath: text))
}

/// Returns the personalization in a file.
/// - Throws: The errors of `Personalization`; if the file is of another kind, with a hint.
func namedPersonalization(_ path: String) throws -> Personalization {
    try hinting { error in
        guard let problem = (error as? SafetensorsError)?.problem else { return nil }
        let text = "imprint personalize writes a personalization."
        return switch problem {
        case .otherKind(.image), .otherKind(.otherImage):
            "\(text) imprint personalize --artwork LABEL=\(shellQuoted(path)) teaches a detector a logo."
        case .otherKind, .headerTooLong, .headerBeyondEnd, .noHeaderLength, .malformedHeader: text
        default: nil
        }
    } _: {
        try Personalization(contentsOf: URL(filePath: path))
    }
}

/// Returns whether a text that does not name an installed model is meant as a name: it is a valid name without the extension of a model file,
/// and no file has this path.
private func isUnknownName(_ text: String) -> Bool {
    let extensions = ModelFormat.allCases.flatMap(\.fileExtensions)
    return !FileManager.default.fileExists(atPath: text) && BaseModels.isValid(text)
        && !extensions.contains(URL(filePath: text).pathExtension.lowercased())
}

/// Returns the installed or built-in model with a name; nil for a file and for an unknown name.
/// - Parameter prefix: The start of the message about a model that is not installed.
private func modelWithName(_ text: String, prefix: String) throws -> ModelFile? {
    guard !FileManager.default.fileExists(atPath: text) else { return nil }
    if text == builtInBaseName { return try .builtInBase() }
    if BaseModels().installed(named: text) != nil { return try BaseModels().model(named: text) }
    if BaseModelCatalog.standard[text] != nil {
        throw ValidationError("\(prefix)\(text) is not installed. imprint models install \(text) installs it.")
    }
    return nil
}

/// Returns the file of the installed model with a name; nil if there is a file with this name, or no such model.
func installedFile(_ text: String) -> URL? {
    FileManager.default.fileExists(atPath: text) ? nil : BaseModels().installed(named: text)?.file
}
