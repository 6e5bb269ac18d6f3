package import Foundation
package import ImprintNetwork

/// The state of a training run between two steps.
///
/// A resumed run is bitwise identical to an uninterrupted one. On disk, a checkpoint is a safetensors file of flat float32 tensors in the
/// order of `ParameterLayout`, with JSON in its metadata; docs/reference/checkpoint-file.md specifies it.
package struct Checkpoint: Sendable {
    /// The trained part of the network.
    package let network: Network
    /// The labels, in the order of the network's outputs.
    package let labels: [String]
    /// The fingerprint: the hyperparameters that must not change when the run resumes, by name.
    package let settings: [String: String]
    /// The images of the run.
    package let images: Images
    /// The images that the best parameters were trained on, if no round is complete since the run resumed with `images`; otherwise nil.
    package let imagesOfBest: Images?
    /// The state of the training loop.
    package let state: TrainingState
    /// Whether the settings come from version 1, in which they have other names.
    package let isVersionOne: Bool

    /// The readable images of a run, as paths relative to their folder.
    package struct Images: Codable, Hashable, Sendable {
        /// The digests of the folders' file names and sizes; see `ImageFolder.digest`.
        package var digests: [String]
        /// The training set.
        package var training: [String]
        /// The validation set.
        package var validation: [String]
        /// The numbers of duplicates, near-duplicates and burst photos that could leak between the two sets.
        package var leakage: [String: Int]?
        /// The number of training images of each label; nil in older checkpoints.
        package var trainingCounts: [String: Int]?
        /// The identities of the images (`TrainingPhoto.identity`), in the order of `training` and `validation` and without separators; nil in
        /// older checkpoints.
        package var identities: String?
        /// The images of the training set that cannot be read; a checkpoint does not store them.
        package var unreadableTraining: [UnreadableImage] = []
        /// The images of the validation set that cannot be read; a checkpoint does not store them.
        package var unreadableValidation: [UnreadableImage] = []

        /// An image that cannot be read.
        package struct UnreadableImage: Hashable, Sendable {
            /// The path of the image as `training` and `validation` contain it.
            package let path: String
            /// The name of the image in messages.
            package let name: String

            package init(path: String, name: String) {
                self.path = path
                self.name = name
            }
        }

        private enum CodingKeys: String, CodingKey {
            case digests, training, validation, leakage, trainingCounts, identities
        }

        package init(
            digests: [String], training: [String], validation: [String], leakage: [String: Int]?,
            identities: String? = nil
        ) {
            self.digests = digests
            self.training = training
            self.validation = validation
            self.leakage = leakage
            self.identities = identities
        }
    }

    package init(
        network: Network, labels: [String], settings: [String: String], images: Images, imagesOfBest: Images? = nil,
        state: TrainingState
    ) {
        self.network = network
        self.labels = labels
        self.settings = settings
        self.images = images
        self.imagesOfBest = imagesOfBest
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
    /// Missing in older checkpoints.
    static let imagesOfBest = "imprint.imagesOfBest"
    static let progress = "imprint.progress"
    /// The number of steps of the optimizer; missing in older checkpoints.
    static let optimizerSteps = "imprint.optimizerSteps"
    static let objective = "imprint.objective"
    /// The objective's state in version 1.
    static let findings = "imprint.findings"
    static let digest = "imprint.digest"
    static let textDigest = "imprint.textDigest"
}

extension Checkpoint {
    /// The metadata key of the format version, which identifies a checkpoint.
    package static let formatKey = "imprint.checkpoint"

    /// Whether a checkpoint may be written to `url`; see `OutputFile`.
    package static func canReplace(_ url: URL) -> Bool {
        OutputFile.canReplace(url) { OutputFile.hasMetadata(formatKey, $0) }
    }

    /// Whether the checkpoint at `url` is one of a detector, also if it is cut off after its metadata; false if it cannot be read.
    package static func isOfDetector(at url: URL) -> Bool {
        guard let text = Safetensors.leadingMetadata(of: url)[Key.settings],
            let settings = try? JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        else { return false }
        return hasDetectorSettings(settings)
    }

    /// Whether this is the checkpoint of a detector, whose rounds are phases.
    package var isOfDetector: Bool { Self.hasDetectorSettings(settings) }

    /// Whether a fingerprint is one of a detector: only detectors have backgrounds, also in version 1.
    package static func hasDetectorSettings(_ settings: [String: String]) -> Bool { settings["backgrounds"] != nil }

    /// The kind of model that a fingerprint belongs to, for messages.
    package static func kindOfModel(_ settings: [String: String]) -> String {
        hasDetectorSettings(settings) ? "a detector" : "a classifier"
    }

    /// The format that this version of Imprint writes.
    ///
    /// It also reads format 2 of version 1, whose tensors have other names.
    private static let formatVersion = "3"

    /// Writes the file at `url` atomically; see `AtomicFile`.
    /// - Throws: `SafetensorsError` if there are so many images that readers would reject the file, `FileError` if it cannot be written.
    package func write(to url: URL) throws {
        var metadata = [
            Self.formatKey: Self.formatVersion, Key.network: try json(network), Key.labels: try json(labels),
            Key.settings: try json(settings), Key.images: try json(images), Key.progress: try json(state.progress),
        ]
        metadata[Key.imagesOfBest] = try imagesOfBest.map { try json(ImagesDifference($0, from: images)) }
        metadata[Key.objective] = state.objective
        metadata[Key.optimizerSteps] = state.optimizerSteps.map { "\($0)" }
        metadata[Key.textDigest] = textDigest(of: metadata)
        var tensors = [(TensorName.parameters, state.parameters)]
        if let ema = state.ema { tensors.append((TensorName.average, ema)) }
        if let best = state.best { tensors.append((TensorName.best, best)) }
        tensors += state.optimizer.map { (TensorName.optimizerPrefix + $0.key, $0.value) }
        try Safetensors.write(
            tensors.map { Safetensors.Tensor(name: $0.0, shape: [$0.1.count], values: $0.1) }, to: url
        ) { digest in metadata.merging([Key.digest: digest]) { $1 } }
    }

    /// Reads and verifies the file at `url`.
    /// - Throws: `ModelFileError` if it is not a complete checkpoint, `SafetensorsError` if it is not a safetensors file,
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
        let metadata = file.header.metadata
        isVersionOne = try Self.checkFormat(of: metadata)
        network = try value(Key.network, in: metadata)
        labels = try value(Key.labels, in: metadata)
        settings = try value(Key.settings, in: metadata)
        images = try value(Key.images, in: metadata)
        try Self.checkCounts(of: images, Key.images)
        imagesOfBest = try Self.imagesOfBest(in: metadata, images)
        let progress: TrainingProgress = try value(Key.progress, in: metadata)
        if let problem = progress.problem {
            throw ModelFileError.Problem.invalidMetadata(key: Key.progress, reason: problem)
        }
        let optimizerSteps = try Self.optimizerSteps(in: metadata)
        let layout = ParameterLayout(network)
        let tensors = try Self.readTensors(of: file, layout, isVersionOne)
        guard let parameters = tensors[TensorName.parameters] else {
            throw ModelFileError.Problem.invalidMetadata(
                key: Key.progress, reason: "the tensor \(TensorName.parameters) is missing")
        }
        var state = TrainingState(
            progress: progress, parameters: parameters, optimizer: [:], optimizerSteps: optimizerSteps,
            ema: tensors[TensorName.average],
            best: tensors[TensorName.best], objective: metadata[isVersionOne ? Key.findings : Key.objective])
        if isVersionOne {
            state.readVersionOne(tensors[TensorName.versionOneOptimizer], trainableCount: layout.trainableCount)
        } else {
            for (name, values) in tensors where name.hasPrefix(TensorName.optimizerPrefix) {
                state.optimizer[String(name.dropFirst(TensorName.optimizerPrefix.count))] = values
            }
        }
        try Self.checkCompleteness(of: state, progress)
        self.state = state
    }

    /// Checks the format and the digest of the metadata.
    /// - Returns: Whether the file is of version 1.
    private static func checkFormat(of metadata: [String: String]) throws(ModelFileError.Problem) -> Bool {
        guard let format = metadata[formatKey] else {
            throw .notACheckpoint(found: ModelFile.kind(of: metadata))
        }
        guard format == formatVersion || format == "2" else {
            if format == "1" { throw .earlierCheckpoint }
            throw .invalidMetadata(key: formatKey, reason: "\(format.debugDescription), expected \(formatVersion)")
        }
        guard let expected = metadata[Key.textDigest] else { throw .missingMetadata(key: Key.textDigest) }
        // Damaged metadata would change the next steps just as damaged tensors would.
        let found = textDigest(of: metadata)
        guard found == expected else { throw .damaged(found: found, expected: expected) }
        return format == "2"
    }

    /// Reads the images of the best parameters; nil if they are those of the run, and in older checkpoints.
    /// - Parameter images: The images of the run.
    private static func imagesOfBest(
        in metadata: [String: String], _ images: Images
    ) throws(ModelFileError.Problem) -> Images? {
        guard metadata[Key.imagesOfBest] != nil else { return nil }
        let difference: ImagesDifference = try value(Key.imagesOfBest, in: metadata)
        guard let earlier = difference.images(from: images) else {
            throw .invalidMetadata(key: Key.imagesOfBest, reason: "it does not fit \(Key.images)")
        }
        try checkCounts(of: earlier, Key.imagesOfBest)
        return earlier
    }

    /// Checks that computations with the counts of images do not overflow.
    private static func checkCounts(of images: Images, _ key: String) throws(ModelFileError.Problem) {
        if let count = images.trainingCounts?.values.first(where: { !(0...Int(Int32.max)).contains($0) }) {
            throw .invalidMetadata(key: key, reason: "found the count \(count), expected 0 to \(Int32.max)")
        }
    }

    /// Returns the number of steps of the optimizer; nil in older checkpoints.
    private static func optimizerSteps(in metadata: [String: String]) throws(ModelFileError.Problem) -> Int? {
        guard let text = metadata[Key.optimizerSteps] else { return nil }
        guard let steps = Int(text), (0...1 << 48).contains(steps) else {
            throw .invalidMetadata(key: Key.optimizerSteps, reason: "found \(text), expected a count")
        }
        return steps
    }

    /// Reads all tensors after checking their digest.
    private static func readTensors(
        of file: Safetensors.File, _ layout: ParameterLayout, _ isVersionOne: Bool
    ) throws -> [String: [Float]] {
        guard let expected = file.header.metadata[Key.digest] else {
            throw ModelFileError.Problem.missingMetadata(key: Key.digest)
        }
        let found = try file.dataDigest()
        guard found == expected else { throw ModelFileError.Problem.damaged(found: found, expected: expected) }
        var tensors: [String: [Float]] = [:]
        for tensor in file.header.tensors {
            guard validShapes(of: tensor.name, layout, isVersionOne).contains(tensor.shape) else {
                throw ModelFileError.Problem.invalidMetadata(
                    key: Key.network, reason: "the tensor \(tensor.name) has the unexpected shape \(tensor.shape)")
            }
            tensors[tensor.name] = try file.values(of: tensor)
        }
        return tensors
    }

    /// Checks that a state has all tensors that the progress in the file requires.
    private static func checkCompleteness(
        of state: TrainingState, _ progress: TrainingProgress
    ) throws(ModelFileError.Problem) {
        let missing: [(String, Bool)] = [
            ("of the optimizer", state.optimizer.isEmpty),
            (TensorName.best, progress.hasBest && state.best == nil),
            (TensorName.average, progress.emaSteps > 0 && state.ema == nil),
        ]
        for (name, isMissing) in missing where isMissing {
            throw .invalidMetadata(key: Key.progress, reason: "the tensor \(name) is missing")
        }
    }

    /// Returns the valid shapes of a tensor; empty if its name is unknown.
    private static func validShapes(of name: String, _ layout: ParameterLayout, _ isVersionOne: Bool) -> [[Int]] {
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
    /// The optimizer's tensor in version 1: the velocities of SGD, or both moments of AdamW.
    static let versionOneOptimizer = "velocities"
}

extension TrainingState {
    /// Splits the optimizer's tensor of version 1 into named tensors.
    fileprivate mutating func readVersionOne(_ values: [Float]?, trainableCount: Int) {
        guard let values else { return }
        if values.count == trainableCount {
            optimizer = ["velocities": values]
        } else {
            optimizer = [
                "firstMoments": Array(values.prefix(trainableCount)),
                "secondMoments": Array(values.suffix(trainableCount)),
            ]
            // Version 1 used AdamW only for detectors, and each phase restarted the moving average.
            progress.emaSteps = progress.batch
        }
    }
}
