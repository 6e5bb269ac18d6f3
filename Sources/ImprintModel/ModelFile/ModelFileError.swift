public import ImprintCore
public import ImprintNetwork

/// Why a safetensors file is not a usable model file, or why weights cannot be saved.
public struct ModelFileError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// What is wrong with it.
    public let problem: Problem

    /// Says that `problem` was met in the file at `path`.
    public init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// What can be wrong with a model file.
    public enum Problem: Error, Equatable, Sendable {
        /// The checkpoint of a run.
        case checkpoint
        /// A personalization, where a model is expected.
        case personalization
        /// Something else, where a personalization is expected.
        case notAPersonalization(found: String)
        /// Another kind of file, where a checkpoint is expected.
        case notACheckpoint(found: String)
        /// A personalization of another model.
        case otherBase(found: String, expected: String)
        /// A personalization with the same changes as another one that is merged with it.
        case copy(of: String)
        /// A safetensors file that some other program wrote.
        case foreign
        /// The format is newer than this version of Imprint, which reads files of the kind up to `newest`.
        case newerFormat(found: Int, newest: Int = ModelFile.formatVersion)
        /// The format is none that any version of Imprint wrote; this one reads files of the kind up to `newest`.
        case unknownFormat(found: String, newest: Int = ModelFile.formatVersion)
        /// The file is a checkpoint of an earlier version, which lays numbers out otherwise.
        case earlierCheckpoint
        /// An entry of the metadata is not there.
        case missingMetadata(key: String)
        /// An entry of the metadata cannot be understood.
        case invalidMetadata(key: String, reason: String)
        /// The network does not end in one number per label.
        case notAClassifier(NetworkError)
        /// The labels are not as many as the network's outputs.
        case labelCount(found: Int, outputs: Int)
        /// Two labels are the same.
        case duplicateLabel(String)
        /// The preprocessing makes images of another shape than the network takes.
        case inputShape(found: TensorShape, expected: TensorShape)
        /// The file's tensors are not the network's.
        case incomplete(LoadingReport)
        /// A tensor of 8 bits has no factors that could belong to it.
        case invalidFactors(tensor: String, reason: String)
        /// The tensors' bytes have another digest than the file says.
        case damaged(found: String, expected: String)
        /// A tensor holds an infinite number, or something that is no number.
        case notFinite(tensor: String)
    }

    /// The file, what was found, what was expected and what to do.
    public var description: String {
        let text =
            switch problem {
            case .checkpoint:
                "is the checkpoint of a run, not a model. Resume the run to get a model"
            case .personalization:
                "is a personalization, not a model. Load the model that it was made for"
            case .notAPersonalization(let found):
                "is \(found), not a personalization"
            case .notACheckpoint(let found):
                "is \(found), not a checkpoint, so it is not replaced. Choose another folder for checkpoints"
            case .otherBase(let found, let expected):
                "was made for another model: the digest of its model is \(found.prefix(16))…, expected \(expected.prefix(16))…. "
                    + "Use it with its own model, or personalize this one"
            case .copy(let original):
                "holds the same changes as \(original), so it counts as the same person. Expected one personalization per person. "
                    + "Leave one of the two files out"
            case .foreign:
                "is a safetensors file, but not a model of Imprint: its metadata has no imprint.format"
            case .newerFormat(let found, let newest):
                "was written by a newer Imprint (format \(found)); this one reads up to \(newest). Update Imprint"
            case .unknownFormat(let found, let newest):
                "has the format \(found.debugDescription), which does not exist. Expected 1 to \(newest). "
                    + "Get the file again from its source"
            case .earlierCheckpoint:
                "is the checkpoint of an earlier version of Imprint with another format. Resume it with that version, or "
                    + "start a new run"
            case .missingMetadata(let key):
                "has no \(key) in its metadata. Get the file again from its source"
            case .invalidMetadata(let key, let reason):
                "has an invalid \(key): \(reason). Get the file again from its source"
            case .notAClassifier(let error):
                "is not a classifier: \(error)"
            case .labelCount(let found, let outputs):
                "has \(found) labels for a network with \(outputs) outputs. Each output needs a label"
            case .duplicateLabel(let label):
                "has the label \(label.debugDescription) twice. Labels must be unique"
            case .inputShape(let found, let expected):
                "preprocesses images to \(found), but its network takes \(expected)"
            case .incomplete(let report):
                "does not have the tensors of its network. Get the file again from its source\n\(report)"
            case .invalidFactors(let tensor, let reason):
                "cannot be used: \(reason) of the tensor \(tensor), whose elements are I8. Get the file again from its source"
            case .damaged(let found, let expected):
                "is damaged: the digest of its tensors is \(found), expected \(expected). "
                    + "Get the file again from its source"
            case .notFinite(let tensor):
                "cannot be used: the tensor \(tensor) has a value that is infinite or NaN. "
                    + "Train again with a lower learning rate"
            }
        return "\(path): \(text)"
    }
}
