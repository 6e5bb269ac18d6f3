public import ImprintCore

/// An error of a model signature, other than file system errors (`FileError`).
public enum SignatureError: DescribedError, Equatable {
    /// A key cannot be used.
    case invalidKey(name: String, reason: String)
    /// A file is not a signature in the supported format.
    case invalidSignature(name: String, reason: String)
    /// The signature names another key; `found` and `expected` are values of `VerificationKey.identifier`.
    case wrongKey(name: String, found: String, expected: String)
    /// The signature was not made with the private key of the public key, or its statement was changed.
    case forged(name: String)
    /// The model differs from the signed one.
    case mismatch(model: String, SignatureMismatch)
    /// The model is a folder but one file was signed, or the other way round; `signedName` is the name of the signed model.
    case wrongKind(model: String, isFolder: Bool, signedName: String)
    /// A model contains an entry that cannot be signed, such as a symbolic link.
    case unsignable(path: String, reason: String)
    /// A model is a folder without files to sign.
    case noFiles(model: String)
    /// A file or folder changed while the model was read.
    case changing(path: String)

    /// The error message: the found value, the expected value and how to fix the error.
    public var description: String {
        switch self {
        case .invalidKey(let name, let reason):
            "\(name): the key cannot be used: \(reason.sentence)"
        case .invalidSignature(let name, let reason):
            "\(name): the signature cannot be used: \(reason.clause). Expected a Sigstore bundle of OpenSSF Model Signing 1.0 "
                + "that was made with a key."
        case .wrongKey(let name, let found, let expected):
            "\(name): the signature was made with the key \(found), expected \(expected). Use the public key of the signer."
        case .forged(let name):
            "\(name): the signature does not match its statement and the public key. It was changed, or made with another "
                + "key. Get it again from the signer."
        case .mismatch(let model, let mismatch):
            "\(model): the model differs from the signed one: \(mismatch). Get model and signature again from the signer."
        case .wrongKind(let model, let isFolder, let signedName):
            "\(model): the model is a \(isFolder ? "folder" : "file"), but the signature is for \(isFolder ? "one file" : "a folder") with "
                + "the name \(quoted(signedName)). Expected the \(isFolder ? "file" : "folder") that was signed."
        case .noFiles(let model):
            "\(model): the folder contains no files to sign. Expected a folder with the files of a model."
        case .changing(let path):
            "\(path): changed while the model was read. Stop the program that writes to the model, and try again."
        case .unsignable(let path, let reason):
            "\(path): cannot be part of a signed model: \(reason). Expected only files and folders "
                + "with different names in UTF-8. Rename or remove it."
        }
    }
}

/// The differences between a model and its signed statement.
public struct SignatureMismatch: Sendable, Equatable, CustomStringConvertible {
    /// A file, or a part of a file, with another content than the signed one.
    public struct Change: Sendable, Equatable {
        /// The path within the model; "." for a model of one file.
        public let path: String
        /// The SHA-256 digest of the file.
        public let found: String
        /// The signed SHA-256 digest.
        public let expected: String
    }

    /// The changed files, by path.
    public let changed: [Change]
    /// The paths of signed files that the model lacks.
    public let missing: [String]
    /// The paths of files that are not signed.
    public let unsigned: [String]

    /// The number of differences.
    public var count: Int { changed.count + missing.count + unsigned.count }

    /// The first differences, within a sentence.
    public var description: String {
        let all =
            changed.map { change in
                "\(Self.subject(change.path)) has the SHA-256 \(change.found), expected \(change.expected)"
            } + missing.map { "\(Self.subject($0)) is missing" } + unsigned.map { "\(Self.subject($0)) is not signed" }
        let shown = all.prefix(5).joined(separator: "; ")
        return all.count > 5 ? "\(shown); and \(all.count - 5) more" : shown
    }

    /// Returns the name of a file within a sentence; the file of a model of one file has no name.
    private static func subject(_ path: String) -> String {
        if path == "." { return "it" }
        let parts = path.split(separator: ":")
        let isPart = parts.count == 3 && parts[0] == "." && parts.dropFirst().allSatisfy { Int($0) != nil }
        return isPart ? "its part \(path.dropFirst(2))" : path
    }
}

/// Returns a text from an untrusted source in quotes, at most 80 characters long.
func quoted(_ text: String) -> String { String(text.prefix(80)).debugDescription }
