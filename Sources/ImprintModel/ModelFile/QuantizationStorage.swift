internal import Foundation
internal import ImprintCore
internal import ImprintNetwork

// A quantized model stores the weights of its int8 layers as integers with two tensors of scales, and the quantization of activations in the
// metadata.

extension Quantization {
    /// The metadata key in a model file.
    static let key = "imprint.quantization"

    /// Returns the name of the tensor with the input scales of another tensor; parameters of layers never have such names.
    static func inputScaleName(of tensor: String) -> String { "\(tensor).inputScale" }

    static func isInputScale(_ name: String) -> Bool { name.hasSuffix(".inputScale") }

    /// Returns the three tensors that store the weights of an int8 layer, or nil for another tensor.
    func tensors(of entry: ParameterLayout.Entry, in parameters: Parameters) -> [TensorSource]? {
        guard let weights = weights[entry.node], entry.parameter.role == .weight else { return nil }
        let shape = entry.parameter.shape
        let integers = TensorSource(entry.name, shape: shape, .int8) { body in
            try parameters.withValues(of: entry) { values in
                try weights.integers(UnsafeBufferPointer(values)).withUnsafeBytes(body)
            }
        }
        func scales(_ name: String, _ values: [Float]) -> TensorSource {
            TensorSource(Safetensors.Tensor(name: name, shape: [values.count], values: values), as: .float32)
        }
        return [
            integers, scales(QuantizedWeights.scaleName(of: entry.name), weights.scales),
            scales(Self.inputScaleName(of: entry.name), weights.inputScales),
        ]
    }

    /// Creates the quantization of a model file.
    /// - Parameters:
    ///   - stored: The activations in the metadata.
    ///   - scales: The scales of int8 tensors by their names.
    ///   - inputScales: The input scales of int8 tensors by their names.
    /// - Throws: `invalidScales` for scales of other parameters than weights of convolutions and dense layers, or of wrong number or value.
    init(
        _ stored: StoredActivations, scales: [String: [Float]], inputScales: [String: [Float]], of network: Network,
        _ layout: ParameterLayout
    ) throws(ModelFileError.Problem) {
        self.init(activations: try stored.decoded())
        let layers = Dictionary(uniqueKeysWithValues: network.nodes.map { ($0.name, $0.layer) })
        for (name, values) in inputScales {
            guard let entry = layout[name], let scales = scales[name] else { continue }
            let (layer, shape) = (layers[entry.node], entry.parameter.shape)
            guard entry.parameter.role == .weight, layer is Convolution || layer is Dense, shape.count >= 2 else {
                throw .invalidScales(
                    tensor: name, reason: "only weights of convolutions and dense layers can have input scales")
            }
            let isDepthwise = ((layer as? Convolution)?.groups ?? 1) > 1
            let expected = isDepthwise ? shape[shape.count - 1] : shape[shape.count - 2]
            guard values.count == expected, values.allSatisfy({ $0.isFinite && $0 > 0 }) else {
                throw .invalidScales(
                    tensor: name, reason: "its input scales must be \(expected) finite numbers above 0")
            }
            guard scales.allSatisfy({ $0 >= 0 }) else {
                throw .invalidScales(tensor: name, reason: "a scale is negative")
            }
            weights[entry.node] = Weights(scales: scales, inputScales: values, isDepthwise: isDepthwise)
        }
    }
}

extension ModelFile {
    /// Returns the quantization to store: nil for storage as floating point.
    func quantization(in storage: Storage?) -> Quantization? {
        storage == nil || storage == .int8 ? parameters.quantization : nil
    }
}

/// The quantization of activations in a model file's metadata.
struct StoredActivations: Codable {
    /// The numbers of the channels as base64 text: little-endian float32 scales, and bytes.
    struct Channels: Codable {
        let scales: Data
        let zeroPoints: Data
    }

    let activations: [String: Channels]

    private enum CodingKeys: String, CodingKey {
        case activations
    }

    init(_ quantization: Quantization) {
        activations = quantization.activations.mapValues { activation in
            Channels(
                scales: Data(
                    activation.scales.flatMap { scale in
                        withUnsafeBytes(of: scale.bitPattern.littleEndian) { Array($0) }
                    }),
                zeroPoints: Data(activation.zeroPoints))
        }
    }

    func decoded() throws(ModelFileError.Problem) -> [String: Quantization.Activation] {
        var result: [String: Quantization.Activation] = [:]
        for (name, channels) in activations {
            let bytes = [UInt8](channels.scales)
            guard bytes.count == 4 * channels.zeroPoints.count else {
                throw .invalidMetadata(
                    key: Quantization.key,
                    reason: "\(name) has \(counted(bytes.count, "byte")) of scales for "
                        + counted(channels.zeroPoints.count, "zero point"))
            }
            let scales = stride(from: 0, to: bytes.count, by: 4).map { start in
                // Little-endian.
                Float(bitPattern: bytes[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
            }
            guard scales.allSatisfy({ $0.isFinite && $0 > 0 }) else {
                throw .invalidMetadata(
                    key: Quantization.key, reason: "a scale of \(name) is not a finite number above 0")
            }
            result[name] = Quantization.Activation(scales: scales, zeroPoints: [UInt8](channels.zeroPoints))
        }
        return result
    }
}
