public import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// Where and how often a run is saved, so that it can go on.
public struct CheckpointOptions: Sendable {
    /// The name of the one file in the folder.
    public static let fileName = "checkpoint.safetensors"

    /// The folder; it is made if there is none.
    public var folder: URL
    /// The least time from one checkpoint to the next; a run that ends, or is stopped, is saved in any case.
    public var interval: Duration
    /// Whether to go on from the checkpoint in the folder, if there is one.
    public var resumes: Bool

    /// Makes options.
    public init(folder: URL, interval: Duration = .seconds(60), resumes: Bool = false) {
        self.folder = folder
        self.interval = interval
        self.resumes = resumes
    }
}

/// The folder that a run's checkpoint lies in.
final class CheckpointStore {
    /// The one file in it.
    let file: URL
    /// The checkpoint to go on from.
    let resumed: Checkpoint?
    /// Whether the checkpoint of a run that has ended will be replaced.
    let replacesFinished: Bool
    private let folder: FolderLock
    private let interval: Duration
    private let clock = ContinuousClock()
    /// When a checkpoint was last written, or could not be.
    private var tried: ContinuousClock.Instant
    private var hasFailed = false

    /// Makes the folder, and reads the checkpoint if it is to be gone on from.
    /// - Throws: `ImprintError` if the checkpoint cannot be used or would be lost, `FileError` where the folder cannot be
    ///   written to.
    init(_ options: CheckpointOptions) throws {
        let folder = options.folder
        file = folder.appending(path: CheckpointOptions.fileName)
        interval = options.interval
        tried = clock.now
        try AtomicFile.makeFolder(folder)
        try AtomicFile.checkWritable(file)
        self.folder = try FolderLock(folder)
        AtomicFile.removeUnfinished(in: folder)
        guard FileManager.default.fileExists(atPath: file.path) else {
            resumed = nil
            replacesFinished = false
            return
        }
        let checkpoint: Checkpoint
        do {
            checkpoint = try Checkpoint(contentsOf: file)
        } catch let error as ModelFileError {
            // The user's own file is not to be removed, as a damaged checkpoint may be.
            if case .notACheckpoint = error.problem { throw error }
            throw ImprintError.unusableCheckpoint(reason: "\(error)")
        } catch let error as SafetensorsError {
            // Nothing is wrong with the file if memory is short.
            if case .outOfMemory = error.problem { throw error }
            throw ImprintError.unusableCheckpoint(reason: "\(error)")
        }
        resumed = options.resumes ? checkpoint : nil
        replacesFinished = !options.resumes
        guard options.resumes || checkpoint.state.progress.isFinished else {
            let progress = checkpoint.state.progress
            throw ImprintError.unfinishedCheckpoint(
                file: file.path, epoch: progress.history.count + 1, of: progress.plannedEpochs)
        }
    }

    /// Whether it is time for the next checkpoint; one that failed is tried again after ten seconds at the earliest.
    var isDue: Bool { clock.now - tried >= (hasFailed ? max(interval, .seconds(10)) : interval) }

    /// Writes a checkpoint in the place of the last one.
    /// - Throws: `FileError` if it cannot be written; the last one is as it was.
    func save(_ checkpoint: Checkpoint) throws {
        hasFailed = true
        defer { tried = clock.now }
        guard Checkpoint.canReplace(file) else {
            throw FileError.cannotWrite(
                path: file.path, reason: "another file took the place of the checkpoint, and is not replaced",
                remedy: "move that file away")
        }
        try checkpoint.write(to: file)
        hasFailed = false
    }
}

extension Checkpoint {
    /// Checks that a run with this beginning and these settings can go on from the checkpoint.
    func checkFits(
        _ network: Network, labels: [String], settings: [String: String], file: URL
    )
        throws(ImprintError)
    {
        func mismatch(_ setting: String, _ found: String, _ expected: String) -> ImprintError {
            .checkpointMismatch(file: file.path, setting: setting, found: found, expected: expected)
        }
        guard labels == self.labels else {
            throw mismatch("labels", labels.joined(separator: ", "), self.labels.joined(separator: ", "))
        }
        for (name, value) in settings.sorted(by: { $0.key < $1.key }) where self.settings[name] != value {
            throw mismatch(name, value, self.settings[name] ?? "none")
        }
        guard network == self.network else { throw mismatch("network", network.name, self.network.name) }
    }
}

/// Keeps other processes from using a folder at the same time; it ends with the process at the latest.
private final class FolderLock {
    private let descriptor: Int32

    /// - Throws: `ImprintError.checkpointInUse` if another process has it. A file system without locks does without.
    init(_ folder: URL) throws(ImprintError) {
        descriptor = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK {
            close(descriptor)
            throw .checkpointInUse(folder: folder.path)
        }
    }

    deinit { close(descriptor) }
}
