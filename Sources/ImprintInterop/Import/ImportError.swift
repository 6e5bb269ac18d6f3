public import ImprintCore
internal import ImprintModel
public import ImprintNetwork

/// Why a model of another format cannot be imported.
public struct ImportError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// What is wrong with it, or missing here.
    public let problem: Problem

    /// An operation that Imprint does not have, or not in this form.
    public struct Unsupported: Hashable, Sendable, Codable {
        /// The operation's name in the file's format, such as "ConvTranspose".
        public let operation: String
        /// The name of the node or layer.
        public let node: String
        /// What of it is not supported, where another form of the operation is.
        public let reason: String?

        /// Names an operation.
        public init(operation: String, node: String, reason: String? = nil) {
            self.operation = operation
            self.node = node
            self.reason = reason
        }
    }

    /// What can be wrong with a model.
    public enum Problem: Error, Equatable, Sendable {
        /// The file is of none of the formats.
        case unknownFormat
        /// The file breaks a rule of its format.
        case malformed(reason: String)
        /// The model is valid, but larger than Imprint imports.
        case exceedsLimit(reason: String)
        /// The model is of a kind that is no image classifier, or that cannot leave its platform.
        case otherKind(found: String, advice: String)
        /// The model has operations that Imprint does not have.
        case unsupported([Unsupported])
        /// The operations do not make up a network.
        case network(node: String, NetworkError)
        /// The network does not allow an image of the size that was asked for, though one of its own.
        case inputSize(Size2D, reason: String)
        /// Importing the model takes more memory than is available.
        case outOfMemory(byteCount: Int)
        /// Something is needed that the file does not hold.
        case missing(what: String, advice: String)
    }

    /// Says that `problem` was met in the file at `path`.
    public init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// The file, what was found, what was expected and what to do.
    public var description: String {
        "\(path): \(problem.text)"
    }
}

extension ImportError.Problem {
    /// What was found, what was expected and what to do.
    fileprivate var text: String {
        switch self {
        case .unknownFormat:
            "is no model that Imprint reads, or was cut short; expected ONNX, Core ML (.mlmodel or .mlpackage) or Caffe (.caffemodel "
                + "with --prototxt)"
        case .malformed(let reason):
            "is damaged or not what its name says: \(reason); get the file again from where it came"
        case .exceedsLimit(let reason): "exceeds a limit of Imprint: \(reason); simplify the model where it was made"
        case .otherKind(let found, let advice): "is \(found); \(advice)"
        case .unsupported(let operations):
            "has operations that Imprint does not have; simplify the model where it was made:\n"
                + operations.map { operation in
                    "  \(operation.operation) \(operation.node.debugDescription)"
                        + (operation.reason.map { ": \($0)" } ?? "")
                }.joined(separator: "\n")
        case .network(let node, let error): "cannot be a network here, at \(node.debugDescription): \(error)"
        case .inputSize(let size, let reason):
            "does not allow an image of \(size): \(reason); leave out --input-size, or choose another"
        case .outOfMemory(let byteCount):
            "there is not enough memory to import it: \(SystemMemory.text(byteCount)) are needed at once; close other programs, or raise "
                + "the limit of memory"
        case .missing(let what, let advice): "has no \(what); \(advice)"
        }
    }

    /// The model's result has this shape, so it is not one score for each label.
    static func notScores(_ shape: [Int?]) -> ImportError.Problem {
        let lengths = shape.map { $0.map(String.init) ?? "?" }.joined(separator: ", ")
        return .otherKind(
            found: "a model whose result has the shape [\(lengths)]",
            advice:
                "expected one score for each label: Imprint imports image classifiers, not detectors or segmentation "
                + "models")
    }

    /// What is wrong, for a message about something else.
    var reason: String {
        switch self {
        case .malformed(let reason), .exceedsLimit(let reason), .inputSize(_, let reason): reason
        case .network(let node, let error): "at \(node.debugDescription), \(error)"
        default: text
        }
    }
}
