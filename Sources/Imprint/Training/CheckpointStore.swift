public import Foundation
internal import ImprintFormats
internal import ImprintImages
internal import ImprintNetwork

/// Where and how often a run is saved, so that it can go on.
public struct CheckpointOptions: Sendable {
    /// The folder; it is made where there is none.
    public var folder: URL
    /// The least time from one checkpoint to the next; a run that ends, or is stopped, is saved in any case.
    public var interval: Duration
    /// Whether to go on from the checkpoint in the folder, where there is one.
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
    private let interval: Duration
    private let clock = ContinuousClock()
    private var saved: ContinuousClock.Instant

    /// Makes the folder, and reads the checkpoint where it is to be gone on from.
    /// - Throws: `ImprintError` where the checkpoint cannot be used or would be lost, `FileError` where the folder cannot be
    ///   written to.
    init(_ options: CheckpointOptions) throws {
        let folder = options.folder
        file = folder.appending(path: "checkpoint.safetensors")
        interval = options.interval
        saved = clock.now
        // Where this fails, checking the file says why.
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try AtomicFile.checkWritable(file)
        AtomicFile.removeUnfinished(in: folder)
        guard FileManager.default.fileExists(atPath: file.path) else {
            resumed = nil
            return
        }
        let checkpoint: Checkpoint
        do {
            checkpoint = try Checkpoint(contentsOf: file)
        } catch  where error is WeightsFileError || error is SafetensorsError {
            throw ImprintError.unusableCheckpoint(reason: "\(error)")
        }
        resumed = options.resumes ? checkpoint : nil
        guard options.resumes || checkpoint.progress.isFinished else {
            let progress = checkpoint.progress
            throw ImprintError.unfinishedCheckpoint(
                file: file.path, epoch: progress.history.count + 1, of: progress.plannedEpochs)
        }
    }

    /// Whether the interval has passed since the last checkpoint.
    var isDue: Bool { clock.now - saved >= interval }

    /// Writes a checkpoint in the place of the last one.
    func save(_ checkpoint: Checkpoint) throws {
        try checkpoint.write(to: file)
        saved = clock.now
    }
}

extension Checkpoint {
    /// Checks that a run with this beginning and these settings can go on from the checkpoint.
    func checkFits(
        _ start: TrainingConfiguration.StartingPoint, labels: [String], settings: [String: String], file: URL
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
        guard start.network == network else { throw mismatch("network", start.network.name, network.name) }
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
            case .base(_, let trains): "base \(base ?? ""), \(trains.rawValue)"
            }
        let validation =
            switch self.validation {
            case .split(.automatic): "automatic"
            case .split(.fraction(let fraction)): "\(fraction)"
            case .split(.none): "none"
            case .folder: "a folder"
            }
        return [
            "network": network, "validation": validation, "comparison of photos": "\(keepsGroupsTogether)",
            "batch size": "\(batchSize)", "learning rate": learningRate.map { "\($0)" } ?? "auto",
            "schedule": "\(schedule)", "momentum": "\(momentum)", "weight decay": "\(weightDecay)",
            "gradient clipping": gradientClipping.map { "\($0)" } ?? "none", "label smoothing": "\(labelSmoothing)",
            "label weights": labelWeights.rawValue, "average": averageDecay.map { "\($0)" } ?? "none",
            "input size": inputSize.map { "\($0)" } ?? "usual", "crop and scale": cropAndScale.rawValue,
            "augmentation": augmentation.words.joined(separator: ","), "seed": "\(seed)",
        ]
    }
}
