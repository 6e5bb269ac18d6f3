public import ImprintCore
internal import ImprintModel

/// A layer that the target format cannot express, or that Imprint cannot export to it.
public struct UnsupportedLayer: Hashable, Codable, Sendable {
    /// The node's name.
    public let node: String
    /// The layer's kind, such as "convolution".
    public let kind: String
    /// The reason why the export fails.
    public let reason: String
}

/// An error of exporting a model.
public struct ExportError: DescribedError, Equatable {
    /// The file to write.
    public let path: String
    /// The reason why the export failed.
    public let problem: Problem

    /// The reasons why an export fails.
    ///
    /// The text `reason` is a part of the description, and may change between versions.
    public enum Problem: Error, Equatable, Sendable {
        /// The format cannot express some layers.
        case unsupported(format: String, layers: [UnsupportedLayer])
        /// The network of a logo detector does not accept the images of a pyramid level of `side` x `side` pixels.
        case pyramidLevel(side: Int, reason: String)
        /// The model is an imported detector, whose network is only a part of the detection.
        case detector
        /// A tensor has a value outside the range of float16.
        case exceedsFloat16(tensor: String, value: Float)
        /// The file would exceed protobuf's limit of 2³¹ − 1 bytes.
        case tooLarge(byteCount: Int)
        /// The model does not meet Core ML's requirements for on-device training.
        case notUpdatable(reason: String)
    }

    /// The layers that the format cannot express; empty for other problems.
    public var unsupportedLayers: [UnsupportedLayer] {
        if case .unsupported(_, let layers) = problem { layers } else { [] }
    }

    /// The file, the problem and the remedy.
    public var description: String {
        let text =
            switch problem {
            case .unsupported(let format, let layers):
                "\(format) cannot express "
                    + layers.map { "the layer \"\($0.node)\" of kind \($0.kind) (\($0.reason))" }.joined(
                        separator: ", ")
                    + ". Replace these layers, or choose another format."
            case .pyramidLevel(let side, let reason):
                "the network does not accept a pyramid level of \(side)x\(side) pixels: \(reason). Use a network without dense "
                    + "layers, or larger pyramid levels."
            case .detector:
                "the model is an imported detector, and its exported network would have no image sizes, boxes and non-maximum suppression. "
                    + "Export a classifier or a logo detector."
            case .exceedsFloat16(let tensor, let value):
                "the tensor \(tensor) has the value \(value), which exceeds float16 (±65504). Export with float32."
            case .tooLarge(let byteCount):
                "the file would have \(byteCount) bytes, but the format allows \(Int32.max). Export with float16."
            case .notUpdatable(let reason):
                "Core ML cannot train this network on a device: \(reason). Export a model that is not updatable."
            }
        return "\(path): the export failed: \(text)"
    }
}
