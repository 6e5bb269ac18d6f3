internal import Dispatch
public import Foundation
public import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintNetwork
internal import Synchronization

/// A folder of verified models, of which one is in use.
///
/// ```swift
/// let store = try ModelStore(at: folder)
/// try await store.install(from: url, verification: Verification(sha256: digest))
/// let best = try store.live().current.classify(photo)[0]
/// ```
///
/// A model is in use only after its digest or signature was verified and it has classified a picture; until then, and wherever an
/// installation fails or power is cut, it is the one before. That one stays for `rollBack()`.
///
/// A store may be used from any number of threads, and a folder by several processes. Nobody else may write to the folder.
public final class ModelStore: Sendable {
    private struct Loaded {
        let model: InstalledModel
        let classifier: ImageClassifier
    }

    /// What this process has of the store.
    private struct Memory {
        /// The model in use, once it was asked for.
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
    /// Held while a model is loaded or exchanged, so that each is loaded but once.
    private let memory = Mutex(Memory())

    /// Opens the store in a folder, which is made if there is none.
    /// - Parameters:
    ///   - folder: The folder, of the store alone.
    ///   - threads: How many threads one classification may use.
    /// - Throws: `FileError` if the folder cannot be made.
    public convenience init(at folder: URL, threads: Int = 1) throws {
        self.init(try Disk(folder), folder: folder.path, threads: threads)
    }

    init(_ files: any StoreFiles, folder: String, threads: Int = 1) {
        self.files = files
        self.folder = folder
        self.threads = threads
    }

    /// The model in use, as the folder says now; `nil` before the first.
    ///
    /// - Throws: `StoreError.damagedIndex` and `newerIndex` if the store's index cannot be used, `FileError` if it cannot be read.
    public var current: InstalledModel? { get throws { try StoreIndex(in: files)?.current } }

    /// The model that `rollBack()` would go back to; nil if there is none.
    ///
    /// - Throws: As `current`.
    public var previous: InstalledModel? { get throws { try StoreIndex(in: files)?.previous } }
}

// MARK: Using

extension ModelStore {
    /// The classifier of the model in use.
    ///
    /// It is always the same one for the same model, and has classified before. Where another process has installed a model meanwhile,
    /// that one is loaded, and `live()` has it from then on.
    /// - Throws: `StoreError.empty` before the first model, `StoreError.damaged` if its file is not the one that was verified; also what
    ///   `current` throws.
    public func load() throws -> ImageClassifier { try memory.withLock { try load(&$0).classifier } }

    /// The classifier of the model in use, in which `install` and `rollBack` put another in its place while requests run.
    /// - Throws: As `load()`.
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
        guard try files.size(of: model.fileName) != nil else { throw damaged("it is not there") }
        let found = try files.digest(of: model.fileName).sha256
        guard found == model.sha256 else { throw damaged("its SHA-256 is \(found)") }
        return Loaded(model: model, classifier: try tried(model.fileName))
    }

    /// A classifier that has classified a picture, which is when its plan is made.
    private func tried(_ name: String) throws -> ImageClassifier {
        let classifier = try ImageClassifier(try files.weights(name), threads: threads)
        let (width, height) = (classifier.weights.preprocessing.width, classifier.weights.preprocessing.height)
        // All brightnesses, since what overflows may do so with some alone.
        let samples = (0..<width * height * 3).map { UInt8(truncatingIfNeeded: $0 &* 151) }
        _ = try classifier.classify(RasterImage(width: width, height: height, channels: 3, samples: samples))
        return classifier
    }
}

// MARK: Changing

extension ModelStore {
    /// Brings a model into the store, and into use.
    ///
    /// The file is had, verified and tried, and takes the place of the model in use, which becomes the previous one, unless its file is
    /// damaged; older ones are removed. A download that broke off is gone on from by the next one from the same URL, where the server can.
    ///
    /// Cancelling the task ends the download. Errors leave the models of the store as they were, but for
    /// `FileError.notConfirmed`: then the new model is in use, and a power cut may bring the one before back.
    /// - Parameters:
    ///   - url: Where the model is: a file, http or https URL.
    ///   - verification: What vouches for it.
    ///   - limits: How large it may be, and how slow the server.
    /// - Returns: What is in use now.
    /// - Throws: `StoreError`; `ImprintError.invalidSetting` for limits out of range; `FileError` if a file cannot be read or written;
    ///   `CancellationError`.
    @discardableResult
    public func install(
        from url: URL, verification: Verification, limits: DownloadLimits = DownloadLimits()
    ) async throws -> InstalledModel {
        try limits.check()
        let fetch = try Fetch(url, limits)
        guard let lock = try files.lock("download.lock") else { throw StoreError.inUse(folder: folder) }
        defer { withExtendedLifetime(lock) {} }
        let signature = try await signature(verification, limits)
        let download = Download(files: files, fetch: fetch)
        let hasResumed = try await download.run(resumes: true)
        do {
            return try await finish(url, verification, signature)
        } catch let error as StoreError where hasResumed && error.isOfDamage {
            // What was there before may have been damaged, for instance by a power cut.
            _ = try await download.run(resumes: false)
            return try await finish(url, verification, signature)
        }
    }

    /// Goes back to the model before, and forgets the one in use.
    ///
    /// Where another process changes the store at the moment, the caller's thread waits for it, ten seconds at most.
    /// - Returns: What is in use now.
    /// - Throws: `StoreError.nothingToRollBackTo`, `StoreError.damaged` if the file of the model before is not the one that was
    ///   verified; then the one in use stays. `StoreError.inUse` where another process does not come to an end, `FileError` where a file
    ///   cannot be read or written; also what `current` throws.
    @discardableResult
    public func rollBack() throws -> InstalledModel {
        try exchanging {
            guard let previous = try StoreIndex(in: files)?.previous else {
                throw StoreError.nothingToRollBackTo(folder: folder)
            }
            let loaded = try verified(previous, canRollBack: false)
            try change(to: loaded, previous: nil)
            return previous
        }
    }

    private func signature(_ verification: Verification, _ limits: DownloadLimits) async throws -> Data? {
        switch verification.signature?.0 {
        case nil: return nil
        case .bytes(let bytes): return bytes
        case .file(let url):
            var limits = limits
            // So few bytes come at once, or not.
            (limits.byteCount, limits.bytesPerInterval) = (Verification.signatureLength, Verification.signatureLength)
            do {
                let signature = try await Fetch(url, limits).small()
                try Verification.check(signature)
                return signature
            } catch StoreError.tooLarge(let url, _, let limit) {
                throw StoreError.invalidVerification(
                    what: "signature", found: "more than \(limit) bytes in \(url)",
                    expected: "the \(limit) bytes of an Ed25519 signature")
            }
        }
    }

    /// Verifies what was downloaded and brings it into use, on a thread that may wait.
    private func finish(_ url: URL, _ verification: Verification, _ signature: Data?) async throws -> InstalledModel {
        try Task.checkCancellation()
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(
                    with: Result {
                        do {
                            let model = try self.verify(url, verification, signature)
                            return try self.takeIn(try self.candidate(model))
                        } catch let error as StoreError where error.isOfTheBytes {
                            // What remains is found to be damaged next time.
                            try? Download.forget(in: self.files)
                            throw error
                        }
                    })
            }
        }
    }

    private func verify(_ url: URL, _ verification: Verification, _ signature: Data?) throws -> InstalledModel {
        try files.flush(Download.fileName)
        let (found, byteCount) = try files.digest(of: Download.fileName)
        if let expected = verification.sha256, found != expected {
            throw StoreError.wrongDigest(url: url.shown, found: found, expected: expected)
        }
        let publicKey = verification.signature?.publicKey
        if let publicKey, let signature, try !files.isSigned(Download.fileName, signature, by: publicKey) {
            throw StoreError.wrongSignature(url: url.shown)
        }
        let now = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
        return InstalledModel(sha256: found, byteCount: byteCount, source: url.shown, publicKey: publicKey, date: now)
    }

    /// Tries what was downloaded and verified.
    private func candidate(_ model: InstalledModel) throws -> Loaded {
        if let loaded = memory.withLock(\.loaded), loaded.model.sha256 == model.sha256 {
            return Loaded(model: model, classifier: loaded.classifier)
        }
        do {
            return Loaded(model: model, classifier: try tried(Download.fileName))
        } catch  where !(error is FileError) {
            throw StoreError.unusable(url: model.source, reason: "\(error)")
        }
    }

    /// Puts what was downloaded, verified and tried in the place of the model in use.
    private func takeIn(_ new: Loaded) throws -> InstalledModel {
        try exchanging {
            let index: StoreIndex?
            do {
                index = try StoreIndex(in: files)
            } catch StoreError.damagedIndex {
                // Nothing says any more which models there were; this is how it is mended.
                index = nil
            }
            try files.rename(Download.fileName, to: new.model.fileName)
            try files.flushNames()
            let others = [index?.current, index?.previous].compactMap(\.self).filter { $0.sha256 != new.model.sha256 }
            // The newest that is worth going back to; a disk that cannot be read just now is not yet damage.
            let whole = others.first { (try? files.digest(of: $0.fileName).sha256) == $0.sha256 }
            try change(to: new, previous: whole ?? others.first)
            // Without the file it means nothing.
            try? files.remove(Download.noteName)
            return new.model
        }
    }

    /// Writes which model is in use now, and removes what is not needed any more.
    private func change(to loaded: Loaded, previous: InstalledModel?) throws {
        let index = StoreIndex(current: loaded.model, previous: previous)
        try memory.withLock { memory in
            do {
                try index.write(to: files)
            } catch {
                guard (try? StoreIndex(in: files)) == index else { throw error }
                // The folder has it, and is only not sure to keep it.
                memory.use(loaded)
                throw FileError.notConfirmed(path: files.path(of: StoreIndex.fileName), reason: "\(error)")
            }
            memory.use(loaded)
        }
        // The model is in use already; what stays now is removed by the next change.
        let kept = [loaded.model.fileName, previous?.fileName]
        for name in (try? files.names()) ?? [] where name.hasSuffix(".imprint") && !kept.contains(name) {
            try? files.remove(name)
        }
    }

    /// Changes which model is in use, as the only one of all threads and processes; those who use the store do not wait for it.
    private func exchanging(_ body: () throws -> InstalledModel) throws -> InstalledModel {
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

extension StoreError {
    /// Whether the file is another than was asked for.
    fileprivate var isOfDamage: Bool {
        switch self {
        case .wrongDigest, .wrongSignature: true
        default: false
        }
    }

    /// Whether other bytes are needed.
    fileprivate var isOfTheBytes: Bool { if case .unusable = self { true } else { isOfDamage } }
}
