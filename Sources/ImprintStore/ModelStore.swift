public import Foundation
public import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork
internal import Synchronization

/// A folder of verified models with one current model.
///
/// ```swift
/// let store = try ModelStore(at: folder)
/// try await store.install(from: url, verification: Verification(sha256: digest))
/// let best = try store.live().current.classify(photo)[0]
/// ```
///
/// Before it uses a new model, the store verifies the digest or signature, and classifies a test image. If an installation fails or the
/// power is cut, the store keeps using the current model. After an installation, the previous model stays for `rollBack()`.
///
/// A store is safe to use from any number of threads, and several processes may share a folder. Only stores may write to the
/// folder.
public final class ModelStore: Sendable {
    private struct Loaded {
        let model: InstalledModel
        let classifier: ImageClassifier
    }

    /// The loaded models of this process.
    private struct Memory {
        /// The model in use, after its first use.
        var loaded: Loaded?
        var live: LiveClassifier?

        mutating func use(_ new: Loaded) {
            loaded = new
            live?.replace(with: new.classifier)
        }
    }

    private let files: any StoreFiles
    private let folder: String
    private let threads: Int
    /// The lock is held while a model is loaded or replaced, so that each model is loaded only once.
    private let memory = Mutex(Memory())

    /// Opens the store in a folder, and creates the folder if necessary.
    /// - Parameters:
    ///   - folder: The folder, used only by stores.
    ///   - threads: The maximum number of threads of one classification.
    /// - Throws: `FileError` if the folder cannot be created.
    public convenience init(at folder: URL, threads: Int = 1) throws {
        self.init(try Disk(folder), folder: folder.path, threads: threads)
    }

    init(_ files: any StoreFiles, folder: String, threads: Int = 1) {
        self.files = files
        self.folder = folder
        self.threads = threads
    }

    /// The model in use, read from the folder; nil before the first installation.
    ///
    /// - Throws: `StoreError.damagedIndex` and `newerIndex` if the store's index cannot be used, `FileError` if it cannot be
    ///   read.
    public var current: InstalledModel? { get throws { try StoreIndex(in: files)?.current } }

    /// The model that `rollBack()` would restore; nil if there is none.
    ///
    /// - Throws: The errors of `current`.
    public var previous: InstalledModel? { get throws { try StoreIndex(in: files)?.previous } }
}

// MARK: Using

extension ModelStore {
    /// The classifier of the model in use.
    ///
    /// Calls return the same, tested object until the model changes. If another process has installed a new model, the store loads that
    /// model, and `live()` uses it too.
    /// - Throws: `StoreError.empty` before the first model, `StoreError.damaged` if the file has changed since its
    ///   verification, and the errors of `current`.
    public func load() throws -> ImageClassifier { try memory.withLock { try load(&$0).classifier } }

    /// A holder of the classifier in use; `install` and `rollBack` replace its classifier while requests run.
    /// - Throws: The errors of `load()`.
    public func live() throws -> LiveClassifier {
        try memory.withLock { memory in
            let loaded = try load(&memory)
            let live = memory.live ?? LiveClassifier(loaded.classifier)
            memory.live = live
            return live
        }
    }

    private func load(_ memory: inout Memory) throws -> Loaded {
        while true {
            guard let index = try StoreIndex(in: files) else { throw StoreError.empty(folder: folder) }
            if let loaded = memory.loaded, loaded.model.sha256 == index.current.sha256 { return loaded }
            do {
                let loaded = try verified(index.current, canRollBack: index.previous != nil)
                memory.use(loaded)
                return loaded
            } catch {
                // Another process may have removed the file after it installed others.
                if try StoreIndex(in: files) == index { throw error }
            }
        }
    }

    /// Loads an installed model, unless its file has changed.
    private func verified(_ model: InstalledModel, canRollBack: Bool) throws -> Loaded {
        func damaged(_ reason: String) -> StoreError {
            .damaged(file: files.path(of: model.fileName), reason: reason, canRollBack: canRollBack)
        }
        guard try files.size(of: model.fileName) != nil else { throw damaged("it is missing") }
        let found = try files.digest(of: model.fileName).sha256
        guard found == model.sha256 else { throw damaged("its SHA-256 is \(found)") }
        return Loaded(model: model, classifier: try loadAndTest(model.fileName))
    }

    /// Loads a classifier and classifies a test image, which also creates its execution plan.
    private func loadAndTest(_ name: String) throws -> ImageClassifier {
        let classifier = try ImageClassifier(try files.modelFile(name), threads: threads)
        let (width, height) = (classifier.model.preprocessing.width, classifier.model.preprocessing.height)
        // All brightness values, because an overflow may occur only for some values.
        let samples = (0..<width * height * 3).map { UInt8(truncatingIfNeeded: $0 &* 151) }
        _ = try classifier.classify(RasterImage(width: width, height: height, channels: 3, samples: samples))
        return classifier
    }
}

// MARK: Changing

extension ModelStore {
    /// Installs a model and starts to use it.
    ///
    /// The store downloads, verifies and tests the file, and then replaces the model in use. That model becomes the previous model unless
    /// its file is damaged. The store removes older models. The next installation from the same URL resumes an interrupted download if the
    /// server supports it.
    ///
    /// Cancelling the task ends the download. Errors do not change the models of the store, except `FileError.notConfirmed`:
    /// then the new model is in use, and a power cut may restore the previous one.
    /// - Parameters:
    ///   - url: A file, http or https URL of the model.
    ///   - verification: The expected digest or signature of the file.
    ///   - limits: The limits of the download.
    /// - Returns: The model in use after the installation.
    /// - Throws: `StoreError`, also for a damaged index (`damagedIndex`), which `install` does not replace; `ImprintError.invalidSetting`
    ///   for limits out of range; `FileError` if a file cannot be read or written; `CancellationError`.
    @discardableResult
    public func install(
        from url: URL, verification: Verification, limits: DownloadLimits = DownloadLimits()
    ) async throws -> InstalledModel {
        try limits.check()
        let fetch = try Fetch(url, limits)
        guard let lock = try files.lock("download.lock") else { throw StoreError.inUse(folder: folder) }
        defer { withExtendedLifetime(lock) {} }
        // A damaged index is not replaced, because it records the versions that protect from older models. Report it before the download.
        _ = try StoreIndex(in: files)
        let signature = try await signature(verification, limits)
        let download = Download(files: files, fetch: fetch)
        let hasResumed = try await download.run(resumes: true)
        do {
            return try await finish(url, verification, signature)
        } catch let error as StoreError where hasResumed && error.isIntegrityFailure {
            // The partial file may have been damaged, for example by a power cut.
            _ = try await download.run(resumes: false)
            return try await finish(url, verification, signature)
        }
    }

    /// Restores the previous model, and removes the model in use.
    ///
    /// Afterwards, `AcceptedVersions.increasing` still rejects models that are older than the removed model, but not that model itself.
    ///
    /// If another process is changing the store, the thread of the caller waits for it, at most ten seconds.
    /// - Returns: The model in use after the rollback.
    /// - Throws: `StoreError.nothingToRollBackTo`; `StoreError.damaged` if the file of the previous model has changed since its
    ///   verification, which keeps the model in use; `StoreError.inUse` if another process does not finish in time; `FileError`
    ///   if a file cannot be read or written; and the errors of `current`.
    @discardableResult
    public func rollBack() throws -> InstalledModel {
        try withExclusiveAccess {
            let index = try StoreIndex(in: files)
            guard let previous = index?.previous else { throw StoreError.nothingToRollBackTo(folder: folder) }
            let loaded = try verified(previous, canRollBack: false)
            try change(to: loaded, previous: nil, after: index)
            return previous
        }
    }

    /// The result of fetching a signature.
    private enum FetchedSignature: Sendable {
        case ed25519(Data, publicKey: Data)
        /// The signed SHA-256 digest of the model.
        case digest(String)
    }

    private func signature(_ verification: Verification, _ limits: DownloadLimits) async throws -> FetchedSignature? {
        guard let (source, scheme) = verification.signature else { return nil }
        switch scheme {
        case .ed25519(let publicKey):
            let length = Verification.signatureLength
            let bytes = try await bytes(of: source, limits, "the \(length) bytes of an Ed25519 signature", length)
            try Verification.check(bytes)
            return .ed25519(bytes, publicKey: publicKey)
        case .bundle(let key):
            let length = Verification.maximumBundleLength
            let bytes = try await bytes(of: source, limits, "the signature of one file", length)
            return .digest(try Verification.signedDigest(bytes, source.name, key))
        }
    }

    private func bytes(
        of signature: Verification.Signature, _ limits: DownloadLimits, _ expected: String, _ maximum: Int
    ) async throws -> Data {
        switch signature {
        case .bytes(let bytes): return bytes
        case .file(let url):
            var limits = limits
            // A signature is so small that it must arrive within one interval.
            (limits.byteCount, limits.bytesPerInterval) = (maximum, maximum)
            do {
                return try await Fetch(url, limits).small()
            } catch StoreError.tooSlow(let url, let byteCount, let interval, _) {
                throw StoreError.interrupted(
                    url: url, byteCount: byteCount, reason: "the signature did not arrive within \(interval)")
            } catch StoreError.tooLarge(let url, _, let limit) {
                throw StoreError.invalidVerification(
                    name: "signature", found: "more than \(limit) bytes in \(url)", expected: expected)
            }
        }
    }

    /// Verifies, tests and activates the downloaded file, on another thread.
    private func finish(
        _ url: URL, _ verification: Verification, _ signature: FetchedSignature?
    ) async throws -> InstalledModel {
        try Task.checkCancellation()
        return try await onDedicatedThread { [self] in
            do {
                let model = try verify(url, verification, signature)
                return try activate(try candidate(model), verification.versions)
            } catch let error as StoreError where error.requiresNewDownload {
                // If removal fails, the next installation detects the damage.
                try? Download.forget(in: files)
                throw error
            }
        }
    }

    private func verify(
        _ url: URL, _ verification: Verification, _ signature: FetchedSignature?
    ) throws -> InstalledModel {
        try files.flush(Download.fileName)
        let (found, byteCount) = try files.digest(of: Download.fileName)
        if let expected = verification.sha256, found != expected {
            throw StoreError.wrongDigest(url: url.redacted, found: found, expected: expected)
        }
        switch signature {
        case .ed25519(let bytes, let publicKey):
            guard try files.isSigned(Download.fileName, bytes, by: publicKey) else {
                throw StoreError.wrongSignature(url: url.redacted)
            }
        case .digest(let expected):
            guard found == expected else {
                throw StoreError.wrongDigest(url: url.redacted, found: found, expected: expected)
            }
        case nil: break
        }
        let now = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
        return InstalledModel(
            sha256: found, byteCount: byteCount, source: url.redacted, publicKey: verification.publicKey, date: now)
    }

    /// Tests the downloaded and verified file.
    private func candidate(_ model: InstalledModel) throws -> Loaded {
        func loaded(_ classifier: ImageClassifier) -> Loaded {
            var model = model
            model.version = classifier.model.details.version
            return Loaded(model: model, classifier: classifier)
        }
        if let known = memory.withLock(\.loaded), known.model.sha256 == model.sha256 { return loaded(known.classifier) }
        do {
            return loaded(try loadAndTest(Download.fileName))
        } catch  where !(error is FileError) {
            throw StoreError.unusable(url: model.source, reason: "\(error)".clause)
        }
    }

    /// Replaces the model in use with the downloaded, verified and tested model.
    private func activate(_ new: Loaded, _ versions: AcceptedVersions) throws -> InstalledModel {
        try withExclusiveAccess {
            let index = try StoreIndex(in: files)
            try versions.check(new.model, newest: index?.newest(for: new.model))
            try files.rename(Download.fileName, to: new.model.fileName)
            try files.flushNames()
            let older = [index?.current, index?.previous].compactMap(\.self).filter { $0.sha256 != new.model.sha256 }
            // The newest intact model; if all are unreadable now, the newest, because a failed read does not prove damage.
            let intact = older.first { (try? files.digest(of: $0.fileName).sha256) == $0.sha256 }
            try change(to: new, previous: intact ?? older.first, after: index)
            // Without the partial file, its record is meaningless.
            try? files.remove(Download.recordName)
            return new.model
        }
    }

    /// Writes the index, starts to use the model, and removes unused model files.
    private func change(to loaded: Loaded, previous: InstalledModel?, after older: StoreIndex?) throws {
        let index = StoreIndex(current: loaded.model, previous: previous, after: older)
        try memory.withLock { memory in
            do {
                try index.write(to: files)
            } catch {
                guard (try? StoreIndex(in: files)) == index else { throw error }
                // The index is written, but a power cut may still undo it.
                memory.use(loaded)
                throw FileError.notConfirmed(path: files.path(of: StoreIndex.fileName), reason: "\(error)".clause)
            }
            memory.use(loaded)
        }
        // The model is already in use; the next change removes files that cannot be removed now.
        let required = [loaded.model.fileName, previous?.fileName]
        for name in (try? files.names()) ?? [] where name.hasSuffix(".imprint") && !required.contains(name) {
            try? files.remove(name)
        }
    }

    /// Runs `body` exclusively among all threads and processes; classification does not wait for it.
    private func withExclusiveAccess(_ body: () throws -> InstalledModel) throws -> InstalledModel {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(10)
        while true {
            if let lock = try files.lock("lock") {
                defer { withExtendedLifetime(lock) {} }
                return try body()
            }
            guard clock.now < end else { throw StoreError.inUse(folder: folder) }
            Thread.sleep(forTimeInterval: 0.01)
        }
    }
}

extension Verification.Signature {
    /// The name of the signature in error messages.
    fileprivate var name: String { if case .file(let url) = self { url.redacted } else { "the signature" } }
}

extension StoreError {
    /// Whether the file failed verification.
    fileprivate var isIntegrityFailure: Bool {
        switch self {
        case .wrongDigest, .wrongSignature: true
        default: false
        }
    }

    /// Whether the file must be downloaded again.
    fileprivate var requiresNewDownload: Bool {
        switch self {
        case .unusable, .outdated: true
        default: isIntegrityFailure
        }
    }
}
