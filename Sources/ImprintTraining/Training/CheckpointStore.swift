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
        guard options.resumes || checkpoint.progress.isFinished else {
            let progress = checkpoint.progress
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

extension TrainingConfiguration {
    /// The settings that may not change while a run goes on, in words.
    ///
    /// The others (epochs, patience, time, threads, memory, how numbers are stored, calibration) do not make a run another one.
    func settings(base: String?) -> [String: String] {
        let network =
            switch start {
            case .network(let name, let width): "\(name), width \(width)"
            case .base(_, let trains): "base \(base?.prefix(12) ?? "") with \(trains.rawValue) trained"
            }
        let validation =
            switch self.validation {
            case .split(.automatic): "automatic"
            case .split(.fraction(let fraction)): "\(fraction)"
            case .split(.none): "none"
            case .folder: "a folder"
            }
        var settings: [String: String] = [
            "network": network, "validation": validation, "random split": "\(!keepsGroupsTogether)",
            "batch size": "\(batchSize)", "learning rate": learningRate.map { "\($0)" } ?? "auto",
            "schedule": "\(schedule)", "momentum": "\(momentum)", "weight decay": "\(weightDecay)",
            "gradient clipping": gradientClipping.map { "\($0)" } ?? "none", "label smoothing": "\(labelSmoothing)",
            "class weights": labelWeights.rawValue, "average": averageDecay.map { "\($0)" } ?? "none",
            "input size": inputSize.map { "\($0)" } ?? "usual", "crop and scale": cropAndScale.rawValue,
            "augmentation": augmentation.words.isEmpty ? "none" : augmentation.words.joined(separator: ","),
            "seed": "\(seed)",
        ]
        if poolsMaximum { settings["pooling"] = "mean and maximum" }
        if let fineTuning = usedFineTuning {
            settings["layer decay"] = "\(fineTuning.layerDecay)"
            settings["stage epochs"] = "\(fineTuning.stageEpochs)"
            settings["statistics of norms"] = fineTuning.keepsStatistics ? "kept" : "of the batch"
        }
        return settings
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

/// Saves a run now and then, and tells what came of it.
///
/// A disk that fails does not end a run, for its model may well be saved elsewhere.
final class CheckpointWriter {
    /// Why the last checkpoint could not be written; nil if it was.
    private(set) var failure: FileError?
    private let store: CheckpointStore?
    private let onEvent: (TrainingEvent) -> Void

    /// - Parameter store: Where the run is saved; it is not if nil.
    init(_ store: CheckpointStore?, onEvent: @escaping (TrainingEvent) -> Void) {
        self.store = store
        self.onEvent = onEvent
    }

    /// The path of the checkpoint, where it was written.
    var path: String? { failure == nil ? store?.file.path : nil }

    /// Saves what `make` gives if it is time.
    func saveIfDue(_ make: () throws -> Checkpoint) {
        if store?.isDue == true { save(make) }
    }

    /// Saves what `make` gives.
    func save(_ make: () throws -> Checkpoint) {
        guard let store else { return }
        do {
            let checkpoint = try make()
            try store.save(checkpoint)
            failure = nil
            onEvent(.checkpoint(store.file, epochs: checkpoint.progress.history.count))
        } catch {
            let found =
                error as? FileError
                ?? .cannotWrite(path: store.file.path, reason: "\(error)", remedy: "choose another folder")
            if failure == nil { onEvent(.checkpointFailed(found)) }
            failure = found
        }
    }
}
