public import ImprintCore

/// An error of installing a base model, other than errors of the download (`StoreError`), the conversion (`ImportError`), the folder
/// (`BaseModelError`) and the file system (`FileError`).
///
/// A failed installation leaves the installed base models unchanged.
public enum BaseInstallationError: DescribedError, Equatable {
    /// The catalog has no base model with this name.
    case unknownName(name: String, known: [String])
    /// A name has characters that are not allowed.
    case invalidName(String)
    /// A name is that of the base model that comes with Imprint.
    case reservedName(String)
    /// Another base model with this name is installed.
    case nameTaken(name: String, source: String)
    /// The licence of a base model was not accepted.
    case licenseNotAccepted(name: String, license: String)
    /// The installation from a URL has no SHA-256 to compare.
    case digestRequired(url: String)
    /// A SHA-256 is malformed.
    case invalidDigest(found: String)
    /// A URL is neither a file URL nor an https URL, nor an http URL of this computer.
    case unsupportedURL(String)
    /// A catalog file is invalid.
    case invalidCatalog(reason: String)
    /// The file's digest differs from the expected one.
    case wrongDigest(source: String, found: String, expected: String)
    /// Python is not installed or does not run.
    case noPython(program: String, reason: String)
    /// Python does not have pip.
    case noPip(python: String, message: String)
    /// pip could not reach its package index.
    case noNetwork(package: String, message: String)
    /// The package index has no package with this name and version.
    case packageNotFound(package: String, version: String, isVersionMissing: Bool, message: String)
    /// pip failed for another reason.
    case pipFailed(package: String, status: Int, message: String)
    /// The package has no file with this path.
    case fileMissing(package: String, path: String)
    /// The package cannot be unpacked.
    case invalidPackage(package: String, message: String)

    /// The error in one to three sentences, with a way to fix it.
    public var description: String {
        switch self {
        case .unknownName(let name, let known):
            "The base model \(name.debugDescription) is unknown. Expected one of \(known.joined(separator: ", ")), a file or a URL."
        case .invalidName(let name):
            "The name \(String(name.prefix(80)).debugDescription) is invalid. Expected 1 to 64 letters (a to z), digits, dots, "
                + "underscores and hyphens, starting with a letter or digit. Choose another name."
        case .reservedName(let name):
            "The name \(name.debugDescription) is that of the base model that comes with Imprint. Choose another name."
        case .nameTaken(let name, let source):
            "The name \(name.debugDescription) belongs to another base model, from \(source). Remove it first, or choose another name."
        case .licenseNotAccepted(let name, let license):
            "The licence of \(name) is not accepted: \(license) Accept it to install the base model."
        case .digestRequired(let url):
            "\(url): the SHA-256 of the file is missing. Expected 64 hexadecimal digits from a source that you trust; sha256sum FILE "
                + "prints it for a file that you have."
        case .invalidDigest(let found):
            "The SHA-256 \(String(found.prefix(80)).debugDescription) is invalid. Expected 64 hexadecimal digits, as sha256sum prints them."
        case .unsupportedURL(let url):
            "\(url): the URL is not supported. Expected an https URL, or an http URL of this computer. Download the file, then install it."
        case .invalidCatalog(let reason):
            "The catalog of base models is invalid: \(reason). docs/how-to/base-models.md describes its format."
        case .wrongDigest(let source, let found, let expected):
            "\(source): the file has the SHA-256 \(found), expected \(expected). It was damaged or replaced and is not installed. "
                + "Install again, or check the digest."
        case .noPython(let program, let reason):
            "\(program): Python does not run (\(reason)), but this base model is downloaded with pip. Install Python 3 with pip, or name its "
                + "program in the environment variable IMPRINT_PYTHON."
        case .noPip(let python, let message):
            "\(python): this Python has no pip, which is needed to download the base model: \(message.debugDescription). Install pip, or name another "
                + "Python in the environment variable IMPRINT_PYTHON."
        case .noNetwork(let package, let message):
            "\(package): pip could not reach the package index: \(message.debugDescription). Check the network and the configuration of "
                + "pip, then install again."
        case .packageNotFound(let package, let version, let isVersionMissing, let message):
            isVersionMissing
                ? "\(package): the package index has no version \(version) of this package: \(message.debugDescription). Check the index in "
                    + "the configuration of pip."
                : "\(package): pip found no package with this name, or could not reach the package index: \(message.debugDescription). Check "
                    + "the network and the index in the configuration of pip."
        case .pipFailed(let package, let status, let message):
            "\(package): pip failed with status \(status): \(message.debugDescription). Fix the problem, then install again."
        case .fileMissing(let package, let path):
            "\(package): the package has no file \(path). Another package may have this name in your index; check the configuration of pip."
        case .invalidPackage(let package, let message):
            "\(package): the package cannot be unpacked: \(message.debugDescription). Install again."
        }
    }
}
