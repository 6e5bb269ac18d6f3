public import Foundation
internal import ImprintCore
internal import ImprintInterop
internal import ImprintModel
internal import ImprintNetwork
public import ImprintStore
public import ImprintTraining

/// Installs pretrained base models: downloads or copies a file, verifies its SHA-256 and converts it to a model file.
///
/// ```swift
/// let installer = BaseModelInstaller()
/// let license = installer.catalog["efficientnet-lite0"]?.license
/// // … show license.name and license.statement, and ask the user …
/// try await installer.install("efficientnet-lite0", acceptsLicense: true) { event in
///     if case .downloading(let byteCount, let total) = event { print(byteCount, total ?? 0) }
/// }
/// configuration.start = .base(try BaseModels().model(named: "efficientnet-lite0"), trainableLayers: .headFirst)
/// ```
///
/// The file is verified before it is parsed. An installation is atomic: if it fails or the process is killed, the folder has the installed
/// base models as before, and at most a partial download that the next installation resumes. Later uses need no network.
public struct BaseModelInstaller: Sendable {
    /// The folder to install into.
    public let bases: BaseModels
    /// The base models that can be installed by name.
    public let catalog: BaseModelCatalog
    /// The Python that runs pip; nil for that in the environment variable `IMPRINT_PYTHON`, or else `python3`.
    public var python: URL?
    /// The limits of downloads from web servers.
    public var limits = DownloadLimits()

    /// Creates an installer.
    /// - Parameters:
    ///   - bases: The folder to install into.
    ///   - catalog: The base models that can be installed by name.
    public init(into bases: BaseModels = BaseModels(), catalog: BaseModelCatalog = .standard) {
        self.bases = bases
        self.catalog = catalog
    }
}

/// The progress of an installation.
public enum BaseInstallationEvent: Hashable, Sendable {
    /// Another process is changing the folder; the installation waits until it ends.
    case waiting
    /// pip is downloading a package, such as "name==1.0".
    case runningPip(package: String)
    /// The number of bytes downloaded so far, and the size of the file if the server reports it.
    case downloading(byteCount: Int, total: Int?)
    /// The file is verified and is being converted.
    case converting
    /// An assumption about settings that the file does not specify.
    case note(String)
}

// MARK: Installing

extension BaseModelInstaller {
    /// Whether the installation of a base model of the catalog needs the acceptance of its licence.
    ///
    /// It does not if the user accepted it for the installed base model, or installed the base model from a local file.
    /// - Throws: `FileError` if the folder cannot be read.
    public func needsLicenseAcceptance(_ name: String) throws -> Bool {
        guard let entry = catalog[name] else { return false }
        guard let base = try bases.installed(named: name), base.sourceDigest == entry.sha256 else { return true }
        // The user had the file of a base model that was installed from a local file.
        return !base.isLicenseAccepted && (base.source?.kind != .file || base.damage != nil)
    }

    /// Installs a base model of the catalog; an intact base model from the same file is kept.
    ///
    /// Cancelling the task ends the download.
    /// - Parameters:
    ///   - name: The name in the catalog.
    ///   - acceptsLicense: Whether the user accepts the licence of the catalog entry; only the first installation needs it.
    ///   - onEvent: Receives the progress, on any thread.
    /// - Returns: The installed base model.
    /// - Throws: `BaseInstallationError`; `StoreError` if a download fails; `ImportError` if the file cannot be converted; `FileError` if a
    ///   file cannot be read or written; `CancellationError`.
    @discardableResult
    public func install(
        _ name: String, acceptsLicense: Bool = false,
        onEvent: @escaping @Sendable (BaseInstallationEvent) -> Void = { _ in }
    ) async throws -> InstalledBase {
        guard let entry = catalog[name] else {
            throw BaseInstallationError.unknownName(name: name, known: catalog.entries.map(\.name))
        }
        guard try acceptsLicense || !needsLicenseAcceptance(name) else {
            throw BaseInstallationError.licenseNotAccepted(name: name, license: entry.license.statement)
        }
        return try await install(BaseSource(entry), onEvent)
    }

    /// Installs a base model from a file or a web server; an intact base model from the same file is kept.
    ///
    /// The file is a model file of Imprint, an ONNX or Core ML model, or a PyTorch checkpoint. A file of the catalog is converted with the
    /// settings of its entry. Cancelling the task ends the download.
    /// - Parameters:
    ///   - url: A file URL, an https URL, or an http URL of this computer.
    ///   - name: The name of the base model; if nil, the name in the catalog, or else the file name without its extension.
    ///   - architecture: The architecture of a PyTorch checkpoint, which has only parameters; nil if the file contains it.
    ///   - sha256: The SHA-256 of the file as 64 hexadecimal digits; required for a URL of a web server.
    ///   - onEvent: Receives the progress, on any thread.
    /// - Returns: The installed base model.
    /// - Throws: The errors of `install(_:acceptsLicense:onEvent:)`.
    @discardableResult
    public func install(
        from url: URL, named name: String? = nil, architecture: String? = nil, sha256: String? = nil,
        onEvent: @escaping @Sendable (BaseInstallationEvent) -> Void = { _ in }
    ) async throws -> InstalledBase {
        if let sha256, !FileDigest.isDigest(sha256) { throw BaseInstallationError.invalidDigest(found: sha256) }
        let shown = url.isFileURL ? url.path : VerifiedDownload.redacted(url)
        if !url.isFileURL {
            try checkSupported(url)
            guard sha256 != nil else { throw BaseInstallationError.digestRequired(url: shown) }
        }
        let isFolder = (try? url.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory ?? false
        let digest = try sha256?.lowercased() ?? (isFolder ? nil : FileDigest.sha256(of: url))
        let entry = architecture == nil ? catalog.entry(ofFile: digest) : nil
        var source = BaseSource(
            name: self.name(of: url, name, digest), location: url.isFileURL ? .file(url) : .https(url), sha256: digest)
        source.architecture = architecture
        source.entry = entry
        guard BaseModels.isValid(source.name) else { throw BaseInstallationError.invalidName(source.name) }
        return try await install(source, onEvent)
    }

    /// Returns the name of the base model from a URL: the given one, that in the catalog, or the file name.
    package func name(of url: URL, _ name: String?, _ sha256: String?) -> String {
        // The path has no query.
        name ?? catalog.entry(ofFile: sha256?.lowercased())?.name
            ?? URL(filePath: url.path).deletingPathExtension().lastPathComponent
    }

    /// Returns the number of bytes of an interrupted download that the next installation resumes, or nil if there is none.
    package func resumableByteCount(of name: String) -> Int? { BaseStaging(bases, name).resumableByteCount }

    private func checkSupported(_ url: URL) throws {
        let host = url.host()?.lowercased() ?? ""
        // An IPv4 address in 127.0.0.0/8; names such as 127.example do not match.
        let isLoopback =
            ["localhost", "::1", "[::1]"].contains(host) || host.wholeMatch(of: /127(\.[0-9]{1,3}){3}/) != nil
        switch url.scheme?.lowercased() {
        case "https" where !host.isEmpty: break
        case "http" where isLoopback: break
        default: throw BaseInstallationError.unsupportedURL(VerifiedDownload.redacted(url))
        }
    }

    private func install(
        _ source: BaseSource, _ onEvent: @escaping @Sendable (BaseInstallationEvent) -> Void
    ) async throws -> InstalledBase {
        if let base = try kept(source) { return base }
        try AtomicFile.makeFolder(bases.folder)
        let lock = try await lock(onEvent)
        defer { withExtendedLifetime(lock) {} }
        // Another process may have installed it meanwhile.
        if let base = try kept(source) { return base }
        let staging = BaseStaging(bases, source.name)
        do {
            try staging.prepare()
            let file = try await fetch(source, staging, onEvent)
            try Task.checkCancellation()
            return try await onDedicatedThread {
                try verify(source, file)
                onEvent(.converting)
                try convert(source, file, to: staging.model).forEach { onEvent(.note($0)) }
                return try staging.install(source.record)
            }
        } catch {
            // A complete download that cannot be converted is not needed again. If this fails too, the next installation removes the files.
            let canResume = error is StoreError || error is FileError || error is CancellationError
            try? canResume ? staging.removeTemporaryFiles() : staging.removeAll()
            throw error
        }
    }

    /// Returns the installed base model if it is intact and from the same file, or nil if it must be installed.
    /// - Throws: `BaseInstallationError.nameTaken` if it is another one.
    private func kept(_ source: BaseSource) throws -> InstalledBase? {
        guard let base = try bases.installed(named: source.name), let found = base.source else { return nil }
        let isSame =
            base.sourceDigest == source.sha256
            && (source.sha256 != nil || found.location == source.record.source.location)
        guard isSame else { throw BaseInstallationError.nameTaken(name: source.name, source: found.location) }
        // Contents of folders are not compared.
        return base.damage == nil && source.sha256 != nil ? base : nil
    }

    /// Waits until this installation may change the folder.
    private func lock(_ onEvent: (BaseInstallationEvent) -> Void) async throws -> BaseModelsLock {
        var isWaiting = false
        while true {
            if let lock = try BaseModelsLock(bases.folder) { return lock }
            if !isWaiting { onEvent(.waiting) }
            isWaiting = true
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Returns the file to convert, which is in the folder of `staging` unless it is a local file.
    private func fetch(
        _ source: BaseSource, _ staging: BaseStaging, _ onEvent: @escaping @Sendable (BaseInstallationEvent) -> Void
    ) async throws -> URL {
        switch source.location {
        case .file(let url): return url
        case .https(let url):
            try checkSupported(url)
            guard let sha256 = source.sha256 else { preconditionFailure("a download without a digest") }
            return try await VerifiedDownload(
                url, sha256: sha256, to: staging.folder, limits: limits
            ) { onEvent(.downloading(byteCount: $0, total: $1)) }.run()
        case .pip(let package, let version, let path):
            let pip = PipDownload(
                python: try PythonProgram(python), package: package, version: version, path: path,
                folder: staging.folder,
                byteLimit: limits.byteCount)
            onEvent(.runningPip(package: "\(package)==\(version)"))
            return try await pip.run()
        }
    }

    /// Compares the digest of a file that no download has verified.
    private func verify(_ source: BaseSource, _ file: URL) throws {
        if case .https = source.location { return }
        guard let expected = source.sha256 else { return }
        let found = try FileDigest.sha256(of: file)
        guard found == expected else {
            throw BaseInstallationError.wrongDigest(
                source: source.record.source.location, found: found, expected: expected)
        }
    }

    /// Converts a verified file to a model file, and returns notes.
    private func convert(_ source: BaseSource, _ file: URL, to output: URL) throws -> [String] {
        // The file may be a temporary one, so errors name its source.
        let path = source.record.source.location
        do {
            guard ModelFile.isModelFile(at: file) else { return try importModel(source, file, to: output) }
            guard source.architecture == nil else {
                throw ImportError.Problem.unsuitableModel(
                    found: "a model file of Imprint, which contains its architecture",
                    advice: "Install it without an architecture")
            }
            // It must be complete and valid, before a copy with the same bytes is installed.
            _ = try ModelFile(contentsOf: file)
            let bytes = try Data(contentsOf: file, options: .alwaysMapped)
            try AtomicFile.write(to: output) { file in try bytes.withUnsafeBytes { try file.write($0) } }
            return []
        } catch let problem as ImportError.Problem {
            throw ImportError(path: path, problem: problem)
        } catch let error as ImportError {
            throw ImportError(path: path, problem: error.problem)
        } catch let error as ModelFileError {
            throw ModelFileError(path: path, problem: error.problem)
        }
    }

    private func importModel(_ source: BaseSource, _ file: URL, to output: URL) throws -> [String] {
        var importer = ModelImporter()
        importer.architecture = source.architecture ?? source.entry?.architecture
        if let entry = source.entry {
            importer.inputSize = Size2D(entry.inputSize)
            importer.normalization = ModelImporter.InputNormalization(mean: entry.mean, scale: entry.scale)
        }
        let imported = try importer.read(file)
        try imported.model.write(to: output)
        return imported.notes
    }
}

/// A base model to install.
struct BaseSource: Sendable {
    let name: String
    let location: BaseModelCatalog.Entry.Source
    /// The expected SHA-256 of the file in lower case; nil only for a local folder.
    let sha256: String?
    var architecture: String?
    /// The entry of the catalog with the settings of the conversion and the licence.
    var entry: BaseModelCatalog.Entry?
    /// Whether the user has accepted the licence of the entry.
    private var isLicenseAccepted = false

    init(name: String, location: BaseModelCatalog.Entry.Source, sha256: String?) {
        (self.name, self.location, self.sha256) = (name, location, sha256)
    }

    /// Describes an entry whose licence the user has accepted.
    init(_ entry: BaseModelCatalog.Entry) {
        self.init(name: entry.name, location: entry.source, sha256: entry.sha256)
        self.entry = entry
        isLicenseAccepted = true
    }

    var record: BaseRecord {
        let source: InstalledBase.Source =
            switch location {
            case .pip(let package, let version, let path):
                InstalledBase.Source(kind: .pip, location: "\(package)/\(path)", version: version)
            case .https(let url): InstalledBase.Source(kind: .https, location: VerifiedDownload.redacted(url))
            case .file(let url): InstalledBase.Source(kind: .file, location: url.standardizedFileURL.path)
            }
        return BaseRecord(
            name: name, source: source, sourceSHA256: sha256, license: entry?.license.name,
            isLicenseAccepted: isLicenseAccepted)
    }
}
