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
                "is the checkpoint of a run, not a model; finish the run with imprint train --resume, which writes one"
            case .personalization:
                "is a personalization, not a model; name the model that it was made for, and this file with --personalization"
            case .notAPersonalization(let found):
                "is \(found), not a personalization; make one of a model and photos with imprint personalize"
            case .notACheckpoint(let found):
                "is \(found), not a checkpoint, and stays as it is; move it to another folder, or choose another folder for checkpoints"
            case .otherBase(let found, let expected):
                "was made for another model, that with the digest \(found.prefix(16))…, and this one has \(expected.prefix(16))…; "
                    + "use it with its own model, or personalize this one anew"
            case .copy(let original):
                "holds the same changes as \(original), so it counts as the same person. Expected one personalization per person. "
                    + "Leave one of the two files out"
            case .foreign:
                "is a safetensors file, but not one of Imprint's: its metadata has no imprint.format; "
                    + "train a model with imprint train"
            case .newerFormat(let found, let newest):
                "was written by a newer Imprint (format \(found)); this one reads up to \(newest); update Imprint"
            case .unknownFormat(let found, let newest):
                "has the format \(found.debugDescription), which no Imprint ever wrote; this one reads 1 to \(newest); "
                    + "get the file again from where it came"
            case .earlierCheckpoint:
                "is the checkpoint of an earlier version of Imprint, which lays numbers out otherwise; resume it with that version, or "
                    + "begin the run anew"
            case .missingMetadata(let key):
                "has no \(key) in its metadata; get the file again from where it came"
            case .invalidMetadata(let key, let reason):
                "has an unusable \(key): \(reason); get the file again from where it came"
            case .notAClassifier(let error):
                "is no classifier: \(error)"
            case .labelCount(let found, let outputs):
                "has \(found) labels for a network with \(outputs) outputs; each output needs its label"
            case .duplicateLabel(let label):
                "has the label \(label.debugDescription) twice; each label must be there once"
            case .inputShape(let found, let expected):
                "prepares images as \(found) for a network that takes \(expected); both must be the same"
            case .incomplete(let report):
                "holds other tensors than its network needs; get the file again from where it came\n\(report)"
            case .invalidFactors(let tensor, let reason):
                "cannot be used: \(reason) of the tensor \(tensor), whose elements are I8; get the file again from where it came"
            case .damaged(let found, let expected):
                "is damaged: the digest of its tensors is \(found), expected \(expected); "
                    + "get the file again from where it came"
            case .notFinite(let tensor):
                "cannot be used: the tensor \(tensor) holds numbers that are infinite or not numbers, as after a training that "
                    + "diverged; train again with a lower learning rate"
            }
        return "\(path): \(text)"
    }
}
