public import ImprintCore
internal import ImprintImages
internal import ImprintModel
public import ImprintNetwork

/// An error of importing a model from another framework.
public struct ImportError: DescribedError, Equatable {
    /// The file.
    public let path: String
    /// The reason why the import failed.
    public let problem: Problem

    /// An operator that Imprint does not support, or not with these attributes.
    public struct Unsupported: Hashable, Sendable, Codable {
        /// The operator type in the source format, such as "ConvTranspose".
        public let operation: String
        /// The name of the node or layer.
        public let node: String
        /// The unsupported attribute or input; nil if Imprint does not support the operator at all.
        public let reason: String?

        /// Describes an unsupported operator.
        package init(operation: String, node: String, reason: String? = nil) {
            self.operation = operation
            self.node = node
            self.reason = reason
        }
    }

    /// A setting of `ModelImporter` that causes a problem or solves it.
    public enum Setting: Equatable, Sendable {
        /// `ModelImporter.prototxt`.
        case prototxt
        /// `ModelImporter.architecture`.
        case architecture
        /// `ModelImporter.labels`.
        case labels
        /// `ModelImporter.normalization`.
        case normalization
        /// `ModelImporter.detector`, which does not fit the file.
        case detector
        /// `ModelImporter.detector`, which may be missing.
        case noDetector
        /// `ModelImporter.architecture`: these values fit the tensors of the checkpoint.
        case architectures([String])
        /// The channel order of `ModelImporter.normalization`.
        case isBGR
    }

    /// The reasons why an import fails.
    ///
    /// Texts such as `reason` and `advice` are parts of the description, and may change between versions.
    public enum Problem: Error, Equatable, Sendable {
        /// The file has none of the supported formats.
        case unknownFormat
        /// The file violates its format.
        case malformed(reason: String)
        /// The model is valid, but exceeds a size limit of Imprint.
        case exceedsLimit(reason: String)
        /// The file contains a model that Imprint cannot use, for example because it is not an image classifier.
        ///
        /// `setting` is a setting of `ModelImporter` that may solve the problem, or nil.
        case unsuitableModel(found: String, advice: String, setting: Setting? = nil)
        /// The model has operators that Imprint does not support: all of them, in the order of the file.
        case unsupported([Unsupported])
        /// The operators do not form a valid network.
        case network(node: String, NetworkError)
        /// The network rejects the requested input size, but accepts the size in the file.
        case inputSize(Size2D, reason: String)
        /// A side of the requested input size is not a multiple of a number of pixels that this kind of detector requires.
        case sideMultiple(DetectorKind, Size2D, multiple: Int)
        /// Importing the model takes more memory than is available: `byteCount` bytes.
        case outOfMemory(byteCount: Int)
        /// The file lacks an item that the import requires.
        ///
        /// `setting` is a setting of `ModelImporter` that provides it, or nil.
        case missing(item: String, advice: String, setting: Setting? = nil)
    }

    /// Describes a problem with the file at `path`.
    package init(path: String, problem: Problem) {
        self.path = path
        self.problem = problem
    }

    /// The file, the problem, the expected content and the remedy.
    public var description: String {
        if case .unsupported = problem { return "\(path): \(problem.text)" }
        return "\(path): \(problem.text)".sentence
    }
}

extension ImportError.Problem {
    /// The problem, the expected content and the remedy.
    fileprivate var text: String {
        switch self {
        case .unknownFormat:
            "the file is not a model file that Imprint can import, or it is truncated. Expected ONNX (.onnx), Core ML (.mlmodel, .mlpackage), "
                + "Caffe (.caffemodel and its prototxt), a PyTorch checkpoint (.pth, .pt, .safetensors), or BlazeFace in TensorFlow "
                + "Lite (.tflite)"
        case .malformed(let reason):
            "the file is damaged or invalid: \(reason). Get the file again from its source"
        case .exceedsLimit(let reason):
            "the model exceeds a limit of Imprint: \(reason). Simplify the model before you export it"
        case .unsuitableModel(let found, let advice, _): "the file is \(found). \(advice)"
        case .unsupported(let operations):
            "the model has operators that Imprint does not support. Simplify the model before you export it:\n"
                + operations.map { operation in
                    "  \(operation.operation) \(operation.node.debugDescription)"
                        + (operation.reason.map { ": \($0)" } ?? "")
                }.joined(separator: "\n")
        case .network(let node, let error): "the network is invalid at \(node.debugDescription): \(error)"
        case .inputSize(let size, let reason):
            "the network does not support an input size of \(size): \(reason). Choose another size, or keep the size in the "
                + "file"
        case .sideMultiple(let kind, let size, let multiple):
            "the input size is \(size) pixels. Expected sides that are multiples of \(multiple) for \(kind.rawValue). Choose "
                + "\(size.rounded(upTo: multiple))"
        case .outOfMemory(let byteCount):
            "there is not enough memory to import the model: it needs \(SystemMemory.text(byteCount)). Close other programs, or raise "
                + "the memory limit"
        case .missing(let item, let advice, _): "the file has no \(item). \(advice)"
        }
    }

    /// Returns the error for a model whose output has this shape instead of one score per label.
    static func notScores(_ shape: [Int?]) -> ImportError.Problem {
        let kinds = DetectorKind.allCases.filter { $0.format == .onnx }.map(\.rawValue).joined(separator: ", ")
        let lengths = shape.map { $0.map(String.init) ?? "?" }.joined(separator: ", ")
        return .unsuitableModel(
            found: "a model whose output has the shape [\(lengths)]",
            advice:
                "Expected one score for each label: Imprint imports image classifiers and \(kinds), but no other detectors or "
                + "segmentation models", setting: .noDetector)
    }

    /// The problem as a part of another message.
    var reason: String {
        switch self {
        case .malformed(let reason), .exceedsLimit(let reason), .inputSize(_, let reason): reason
        case .network(let node, let error): "at \(node.debugDescription), \(error)".clause
        default: text
        }
    }
}

extension Size2D {
    /// Returns the smallest size that is not smaller, and whose sides are multiples of a number.
    fileprivate func rounded(upTo multiple: Int) -> Size2D {
        func rounded(_ side: Int) -> Int { (max(side, 1) + multiple - 1) / multiple * multiple }
        return Size2D(height: rounded(height), width: rounded(width))
    }
}
