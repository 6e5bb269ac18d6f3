public import ImprintCore
internal import ImprintModel

/// A layer that another format cannot express, or that has no way into it here.
public struct UnsupportedLayer: Hashable, Codable, Sendable {
    /// The node's name.
    public let node: String
    /// The layer's kind, such as "convolution".
    public let kind: String
    /// What stands in the way.
    public let reason: String
}

/// Why a model cannot be exported.
public struct ExportError: DescribedError, Equatable {
    /// The file that was to be written.
    public let path: String
    /// What is wrong.
    public let problem: Problem

    /// What can stand in an export's way.
    public enum Problem: Error, Equatable, Sendable {
        /// The format cannot express some layers.
        case unsupported(format: String, layers: [UnsupportedLayer])
        /// The model looks for marks in pictures of several sizes.
        case detector
        /// A number of a tensor is beyond float16.
        case exceedsFloat16(tensor: String, value: Float)
        /// The file would be larger than protobuf allows, 2³¹ − 1 bytes.
        case tooLarge(byteCount: Int)
        /// What Core ML demands of a model that learns on a device is not there.
        case notUpdatable(reason: String)
    }

    /// The layers that the format cannot express; empty where something else is wrong.
    public var unsupportedLayers: [UnsupportedLayer] {
        if case .unsupported(_, let layers) = problem { layers } else { [] }
    }

    /// The file, what was found, what was expected and what to do.
    public var description: String {
        let text =
            switch problem {
            case .unsupported(let format, let layers):
                "was not written: \(format) cannot express "
                    + layers.map { "the layer \"\($0.node)\" of kind \($0.kind) (\($0.reason))" }.joined(
                        separator: ", ")
                    + "; replace what is named in the network, or choose another format"
            case .detector:
                "was not written: the model spots marks, and its map of a picture means something only together with Imprint's own "
                    + "scan in several sizes; export a model that was trained without --artwork"
            case .exceedsFloat16(let tensor, let value):
                "was not written: \(tensor) holds \(value), which is beyond float16 (at most 65504); export without float16"
            case .tooLarge(let byteCount):
                "was not written: it would have \(byteCount) bytes, and the format allows \(Int32.max); export with float16"
            case .notUpdatable(let reason):
                "was not written: Core ML cannot train this network on a device: \(reason); export without updatable"
            }
        return "\(path): \(text)"
    }
}
