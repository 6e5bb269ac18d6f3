public import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The options of checkpoints: the folder, the interval, and whether a run resumes.
public struct CheckpointOptions: Sendable {
    /// The name of the checkpoint file in the folder.
    public static let fileName = "checkpoint.safetensors"

    /// The checkpoint folder, which is created if necessary.
    public var folder: URL
    /// The minimum time between two checkpoints; a run also saves one when it ends or is stopped.
    public var interval: Duration
    /// Whether to resume from the checkpoint in the folder, if there is one.
    public var resumes: Bool

    /// Creates options.
    public init(folder: URL, interval: Duration = .seconds(60), resumes: Bool = false) {
        self.folder = folder
        self.interval = interval
        self.resumes = resumes
    }
}

/// The checkpoint folder of a run.
final class CheckpointStore {
    /// The checkpoint file.
    let file: URL
    /// The checkpoint to resume from; nil for a new run, and after `takeResumed()`.
    private(set) var resumed: Checkpoint?
    /// How far the finished run came whose checkpoint the run replaces, such as "447 of 20000 epochs"; nil if it replaces none.
    let replacedProgress: String?
    /// The lock of the folder; nil in a process of a group whose first process has it.
    private let lock: FileLock?
    private let interval: Duration
    private let clock = ContinuousClock()
    /// The time of the last attempt to write a checkpoint.
    private var lastAttempt: ContinuousClock.Instant
    private var hasFailed = false

    /// Creates and locks the folder, and reads its checkpoint; nil without options.
    /// - Parameter processes: The processes that train together: only the first one creates and locks the folder, and writes checkpoints.
    /// - Throws: `ImprintError` if the checkpoint is unusable, if another process uses the folder, or if a new run would replace the checkpoint
    ///   of an unfinished run; `ModelFileError` if the file is of another kind; `FileError` if the folder cannot be written or locked;
    ///   `ProcessFailedError` or `ProcessMismatchError` if another process fails or finds another checkpoint.
    static func open(_ options: CheckpointOptions?, processes: ProcessGroup?) throws -> CheckpointStore? {
        guard let options else { return nil }
        let store = try processes.failTogether {
            try CheckpointStore(options, isReadOnly: processes.map { !$0.isFirst } ?? false)
        }
        let progress = store.resumed?.state.progress
        try processes?.checkSame([
            ("checkpoints", progress.map { "round \($0.round + 1), step \($0.batch)" } ?? "none")
        ])
        return store
    }

    private init(_ options: CheckpointOptions, isReadOnly: Bool) throws {
        let folder = options.folder
        file = folder.appending(path: CheckpointOptions.fileName)
        interval = options.interval
        lastAttempt = clock.now
        if isReadOnly {
            lock = nil
        } else {
            try AtomicFile.makeFolder(folder)
            try AtomicFile.checkWritable(file)
            guard let lock = try FileLock(folder: folder) else {
                throw ImprintError.checkpointInUse(folder: folder.path)
            }
            self.lock = lock
            AtomicFile.removeUnfinished(in: folder)
        }
        // An empty file may be replaced like a missing one.
        guard let status = FileStatus(file), !status.isFile || status.size > 0 else {
            resumed = nil
            replacedProgress = nil
            return
        }
        let checkpoint: Checkpoint
        do {
            checkpoint = try Checkpoint(contentsOf: file)
        } catch let error as ModelFileError {
            if case .notACheckpoint = error.problem { throw error }
            // Without its fix: a checkpoint has no source to get it from again.
            throw ImprintError.unusableCheckpoint(reason: error.finding)
        } catch let error as SafetensorsError {
            // The file may be intact.
            if case .outOfMemory = error.problem { throw error }
            // The user may still need a file of another kind, so only a checkpoint may be removed.
            guard Checkpoint.canReplace(file) else {
                let kind = FileKind(contentsOf: file) ?? .unknown
                throw ModelFileError(path: file.path, problem: .notACheckpoint(found: kind.name))
            }
            throw ImprintError.unusableCheckpoint(reason: error.finding)
        }
        resumed = options.resumes ? checkpoint : nil
        let progress = checkpoint.state.progress
        let unit = progressUnit(isDetector: checkpoint.isOfDetector)
        let planned = progress.roundsWithoutTimeLimit ?? progress.plannedRounds
        replacedProgress = options.resumes ? nil : progressText(progress.history.count, of: planned, unit)
        guard options.resumes || progress.isFinished else {
            let round = min(progress.round + 1, progress.plannedRounds)
            throw ImprintError.unfinishedCheckpoint(
                file: file.path,
                progress: "\(unit) \(round) of \(progress.plannedRounds)")
        }
    }

    /// Returns the checkpoint to resume from, and releases its tensors, which a run needs only at its start.
    func takeResumed() -> Checkpoint? {
        defer { resumed = nil }
        return resumed
    }

    /// Whether the next checkpoint is due; after a failure, the next attempt waits at least ten seconds.
    var isDue: Bool { clock.now - lastAttempt >= (hasFailed ? max(interval, .seconds(10)) : interval) }

    /// Writes a checkpoint, which replaces the previous one.
    /// - Throws: `FileError` if it cannot be written; the previous checkpoint stays.
    func save(_ checkpoint: Checkpoint) throws {
        hasFailed = true
        defer { lastAttempt = clock.now }
        guard Checkpoint.canReplace(file) else {
            throw FileError.cannotWrite(
                path: file.path, reason: "the file is not a checkpoint of Imprint, so it is not replaced",
                remedy: "Move that file away.")
        }
        try checkpoint.write(to: file)
        hasFailed = false
    }
}

extension Checkpoint {
    /// Checks that a run with this network, these labels and these settings can resume from the checkpoint.
    /// - Throws: `ImprintError.checkpointMismatch` if it cannot, `ImprintError.checkpointOfOtherFiles` if only its files differ.
    func checkFits(
        _ network: Network, labels: [String], settings: [String: String], file: URL
    )
        throws(ImprintError)
    {
        func mismatch(_ setting: String, _ found: String, _ expected: String) -> ImprintError {
            // People do not know the digests of their files.
            let (input, expectedInput) = (
                inputFiles(ofSetting: setting, value: found), inputFiles(ofSetting: setting, value: expected)
            )
            let foundText = input == nil ? found : withoutDigests(found)
            let expectedText = expectedInput == nil ? expected : withoutDigests(expected)
            if let input, foundText == expectedText { return .checkpointOfOtherFiles(file: file.path, input: input) }
            return .checkpointMismatch(file: file.path, setting: setting, found: foundText, expected: expectedText)
        }
        // Another kind of model also has other labels and settings.
        let (kind, expectedKind) = (Self.kindOfModel(settings), Self.kindOfModel(self.settings))
        guard kind == expectedKind else { throw mismatch("kind of model", kind, expectedKind) }
        guard labels == self.labels else {
            throw mismatch("labels", labels.joined(separator: ", "), self.labels.joined(separator: ", "))
        }
        // Another network also changes other settings, so it is compared first. A setting may be missing on either side.
        let names = Set(settings.keys).union(self.settings.keys).subtracting(["network"]).sorted()
        for name in ["network"] + names {
            let (found, expected) = (settings[name] ?? "none", self.settings[name] ?? "none")
            guard found == expected else { throw mismatch(name, found, expected) }
        }
        guard network == self.network else { throw mismatch("network", network.name, self.network.name) }
    }

    /// Checks that the data set of a run still has at least half of the photos of the checkpoint, by name, size and labels.
    ///
    /// With fewer, the run would be one on other photos.
    /// - Parameter source: The photos to split or to train on.
    /// - Throws: `ImprintError.checkpointOfOtherPhotos` if it has fewer.
    func checkHasMostPhotos(of source: any TrainingSource, file: URL) throws(ImprintError) {
        let earlier = images.ofFirstSource
        let count = earlier.training.count + earlier.validation.count
        let change = earlier.change(to: Images(source))
        let kept = count - change.missing - change.edited
        guard 2 * kept >= count else { throw .checkpointOfOtherPhotos(file: file.path, kept: kept, of: count) }
    }
}
