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
    /// The settings that may not change between two parts of a run, by name.
    package let settings: [String: String]
    /// The images that the run began with.
    package let images: Images
    /// How far the run has come.
    package let progress: TrainingProgress
    /// What else the run has found out, as JSON.
    package let findings: String?
    /// The numbers, by what they are.
    package let numbers: [Numbers: [Float]]

    /// What a run's numbers are for.
    package enum Numbers: String, CaseIterable, Sendable {
        /// The parameters after the last step.
        case parameters
        /// The optimizer's velocities, or both of its moments.
        case velocities
        /// The exponential moving average of the parameters, where one is kept.
        case average
        /// The parameters of the best whole epoch, once there is one.
        case best
    }

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
        network: Network, labels: [String], settings: [String: String], images: Images, progress: TrainingProgress,
        findings: String? = nil, numbers: [Numbers: [Float]]
    ) {
        self.network = network
        self.labels = labels
        self.settings = settings
        self.images = images
        self.progress = progress
        self.findings = findings
        self.numbers = numbers
    }
}

/// The keys of a checkpoint's metadata.
private enum Key {
    static let network = "imprint.network"
    static let labels = "imprint.labels"
    static let settings = "imprint.settings"
    static let images = "imprint.images"
    static let progress = "imprint.progress"
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

    /// The format that this version writes and reads: in that of before, each tensor of the parameters began at a multiple of 16 numbers.
    private static let formatVersion = "2"

    /// Writes the file at `url`, which is replaced as `AtomicFile` does it.
    /// - Throws: `FileError` if it cannot be written.
    package func write(to url: URL) throws {
        var texts = [
            Self.formatKey: Self.formatVersion, Key.network: try json(network), Key.labels: try json(labels),
            Key.settings: try json(settings), Key.images: try json(images), Key.progress: try json(progress),
        ]
        texts[Key.findings] = findings
        texts[Key.textDigest] = textDigest(of: texts)
        let tensors = numbers.map {
            Safetensors.Tensor(name: $0.key.rawValue, shape: [$0.value.count], values: $0.value)
        }
        try Safetensors.write(tensors, to: url) { digest in texts.merging([Key.digest: digest]) { $1 } }
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
        guard format == Self.formatVersion else {
            throw format == "1"
                ? ModelFileError.Problem.earlierCheckpoint
                : .invalidMetadata(
                    key: Self.formatKey, reason: "\(format.debugDescription), expected \(Self.formatVersion)")
        }
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
        progress = try value(Key.progress, in: texts)
        findings = texts[Key.findings]
        if let problem = progress.problem {
            throw ModelFileError.Problem.invalidMetadata(key: Key.progress, reason: problem)
        }
        guard let expected = texts[Key.digest] else { throw ModelFileError.Problem.missingMetadata(key: Key.digest) }
        let found = try file.dataDigest()
        guard found == expected else { throw ModelFileError.Problem.damaged(found: found, expected: expected) }
        let layout = ParameterLayout(network)
        var numbers: [Numbers: [Float]] = [:]
        for tensor in file.header.tensors {
            guard let kind = Numbers(rawValue: tensor.name),
                kind == .velocities
                    ? [[layout.trainableCount], [2 * layout.trainableCount]].contains(tensor.shape)
                    : tensor.shape == [layout.count]
            else {
                throw ModelFileError.Problem.invalidMetadata(
                    key: Key.network, reason: "the tensor \(tensor.name) has a shape of \(tensor.shape)")
            }
            numbers[kind] = try file.values(of: tensor)
        }
        self.numbers = numbers
        var needed = [Numbers.parameters, .velocities]
        if !progress.history.isEmpty { needed.append(.best) }
        if progress.averagedSteps > 0 { needed.append(.average) }
        for kind in needed where numbers[kind] == nil {
            throw ModelFileError.Problem.invalidMetadata(
                key: Key.progress, reason: "the tensor \(kind.rawValue) is missing")
        }
    }
}
