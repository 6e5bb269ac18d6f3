public import ImprintCore
public import ImprintNetwork

/// An error in reading or writing a model file, a personalization or a checkpoint.
public struct ModelFileError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// The problem of the file.
    public let problem: Problem

    /// Creates the error of a problem in the file at `path`.
    public init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// The problem of a file.
    public enum Problem: Error, Equatable, Sendable {
        /// The file is a checkpoint, expected a model.
        case checkpoint
        /// The file is a personalization, expected a model.
        case personalization
        /// The file contains cached features of photos for personalizations, expected a model.
        case featureCache
        /// The file is of another kind, expected a personalization.
        case notAPersonalization(found: String)
        /// The file is of another kind, expected a checkpoint.
        case notACheckpoint(found: String)
        /// The personalization was made for another model.
        case otherBase(found: String, expected: String)
        /// The personalization makes the same changes as another one to be merged.
        case copy(of: String)
        /// Another program wrote the safetensors file.
        case foreign
        /// The format is newer than `newest`, the newest format that this version of Imprint reads.
        case newerFormat(found: Int, newest: Int = ModelFile.formatVersion)
        /// The format does not exist; `newest` is the newest format that this version of Imprint reads.
        case unknownFormat(found: String, newest: Int = ModelFile.formatVersion)
        /// An earlier version wrote the checkpoint in an unsupported format.
        case earlierCheckpoint
        /// A metadata key is missing.
        case missingMetadata(key: String)
        /// The value of a metadata key is invalid.
        case invalidMetadata(key: String, reason: String)
        /// The network does not end in one output per label.
        case notAClassifier(NetworkError)
        /// The number of labels differs from the number of the network's outputs.
        case labelCount(found: Int, outputs: Int)
        /// A label occurs twice.
        case duplicateLabel(String)
        /// The shape of preprocessed images differs from that of the network's input.
        case inputShape(found: TensorShape, expected: TensorShape)
        /// The tensors of the file do not match the network.
        case incomplete(LoadingReport)
        /// The scales of an int8 tensor are missing or do not fit.
        case invalidScales(tensor: String, reason: String)
        /// The digest of the tensors or of the metadata differs from the stored one.
        case damaged(found: String, expected: String)
        /// A tensor contains an infinite value or NaN.
        case notFinite(tensor: String)
    }

    /// The file, the problem, the expected content and the fix.
    public var description: String { [finding, remedy].compactMap { $0?.sentence }.joined(separator: " ") }

    /// The fix; nil if the finding implies it.
    private var remedy: String? {
        switch problem {
        case .checkpoint: "Resume the run to get a model"
        case .personalization: "Load the model that it was made for"
        case .featureCache: "Choose the model that computed the features"
        case .notAPersonalization: "Choose a file that contains a personalization"
        case .notACheckpoint: "Choose another folder for checkpoints"
        case .otherBase: "Use it with its base model, or personalize this model"
        case .copy: "Leave one of the two files out"
        case .foreign: "Import the file, or choose another one"
        case .newerFormat: "Update Imprint"
        case .earlierCheckpoint: "Resume the run with that version, or start a new run in another folder"
        case .unknownFormat, .missingMetadata, .invalidMetadata, .incomplete, .invalidScales, .damaged:
            "Get the file again from its source"
        case .notFinite: "Train again with a lower learning rate"
        case .notAClassifier, .labelCount, .duplicateLabel, .inputShape: nil
        }
    }

    /// The file, the problem and the expected content, as one or two sentences.
    package var finding: String {
        let text =
            switch problem {
            case .checkpoint:
                "the file is the checkpoint of a run, not a model"
            case .personalization:
                "the file is a personalization, not a model"
            case .featureCache:
                "the file is a feature cache, not a model"
            case .notAPersonalization(let found):
                "the file is \(found), not a personalization"
            case .notACheckpoint(let found):
                "the file is \(found), not a checkpoint of Imprint, so it is not replaced"
            case .otherBase(let found, let expected):
                "the file was made for another model: the digest of its model is \(found.prefix(16))…, expected \(expected.prefix(16))…"
            case .copy(let original):
                "the file holds the same changes as \(original), so it counts as the same person. Expected one personalization per person"
            case .foreign:
                "the file is a safetensors file, but not an Imprint model: its metadata has no imprint.format. "
                    + "Expected a model file of Imprint"
            case .newerFormat(let found, let newest):
                "the file was written by a newer Imprint (format \(found)); this one reads up to \(newest)"
            case .unknownFormat(let found, let newest):
                "the file has the format \(found.debugDescription), which does not exist. Expected 1 to \(newest)"
            case .earlierCheckpoint:
                "the file is the checkpoint of an earlier version of Imprint with another format, which only that version resumes"
            case .missingMetadata(let key):
                "the file has no \(key) in its metadata"
            case .invalidMetadata(let key, let reason):
                "the metadata has an invalid \(key): \(reason)"
            case .notAClassifier(let error):
                "the model is not a classifier: \(error)"
            case .labelCount(let found, let outputs):
                "the model has \(counted(found, "label")) for a network with \(counted(outputs, "output")). Each output needs a label"
            case .duplicateLabel(let label):
                "the model has the label \(label.debugDescription) twice. Labels must be unique"
            case .inputShape(let found, let expected):
                "the model preprocesses images to \(found), but its network takes \(expected)"
            case .incomplete(let report):
                "the file does not have the tensors of its network: \(report.description.replacing("\n", with: "; "))"
            case .invalidScales(let tensor, let reason):
                "the file has an invalid int8 tensor \(tensor): \(reason)"
            case .damaged(let found, let expected):
                "the file is damaged: its digest is \(found), expected \(expected)"
            case .notFinite(let tensor):
                "the file cannot be used: the tensor \(tensor) has a value that is infinite or NaN"
            }
        return "\(path): \(text)".sentence
    }
}
