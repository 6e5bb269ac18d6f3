package import Foundation
package import ImprintNetwork

/// A training run between two steps, from which it goes on to the same bits.
///
/// On disk it is a safetensors file: flat float32 tensors, laid out as `ParameterLayout` says, and JSON in the metadata.
/// docs/weights-file.md specifies it.
package struct Checkpoint: Sendable {
    /// The layers that are trained.
    package let network: Network
    /// The labels, in the order of the network's outputs.
    package let labels: [String]
    /// The hyperparameters that may not change between two parts of a run, by name: the fingerprint.
    package let settings: [String: String]
    /// The images that the run began with.
    package let images: Images
    /// The state of the training loop.
    package let state: TrainingState
    /// Whether the settings are those of version 1, which have other names.
    package let isVersionOne: Bool

    /// The images of a run that could be read, by their paths relative to their folder.
    package struct Images: Codable, Hashable, Sendable {
        /// The digests of the folders' names and sizes; see `ImageFolder.digest`.
        package var digests: [String]
        /// The images that are trained on.
        package var training: [String]
        /// The images that are measured on.
        package var validation: [String]
        /// What copies, near-duplicates and bursts have to do with the two.
        package var leakage: [String: Int]?

        package init(digests: [String], training: [String], validation: [String], leakage: [String: Int]?) {
            self.digests = digests
            self.training = training
            self.validation = validation
            self.leakage = leakage
        }
    }

    package init(
        network: Network, labels: [String], settings: [String: String], images: Images, state: TrainingState
    ) {
        self.network = network
        self.labels = labels
        self.settings = settings
        self.images = images
        self.state = state
        isVersionOne = false
    }
}

/// The keys of a checkpoint's metadata.
private enum Key {
    static let network = "imprint.network"
    static let labels = "imprint.labels"
    static let settings = "imprint.settings"
    static let images = "imprint.images"
    static let progress = "imprint.progress"
    static let objective = "imprint.objective"
    /// The objective's state in version 1.
    static let findings = "imprint.findings"
    static let digest = "imprint.digest"
    static let textDigest = "imprint.textDigest"
}

extension Checkpoint {
    /// The key of the format, which tells a checkpoint from other files.
    package static let formatKey = "imprint.checkpoint"

    /// Whether a checkpoint may be written to `url`; see `OutputFile`.
    package static func canReplace(_ url: URL) -> Bool {
        OutputFile.canReplace(url) { OutputFile.hasMetadata(formatKey, $0) }
    }

    /// The format that this version writes.
    ///
    /// It also reads format 2, of version 1, which has other names for the tensors.
    private static let formatVersion = "3"

    /// Writes the file at `url`, which is replaced as `AtomicFile` does it.
    /// - Throws: `FileError` if it cannot be written.
    package func write(to url: URL) throws {
        var texts = [
            Self.formatKey: Self.formatVersion, Key.network: try json(network), Key.labels: try json(labels),
            Key.settings: try json(settings), Key.images: try json(images), Key.progress: try json(state.progress),
        ]
        texts[Key.objective] = state.objective
        texts[Key.textDigest] = textDigest(of: texts)
        var tensors = [(TensorName.parameters, state.parameters)]
        if let average = state.average { tensors.append((TensorName.average, average)) }
        if let best = state.best { tensors.append((TensorName.best, best)) }
        tensors += state.optimizer.map { (TensorName.optimizerPrefix + $0.key, $0.value) }
        try Safetensors.write(
            tensors.map { Safetensors.Tensor(name: $0.0, shape: [$0.1.count], values: $0.1) }, to: url
        ) { digest in texts.merging([Key.digest: digest]) { $1 } }
    }

    /// Reads the file at `url` and checks all of it.
    /// - Throws: `ModelFileError` if it is not a whole checkpoint, `SafetensorsError` if it is not a safetensors file,
    ///   `FileError` if it cannot be read.
    package init(contentsOf url: URL) throws {
        let file = try Safetensors.File(contentsOf: url)
        do {
            try self.init(file)
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: file.path, problem: problem)
        }
    }

    private init(_ file: Safetensors.File) throws {
        let texts = file.header.metadata
        guard let format = texts[Self.formatKey] else {
            throw ModelFileError.Problem.notACheckpoint(found: ModelFile.kind(of: texts))
        }
        guard format == Self.formatVersion || format == "2" else {
            throw format == "1"
                ? ModelFileError.Problem.earlierCheckpoint
                : .invalidMetadata(
                    key: Self.formatKey, reason: "\(format.debugDescription), expected \(Self.formatVersion)")
        }
        isVersionOne = format == "2"
        guard let expectedText = texts[Key.textDigest] else {
            throw ModelFileError.Problem.missingMetadata(key: Key.textDigest)
        }
        // What stands there decides about the next steps as the numbers do.
        guard textDigest(of: texts) == expectedText else {
            throw ModelFileError.Problem.damaged(found: textDigest(of: texts), expected: expectedText)
        }
        network = try value(Key.network, in: texts)
        labels = try value(Key.labels, in: texts)
        settings = try value(Key.settings, in: texts)
        images = try value(Key.images, in: texts)
        let progress: TrainingProgress = try value(Key.progress, in: texts)
        if let problem = progress.problem {
            throw ModelFileError.Problem.invalidMetadata(key: Key.progress, reason: problem)
        }
        guard let expected = texts[Key.digest] else { throw ModelFileError.Problem.missingMetadata(key: Key.digest) }
        let found = try file.dataDigest()
        guard found == expected else { throw ModelFileError.Problem.damaged(found: found, expected: expected) }
        let layout = ParameterLayout(network)
        var tensors: [String: [Float]] = [:]
        for tensor in file.header.tensors {
            guard Self.lengths(of: tensor.name, layout, isVersionOne).contains(tensor.shape) else {
                throw ModelFileError.Problem.invalidMetadata(
                    key: Key.network, reason: "the tensor \(tensor.name) has a shape of \(tensor.shape)")
            }
            tensors[tensor.name] = try file.values(of: tensor)
        }
        guard let parameters = tensors[TensorName.parameters] else {
            throw ModelFileError.Problem.invalidMetadata(
                key: Key.progress, reason: "the tensor \(TensorName.parameters) is missing")
        }
        var state = TrainingState(
            progress: progress, parameters: parameters, optimizer: [:], average: tensors[TensorName.average],
            best: tensors[TensorName.best], objective: texts[isVersionOne ? Key.findings : Key.objective])
        if isVersionOne {
            state.readVersionOne(tensors[TensorName.versionOneOptimizer], trainableCount: layout.trainableCount)
        } else {
            for (name, values) in tensors where name.hasPrefix(TensorName.optimizerPrefix) {
                state.optimizer[String(name.dropFirst(TensorName.optimizerPrefix.count))] = values
            }
        }
        let missing: [(String, Bool)] = [
            ("of the optimizer", state.optimizer.isEmpty),
            (TensorName.best, !progress.history.isEmpty && state.best == nil),
            (TensorName.average, progress.averagedSteps > 0 && state.average == nil),
        ]
        for (name, isMissing) in missing where isMissing {
            throw ModelFileError.Problem.invalidMetadata(key: Key.progress, reason: "the tensor \(name) is missing")
        }
        self.state = state
    }

    /// The shapes that a tensor may have; none if there is no such tensor.
    private static func lengths(of name: String, _ layout: ParameterLayout, _ isVersionOne: Bool) -> [[Int]] {
        switch name {
        case TensorName.parameters, TensorName.average, TensorName.best: [[layout.count]]
        case TensorName.versionOneOptimizer where isVersionOne: [[layout.trainableCount], [2 * layout.trainableCount]]
        case _ where !isVersionOne && name.hasPrefix(TensorName.optimizerPrefix): [[layout.trainableCount]]
        default: []
        }
    }
}

/// The names of a checkpoint's tensors.
private enum TensorName {
    static let parameters = "parameters"
    static let average = "average"
    static let best = "best"
    static let optimizerPrefix = "optimizer."
    /// The one tensor of version 1: the velocities of SGD, or both moments of AdamW.
    static let versionOneOptimizer = "velocities"
}

extension TrainingState {
    /// Takes the optimizer's tensor of version 1 apart.
    fileprivate mutating func readVersionOne(_ values: [Float]?, trainableCount: Int) {
        guard let values else { return }
        if values.count == trainableCount {
            optimizer = ["velocities": values]
        } else {
            optimizer = [
                "firstMoments": Array(values.prefix(trainableCount)),
                "secondMoments": Array(values.suffix(trainableCount)),
            ]
            // Only detectors were trained with AdamW, and each of their phases restarted the average.
            progress.averagedSteps = progress.batch
        }
    }
}
