internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintModel
internal import ImprintStore

struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign", abstract: "Sign a model file or folder with a private key.",
        discussion: """
            The signature file has the format of OpenSSF Model Signing 1.0, so imprint verify and model_signing verify key can \
            verify it. A folder is signed with all its files, except those of a Git repository.

            Examples:
              openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem
              openssl pkey -in key.pem -pubout -out public.pem
              imprint sign m.imprint --private-key key.pem
              imprint verify m.imprint --signature model.sig --public-key public.pem
            """)

    @Argument(help: "The model file or folder to sign; it is not changed.")
    var model: String

    @Option(
        help: ArgumentHelp(
            "The private key in PEM format (PKCS #8 or SEC 1), on the curve P-256, P-384 or P-521.", valueName: "file"))
    var privateKey: String

    @Option(name: .shortAndLong, help: ArgumentHelp("The signature file to write.", valueName: "file"))
    var output = ModelSignature.fileName

    @Option(
        help: ArgumentHelp(
            "A file or folder that is not signed, in the folder of the model; repeat it for several. The path is relative to the "
                + "current folder.", valueName: "path")
    )
    var ignore: [String] = []

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, privateKey] + ignore)
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .signature)],
            inputs: [("the model to sign", model), ("the private key", privateKey)])
        if isInModel(privateKey) {
            throw ValidationError(
                "--private-key: \(privateKey): the private key is in the folder of the model and would be published with it. "
                    + "Move it to another folder.")
        }
        // The path may not exist yet: it can be another signature.
        if let path = ignore.first(where: { !isEntryOfModel($0) }) {
            throw ValidationError("--ignore: \(path) is not in the folder \(model). Name a file or folder in it.")
        }
    }

    /// Returns whether a path leads into the folder of the model.
    private func isInModel(_ path: String) -> Bool {
        URL(filePath: path).isInside(URL(filePath: model), strictly: true)
    }

    /// Returns whether a path is in the folder of the model, also if it is a link that leads out of it.
    private func isEntryOfModel(_ path: String) -> Bool {
        let entry = URL(filePath: path).absoluteURL
        guard ![".", ".."].contains(entry.lastPathComponent) else { return isInModel(path) }
        return entry.deletingLastPathComponent().isInside(URL(filePath: model))
    }

    func run() throws {
        let (model, target) = (URL(filePath: model), URL(filePath: output))
        try AtomicFile.checkWritable(target)
        let key = try SigningKey(contentsOf: URL(filePath: privateKey))
        let signature = try ModelSignature(
            signing: model, with: key, ignoring: [target] + ignore.map { URL(filePath: $0) })
        if let replaced = try? ModelSignature(contentsOf: target), let name = replaced.modelName,
            name != model.absoluteURL.standardizedFileURL.lastPathComponent
        {
            throw ValidationError(
                "--output: \(output): the file is the signature of \(name), so it is not replaced. Choose another name."
            )
        }
        // Verifying shows that the model did not change meanwhile.
        let signed = try signature.verify(model, with: key.verificationKey)
        let keyDigest = try FileDigest.sha256(of: URL(filePath: privateKey))
        // A model of one file has the path ".".
        if let copy = signed.files.filter({ $0.value == keyDigest && $0.key != "." }).keys.min() {
            throw ValidationError(
                "--private-key: \(copy) in the folder of the model is a copy of the private key and would be published with it. "
                    + "Remove it.")
        }
        try signature.write(to: target)
        if common.json {
            try Terminal.report(
                Line(
                    event: "finished", output: output, model: self.model, digest: signed.digest,
                    files: signed.files.count, key: key.verificationKey.identifier))
        } else {
            Terminal.note("Wrote \(output): \(counted(signed.files.count, "file")) signed.")
        }
        if let file = try? ModelFile(contentsOf: model), file.details.version == nil {
            Terminal.note(
                "The model has no version, so a store cannot recognize it as older than another one. "
                    + "\(file.exportCommand(adding: "--model-version NUMBER")) sets it.")
        }
    }
}

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Verify the signature of a model file or folder.",
        discussion: """
            Verification fails if a file was changed, added or removed since the model was signed, or if another key signed it. It \
            reads signatures from imprint sign and model_signing sign key.

            Examples:
              imprint verify m.imprint --signature model.sig --public-key public.pem
            """)

    @Argument(help: "The model file or folder.")
    var model: String

    @Option(help: ArgumentHelp("The signature file.", valueName: "file"))
    var signature: String

    @Option(help: ArgumentHelp("The public key of the signer in PEM format.", valueName: "file"))
    var publicKey: String

    @Option(
        help: ArgumentHelp(
            "The minimum version of the model, a whole number from 1 to \(ModelDetails.versionRange.upperBound). A model file with a lower "
                + "version is rejected, and so is one without a version. (default: any version)", valueName: "number"))
    var minimumVersion: Int?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, signature, publicKey])
        guard let minimumVersion else { return }
        try require(minimumVersion, "--minimum-version", in: ModelDetails.versionRange)
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: model, isDirectory: &isFolder), isFolder.boolValue {
            throw ValidationError(
                "--minimum-version: \(shown(model)) is a folder, which has no version. Name a model file, or leave out --minimum-version."
            )
        }
    }

    func run() throws {
        let key = try VerificationKey(contentsOf: URL(filePath: publicKey))
        do {
            let signature = try ModelSignature(contentsOf: URL(filePath: self.signature))
            let signed = try signature.verify(URL(filePath: model), with: key)
            if let minimumVersion { try requireVersion(atLeast: minimumVersion) }
            if common.json {
                try Terminal.emit(VerificationLine(model, key, signed))
            } else {
                let ignored =
                    signed.ignored.isEmpty ? "" : "; not signed: \(TextTable.list(signed.ignored))"
                try Terminal.show(
                    "\(shown(model)): the signature is valid for \(counted(signed.files.count, "file"))\(ignored)"
                )
            }
        } catch let error as SignatureError {
            if common.json { try Terminal.emit(VerificationLine(model, key, error)) }
            throw error
        } catch let error as OutdatedModel {
            if common.json { try Terminal.emit(VerificationLine(model, key, error)) }
            throw error
        }
    }

    /// Checks the version in the model file, which the signature covers; a model without one counts as version 0, as in a model store.
    private func requireVersion(atLeast minimum: Int) throws {
        let version = try ModelFile(copyingContentsOf: URL(filePath: model)).details.version
        if version ?? 0 < minimum { throw OutdatedModel(model: model, version: version, minimum: minimum) }
    }
}

/// The error of a model with a valid signature whose version is too low.
private struct OutdatedModel: DescribedError {
    let model: String
    /// The version in the model file, if it has one.
    let version: Int?
    let minimum: Int

    var description: String {
        "\(shown(model)): the signature is valid, but the model has \(version.map { "version \($0)" } ?? "no version"). Expected at "
            + "least version \(minimum) (--minimum-version). Get the newest model and its signature from the signer."
    }
}

private struct Line: Encodable {
    let event: String
    let output: String
    let model: String
    let digest: String
    let files: Int
    let key: String
}

private struct VerificationLine: Encodable {
    struct Change: Encodable {
        let file: String
        let sha256: String
        let expected: String
    }

    let model: String
    let verified: Bool
    let key: String
    @NullIfMissing var error: String?
    /// The name of the model when it was signed; `null` if the signature is not valid, as `digest` and `files`.
    @NullIfMissing var name: String?
    @NullIfMissing var digest: String?
    @NullIfMissing var files: Int?
    let ignored: [String]
    let changed: [Change]
    let missing: [String]
    let unsigned: [String]

    init(_ model: String, _ key: VerificationKey, _ signed: SignedModel) {
        (self.model, verified, self.key, error) = (model, true, key.identifier, nil)
        (name, digest, files, ignored) = (signed.name, signed.digest, signed.files.count, signed.ignored)
        (changed, missing, unsigned) = ([], [], [])
    }

    init(_ model: String, _ key: VerificationKey, _ error: any Error) {
        (self.model, verified, self.key, self.error) = (model, false, key.identifier, "\(error)")
        (name, digest, files, ignored) = (nil, nil, nil, [])
        if case SignatureError.mismatch(_, let mismatch) = error {
            changed = mismatch.changed.map { Change(file: $0.path, sha256: $0.found, expected: $0.expected) }
            (missing, unsigned) = (mismatch.missing, mismatch.unsigned)
        } else {
            (changed, missing, unsigned) = ([], [], [])
        }
    }
}
