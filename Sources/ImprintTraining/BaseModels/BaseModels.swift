public import Foundation
internal import ImprintCore
public import ImprintModel

/// The folder of installed base models: pretrained networks to fine-tune, by name.
///
/// ```swift
/// let bases = BaseModels()
/// for base in try bases.installed { print(base.name, base.license ?? "") }
///
/// var configuration = ClassifierConfiguration()
/// configuration.start = .pretrained(try bases.model(named: "efficientnet-lite0"))
/// ```
///
/// Each base model has a record `NAME.json` with the name of its model file, its source, its licence and the SHA-256 of both the source and
/// the model file. The digest is verified whenever a base model is used. This type does not need a network connection; `BaseModelInstaller`
/// in the module ImprintBaseModels installs base models. Any number of threads and processes may use a folder at the same time.
public struct BaseModels: Sendable {
    /// The folder, which need not exist.
    public let folder: URL

    /// Opens a folder of base models; it is created by the first installation.
    public init(folder: URL = BaseModels.defaultFolder) { self.folder = folder }

    /// The default folder: `models` in the folder that the environment variable `IMPRINT_HOME` names; otherwise `imprint/models` in
    /// `XDG_DATA_HOME` or `~/.local/share`, and on Apple platforms in `~/Library/Application Support`.
    public static var defaultFolder: URL {
        defaultFolder(
            environment: ProcessInfo.processInfo.environment, home: URL.homeDirectory)
    }

    /// Returns the default folder in an environment.
    static func defaultFolder(environment: [String: String], home: URL) -> URL {
        if let path = environment["IMPRINT_HOME"], !path.isEmpty {
            return URL(filePath: path).appending(path: "models")
        }
        #if canImport(Darwin)
            let data = home.appending(path: "Library/Application Support")
        #else
            // The XDG base directory specification ignores relative paths.
            let xdg = environment["XDG_DATA_HOME"].flatMap { $0.hasPrefix("/") ? URL(filePath: $0) : nil }
            let data = xdg ?? home.appending(path: ".local/share")
        #endif
        return data.appending(path: "imprint/models")
    }
}

// MARK: Reading

extension BaseModels {
    /// The installed base models in alphabetical order, including those that cannot be used.
    ///
    /// Reading it computes the digest of each model file.
    /// - Throws: `FileError` if the folder exists but cannot be read.
    public var installed: [InstalledBase] { get throws { try names().compactMap(installed) } }

    /// Returns the installed base model with a name, which has a `problem` if it cannot be used; nil if it is not installed.
    public func installed(named name: String) -> InstalledBase? {
        guard Self.isValid(name) else { return nil }
        var record = record(of: name)
        while true {
            let base = record.map { inspect(name, $0) }
            // Another process may have replaced or removed the base model in the meantime.
            let newRecord = self.record(of: name)
            if newRecord == record { return base }
            record = newRecord
        }
    }

    /// The first installed base model, in alphabetical order, that can be fine-tuned; nil if no such model is installed.
    ///
    /// Training starts from it by default; see `ClassifierConfiguration.Start.automatic`.
    /// - Throws: `FileError` if the folder exists but cannot be read.
    public var first: InstalledBase? { get throws { try firstModel { _, _ in }?.base } }

    /// Returns the first installed base model in alphabetical order that can be fine-tuned, with its model; nil without one.
    /// - Parameter onSkip: Receives each base model before it that cannot be used, with the error of loading it.
    /// - Throws: `FileError` if the folder exists but cannot be read.
    package func firstModel(
        onSkip: (InstalledBase, any Error) -> Void
    ) throws -> (base: InstalledBase, model: ModelFile)? {
        for name in try names() {
            guard let (base, result) = load(name) else { continue }
            switch result {
            // Other models, such as detectors that are ready to use, are not base models.
            case .success(let model): if model.head.isTrainable { return (base, model) }
            case .failure(let error): onSkip(base, error)
            }
        }
        return nil
    }

    /// Returns an installed base model, to fine-tune.
    /// - Throws: `BaseModelError` if it is not installed or cannot be used; the errors of `ModelFile`; `FileError` if a file cannot be read.
    public func model(named name: String) throws -> ModelFile {
        guard let (_, result) = load(name) else {
            throw BaseModelError.notInstalled(name: name, folder: folder.path)
        }
        return try result.get()
    }

    /// Loads an installed base model; returns nil without one.
    private func load(_ name: String) -> (base: InstalledBase, model: Result<ModelFile, any Error>)? {
        while let base = installed(named: name) {
            let model = Result { try base.model() }
            // Another process may have replaced the base model before its file was opened.
            if case .failure = model, installed(named: name) != base { continue }
            return (base, model)
        }
        return nil
    }

    /// Returns a base model, with its problem if it cannot be used.
    private func inspect(_ name: String, _ contents: Result<Data, FileError>) -> InstalledBase {
        let recordFile = recordFile(name)
        func unusable(_ problem: InstalledBase.Problem) -> InstalledBase {
            InstalledBase(name: name, file: recordFile, record: nil, problem: problem)
        }
        do {
            let record = try BaseRecord(contents.get(), of: name)
            let file = folder.appending(path: record.modelFile)
            return InstalledBase(
                name: name, file: file, record: record, problem: damage(of: file, record).map { .damaged(reason: $0) })
        } catch BaseRecord.Invalid.newerFormat {
            return unusable(.newerRecord)
        } catch FileError.cannotRead(_, let reason) {
            return unusable(.damaged(reason: "its record cannot be read: \(reason)"))
        } catch {
            return unusable(.damaged(reason: "its record is invalid"))
        }
    }

    /// Returns the reason why a model file does not match its record, or nil if it does.
    private func damage(of file: URL, _ record: BaseRecord) -> String? {
        do {
            let found = try FileDigest.sha256(of: file)
            return found == record.modelSHA256 ? nil : "its SHA-256 is \(found), expected \(record.modelSHA256)"
        } catch FileError.cannotRead(_, let reason) {
            return FileManager.default.fileExists(atPath: file.path)
                ? "the file cannot be read: \(reason)" : "the file is missing"
        } catch {
            return "\(error)".clause
        }
    }

    /// Returns the names that have a record, in alphabetical order.
    private func names() throws -> [String] {
        try fileNames().filter { $0.hasSuffix(Self.recordSuffix) }.map { String($0.dropLast(Self.recordSuffix.count)) }
            .filter(Self.isValid).sorted(by: precedes)
    }

    private func fileNames() throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
        } catch {
            guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
            throw FileError.cannotRead(path: folder.path, reason: reason(of: error))
        }
    }

    /// Returns the bytes of a record, or nil if it does not exist.
    private func record(of name: String) -> Result<Data, FileError>? {
        let path = recordFile(name).path
        do throws(FileError) {
            guard let bytes = try RegularFile(path).contents(limit: Self.maximumRecordByteCount) else {
                let reason = "it has more than \(Self.maximumRecordByteCount) bytes"
                return .failure(.cannotRead(path: path, reason: reason))
            }
            return .success(bytes)
        } catch {
            guard FileManager.default.fileExists(atPath: path) else { return nil }
            return .failure(error)
        }
    }
}

// MARK: Names

extension BaseModels {
    private static let recordSuffix = ".json"
    /// The largest record that is read; a record is much smaller.
    private static let maximumRecordByteCount = 1 << 20

    /// The name of the base model that comes with Imprint, which no installed one can have.
    package static let builtInName = "built-in"

    /// Whether a name is valid: 1 to 64 ASCII letters, digits, dots, underscores and hyphens; the first is a letter or digit.
    public static func isValid(_ name: String) -> Bool { name.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._-]{0,63}/) != nil }

    /// The record of a base model.
    package func recordFile(_ name: String) -> URL { folder.appending(path: name + Self.recordSuffix) }
}

// MARK: Removing

extension BaseModels {
    /// Removes a base model, its record and a partial download of it.
    ///
    /// If another process is changing the folder, the calling thread waits for it, at most ten seconds.
    /// - Throws: `BaseModelError.notInstalled` if there is nothing to remove, `BaseModelError.inUse` if another process does not finish in
    ///   time, `FileError` if a file cannot be removed.
    public func remove(_ name: String) throws {
        let staging = BaseStaging(self, name)
        func exists() throws -> Bool {
            guard Self.isValid(name) else { return false }
            return try [recordFile(name), staging.folder].contains { FileManager.default.fileExists(atPath: $0.path) }
                || fileNames().contains { BaseModelFile($0)?.name == name }
        }
        guard try exists() else { throw BaseModelError.notInstalled(name: name, folder: folder.path) }
        let end = ContinuousClock.now + .seconds(10)
        while true {
            if let lock = try FileLock(folder: folder) {
                defer { withExtendedLifetime(lock) {} }
                guard try exists() else { throw BaseModelError.notInstalled(name: name, folder: folder.path) }
                // The record first: without it, the base model is not installed.
                try removeFile(recordFile(name))
                try AtomicFile.flushNames(in: folder.path, shownAs: folder.path)
                try removeLeftovers(of: name)
                return try staging.removeAll()
            }
            guard ContinuousClock.now < end else { throw BaseModelError.inUse(folder: folder.path) }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }

    /// Removes the model files that no record names, such as those that a killed installation left.
    ///
    /// Call it only while the folder is locked. Files of base models whose record cannot be read stay.
    /// - Parameter name: The base model that is being installed or removed; a file that an older version of Imprint stored for it is removed too.
    package func removeLeftovers(of name: String) throws {
        for file in try fileNames() {
            guard let parts = BaseModelFile(file), parts.isUnique || parts.name == name else { continue }
            if let contents = record(of: parts.name) {
                guard let record = try? BaseRecord(contents.get(), of: parts.name), record.modelFile != file else {
                    continue
                }
            }
            try removeFile(folder.appending(path: file))
        }
    }

    /// Removes a file or a folder, if it exists.
    package func removeFile(_ file: URL) throws {
        do {
            try FileManager.default.removeItem(at: file)
        } catch {
            guard FileManager.default.fileExists(atPath: file.path) else { return }
            throw FileError.cannotWrite(
                path: file.path, reason: reason(of: error), remedy: "Check the permissions of its folder.")
        }
    }
}
