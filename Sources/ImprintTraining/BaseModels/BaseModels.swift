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
/// Each base model is a model file `NAME.imprint` with a record `NAME.json`: its source, its licence and the SHA-256 of both the source and
/// the model file. Every use compares the digest. This type needs no network; `BaseModelInstaller` in the module ImprintBaseModels installs
/// base models. Any number of threads and processes may use a folder at the same time.
public struct BaseModels: Sendable {
    /// The folder, which need not exist.
    public let folder: URL

    /// Opens a folder of base models; it is created by the first installation.
    public init(folder: URL = BaseModels.defaultFolder) { self.folder = folder }

    /// The default folder: `models` in the folder that the environment variable `IMPRINT_HOME` names; otherwise `imprint/models` in
    /// `XDG_DATA_HOME` or `~/.local/share`, and on macOS in `~/Library/Application Support`.
    public static var defaultFolder: URL {
        defaultFolder(
            environment: ProcessInfo.processInfo.environment, home: FileManager.default.homeDirectoryForCurrentUser)
    }

    /// Returns the default folder in an environment.
    static func defaultFolder(environment: [String: String], home: URL) -> URL {
        if let path = environment["IMPRINT_HOME"], !path.isEmpty {
            return URL(filePath: path).appending(path: "models")
        }
        #if os(macOS)
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
    /// The installed base models in alphabetical order, including damaged ones.
    ///
    /// Reading it computes the digest of each model file.
    /// - Throws: `FileError` if the folder exists but cannot be read.
    public var installed: [InstalledBase] {
        get throws {
            let suffixes = [Self.recordSuffix, Self.modelSuffix]
            let names = try fileNames().compactMap { file in
                suffixes.first { file.hasSuffix($0) }.map { String(file.dropLast($0.count)) }
            }
            return try Set(names.filter(Self.isValid)).sorted(by: precedes).compactMap(installed)
        }
    }

    /// Returns the installed base model with a name, or nil if there is none; it may be damaged.
    /// - Throws: `FileError` if the folder or the model file cannot be read.
    public func installed(named name: String) throws -> InstalledBase? {
        guard Self.isValid(name) else { return nil }
        while true {
            let record = try contents(of: recordFile(name))
            let base = try inspect(name, record)
            // Another process may have replaced or removed the base model meanwhile.
            if try contents(of: recordFile(name)) == record { return base }
        }
    }

    /// The first installed base model in alphabetical order, or nil if none is installed; it may be damaged.
    ///
    /// Training starts from it by default; see `ClassifierConfiguration.Start.automatic`.
    /// - Throws: `FileError` if the folder exists but cannot be read.
    public var first: InstalledBase? { get throws { try installed.first } }

    /// Returns an installed base model, to fine-tune.
    /// - Throws: `BaseModelError` if it is not installed or damaged; the errors of `ModelFile`; `FileError` if a file cannot be read.
    public func model(named name: String) throws -> ModelFile {
        guard let base = try installed(named: name) else {
            throw BaseModelError.notInstalled(name: name, folder: folder.path)
        }
        return try base.model()
    }

    /// Returns a base model, with the damage if its file does not match its record, or nil if neither exists.
    private func inspect(_ name: String, _ contents: Data?) throws -> InstalledBase? {
        let file = modelFile(name)
        let exists = FileManager.default.fileExists(atPath: file.path)
        guard contents != nil || exists else { return nil }
        let record: BaseRecord?
        var damage: String?
        do {
            record = try contents.map { try BaseRecord($0, of: name) }
            if record == nil { damage = "its record \(recordFile(name).path) is missing" }
        } catch {
            record = nil
            damage = "its record \(recordFile(name).path) is invalid"
        }
        if let record {
            if !exists {
                damage = "the file is missing"
            } else {
                let found = try FileDigest.sha256(of: file)
                if found != record.modelSHA256 {
                    damage = "its SHA-256 is \(found), expected \(record.modelSHA256)"
                }
            }
        }
        return InstalledBase(name: name, file: file, record: record, damage: damage)
    }

    private func fileNames() throws -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: folder.path)
        } catch {
            guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
            throw FileError.cannotRead(path: folder.path, reason: error.localizedDescription)
        }
    }

    /// Returns the bytes of a small file, or nil if it does not exist.
    private func contents(of file: URL) throws -> Data? {
        do {
            return try Data(contentsOf: file)
        } catch {
            guard FileManager.default.fileExists(atPath: file.path) else { return nil }
            throw FileError.cannotRead(path: file.path, reason: error.localizedDescription)
        }
    }
}

// MARK: Names

extension BaseModels {
    private static let modelSuffix = ".imprint"
    private static let recordSuffix = ".json"

    /// Whether a name is valid: 1 to 64 ASCII letters, digits, dots, underscores and hyphens; the first is a letter or digit.
    public static func isValid(_ name: String) -> Bool { name.wholeMatch(of: /[A-Za-z0-9][A-Za-z0-9._-]{0,63}/) != nil }

    /// The model file of a base model.
    package func modelFile(_ name: String) -> URL { folder.appending(path: name + Self.modelSuffix) }

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
        func exists() -> Bool {
            Self.isValid(name)
                && [modelFile(name), recordFile(name), staging.folder].contains {
                    FileManager.default.fileExists(atPath: $0.path)
                }
        }
        guard exists() else { throw BaseModelError.notInstalled(name: name, folder: folder.path) }
        let end = ContinuousClock.now + .seconds(10)
        while true {
            if let lock = try BaseModelsLock(folder) {
                defer { withExtendedLifetime(lock) {} }
                guard exists() else { throw BaseModelError.notInstalled(name: name, folder: folder.path) }
                // The model first, because its record alone is reported as a damaged base model.
                for file in [modelFile(name), recordFile(name)] where unlink(file.path) != 0 && errno != ENOENT {
                    throw FileError.cannotWrite(file.path, errno: errno)
                }
                try staging.removeAll()
                return try AtomicFile.flushNames(in: folder.path, shownAs: folder.path)
            }
            guard ContinuousClock.now < end else { throw BaseModelError.inUse(folder: folder.path) }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}
