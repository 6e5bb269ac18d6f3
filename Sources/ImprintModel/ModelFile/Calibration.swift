internal import Foundation
internal import ImprintNetwork

/// Temperature scaling: the division of a network's logits by a temperature that was fitted on the validation set.
///
/// It does not change the predicted label, because the order of the labels stays the same. `Calibration.init(logits:labels:)` of
/// ImprintTraining fits the temperature. Source: Guo et al., "On calibration of modern neural networks", 2017.
public struct Calibration: Codable, Hashable, Sendable {
    /// The divisor of the logits, more than 0: above 1 if the network was overconfident, and below 1 if it was underconfident.
    public var temperature: Double
    /// The expected calibration error (ECE) of the confidences before calibration, 0…1.
    public var errorBefore: Double
    /// The expected calibration error (ECE) of the calibrated confidences on the same images, 0…1.
    public var errorAfter: Double
    /// The number of images that the temperature was fitted on.
    public var images: Int

    /// Creates a calibration.
    public init(temperature: Double, errorBefore: Double, errorAfter: Double, images: Int) {
        self.temperature = temperature
        self.errorBefore = errorBefore
        self.errorAfter = errorAfter
        self.images = images
    }

    /// Returns the calibrated confidences of one image: the softmax of its logits, divided by the temperature.
    /// - Parameter logits: One finite logit per label.
    public func confidences(_ logits: [Float]) -> [Float] {
        let largest = Double(logits.max() ?? 0)
        let powers = logits.map { exp((Double($0) - largest) / temperature) }
        let sum = powers.reduce(0, +)
        return powers.map { Float($0 / sum) }
    }
}

extension ModelFile {
    /// Returns the model with its logits divided by `temperature`; nil if the network does not end in a dense layer or convolution and a
    /// softmax.
    ///
    /// Between the two, there may be ReLU, leaky ReLU, pooling, dropout and flatten, as in SqueezeNet. The method divides the weights and
    /// biases of the dense layer or convolution, so every reader and every export of the file gives calibrated confidences. The layer of a
    /// quantized model then computes in float32.
    /// - Parameter temperature: More than 0.
    /// - Throws: `NetworkError.outOfMemory`.
    public func calibrated(_ temperature: Double) throws -> ModelFile? {
        precondition(
            temperature > 0 && temperature.isFinite,
            "a temperature must be finite and more than 0, not \(temperature)")
        guard let layer = network.logitLayerName else { return nil }
        let calibrated = try parameters.copy()
        for entry in calibrated.layout.entries where entry.node == layer {
            calibrated.withValues(of: entry) { values in
                for index in values.indices { values[index] = Float(Double(values[index]) / temperature) }
            }
        }
        calibrated.quantization = parameters.quantization?.removing([layer], in: network)
        return with(calibrated, baseDigest: baseDigest, rehearsal: rehearsal)
    }
}
