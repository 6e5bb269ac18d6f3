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
/// The file is verified before it is parsed. An installation is atomic: if it fails or the process is killed, the installed base models
/// stay unchanged. The folder then contains at most a partial download, which the next installation resumes. Later uses do not need a
/// network.
public struct BaseModelInstaller: Sendable {
    /// The folder to install into.
    public let bases: BaseModels
    /// The base models that can be installed by name.
    public let catalog: BaseModelCatalog
    /// The Python that runs pip; nil for the program in the environment variable `IMPRINT_PYTHON`, or else `python3`.
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
    /// Returns the catalog entry whose licence the user must accept before installing a base model of the catalog.
    /// - Returns: The entry; nil if the catalog has no such name, or if the user accepted the licence for the installed base model.
    public func entryToAccept(_ name: String) -> BaseModelCatalog.Entry? {
        catalog[name].flatMap { needsAcceptance($0, for: name) ? $0 : nil }
    }

    /// Returns the catalog entry whose licence the user must accept before installing a file or a URL.
    ///
    /// It is nil if the catalog does not have the file, or if the user accepted the licence for the installed base model.
    /// - Parameters:
    ///   - url: A file URL, an https URL, or an http URL of this computer.
    ///   - name: The name of the base model; if nil, the name in the catalog, or else the file name without its extension.
    ///   - sha256: The SHA-256 of the file as 64 hexadecimal digits; if nil, that of a local file.
    /// - Throws: `FileError` if the file cannot be read.
    public func entryToAccept(
        from url: URL, named name: String? = nil, sha256: String? = nil
    ) throws -> BaseModelCatalog.Entry? {
        let digest = try digest(of: url, sha256)
        guard let entry = catalog.entry(ofFile: digest) ?? catalog.entry(at: url) else { return nil }
        return needsAcceptance(entry, for: self.name(of: url, name, digest)) ? entry : nil
    }

    private func needsAcceptance(_ entry: BaseModelCatalog.Entry, for name: String) -> Bool {
        guard let base = bases.installed(named: name) else { return true }
        return base.sourceDigest != entry.sha256 || !base.isLicenseAccepted
    }

    /// Returns the SHA-256 of a file in lower case: the expected digest, otherwise the digest of a local file; nil for a local folder.
    private func digest(of url: URL, _ sha256: String?) throws -> String? {
        if let sha256 { return sha256.lowercased() }
        let isFolder = (try? url.resourceValues(forKeys: [.isDirectoryKey]))?.isDirectory ?? false
        return isFolder || !url.isFileURL ? nil : try FileDigest.sha256(of: url)
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
        try requireAcceptance(of: acceptsLicense ? nil : entryToAccept(name))
        return try await install(BaseSource(entry), onEvent)
    }

    /// Installs a base model from a file or a web server; an intact base model from the same file, converted with the same
    /// architecture, is kept.
    ///
    /// The file is an Imprint model file, an ONNX or Core ML model, or a PyTorch checkpoint. A file of the catalog is converted with the
    /// settings of its entry. Cancelling the task ends the download.
    /// - Parameters:
    ///   - url: A file URL, an https URL, or an http URL of this computer.
    ///   - name: The name of the base model; if nil, the name in the catalog, or else the file name without its extension.
    ///   - architecture: The architecture of a PyTorch checkpoint, which has only parameters; nil if the file contains it.
    ///   - sha256: The SHA-256 of the file as 64 hexadecimal digits; required for a URL of a web server.
    ///   - acceptsLicense: Whether the user accepts the licence of the catalog entry, if the catalog has the file or the URL.
    ///   - onEvent: Receives the progress, on any thread.
    /// - Returns: The installed base model.
    /// - Throws: The errors of `install(_:acceptsLicense:onEvent:)`.
    @discardableResult
    public func install(
        from url: URL, named name: String? = nil, architecture: String? = nil, sha256: String? = nil,
        acceptsLicense: Bool = false,
        onEvent: @escaping @Sendable (BaseInstallationEvent) -> Void = { _ in }
    ) async throws -> InstalledBase {
        if let sha256, !FileDigest.isDigest(sha256.lowercased()) {
            throw BaseInstallationError.invalidDigest(found: sha256)
        }
        let shown = url.isFileURL ? url.path : VerifiedDownload.redacted(url)
        if !url.isFileURL {
            try checkSupported(url)
            guard sha256 != nil else { throw BaseInstallationError.digestRequired(url: shown) }
        }
        let digest = try digest(of: url, sha256)
        var source = BaseSource(
            name: self.name(of: url, name, digest), location: url.isFileURL ? .file(url) : .https(url), sha256: digest)
        source.chosenArchitecture = architecture
        source.entry = catalog.entry(ofFile: digest) ?? catalog.entry(at: url)
        guard BaseModels.isValid(source.name) else { throw BaseInstallationError.invalidName(source.name) }
        try requireAcceptance(
            of: acceptsLicense ? nil : source.entry.flatMap { needsAcceptance($0, for: source.name) ? $0 : nil })
        return try await install(source, onEvent)
    }

    private func requireAcceptance(of entry: BaseModelCatalog.Entry?) throws {
        guard let entry else { return }
        throw BaseInstallationError.licenseNotAccepted(name: entry.name, license: entry.license.statement)
    }

    /// Returns the name of the base model from a URL: the given name, the name in the catalog, or the file name.
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
        guard source.name != BaseModels.builtInName else { throw BaseInstallationError.reservedName(source.name) }
        if let base = try kept(source) { return base }
        try AtomicFile.makeFolder(bases.folder)
        let lock = try await lock(onEvent)
        defer { withExtendedLifetime(lock) {} }
        // Another process may have installed it in the meantime.
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

    /// Returns the installed base model if it is intact, from the same file and of the same architecture, or nil if it must be installed.
    /// - Throws: `BaseInstallationError.nameTaken` if it is another one, `BaseModelError.newerRecord` if a newer version of Imprint has
    ///   installed it.
    private func kept(_ source: BaseSource) throws -> InstalledBase? {
        guard let base = bases.installed(named: source.name) else { return nil }
        if base.problem == .newerRecord {
            throw BaseModelError.newerRecord(name: base.name, file: base.file.path)
        }
        guard let record = base.record else { return nil }
        let isSame =
            base.sourceDigest == source.sha256
            && (source.sha256 != nil || record.source.location == source.record.source.location)
        guard isSame else {
            throw BaseInstallationError.nameTaken(name: source.name, source: record.source.location)
        }
        // The contents of folders are not compared, and the user may have accepted the licence only now.
        guard base.problem == nil, source.sha256 != nil, source.entry == nil || record.isLicenseAccepted else {
            return nil
        }
        // Older records lack the architecture.
        let architecture = record.hasArchitecture ? source.architecture : source.chosenArchitecture
        return architecture == nil || architecture == record.architecture ? base : nil
    }

    /// Waits until this installation may change the folder.
    private func lock(_ onEvent: (BaseInstallationEvent) -> Void) async throws -> FileLock {
        var isWaiting = false
        while true {
            if let lock = try FileLock(folder: bases.folder) { return lock }
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
            guard source.chosenArchitecture == nil else {
                throw ImportError.Problem.unsuitableModel(
                    found: "an Imprint model file, which contains its architecture",
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
        importer.architecture = source.architecture
        if let entry = source.settings {
            importer.detector = entry.detector.flatMap(DetectorKind.init)
            importer.inputSize = Size2D(entry.inputSize)
            importer.normalization = ModelImporter.InputNormalization(mean: entry.mean, scale: entry.scale)
        }
        let imported = try importer.read(file)
        try imported.model.write(to: output)
        // A base model gets a new head.
        return imported.notes.filter { !imported.headNotes.contains($0) }
    }
}
