internal import Foundation
internal import ImprintNetwork

/// How a network's confidences were made honest: its logits are divided by one number, found on the validation images.
///
/// It changes no prediction: the order of the labels stays. See Guo et al., "On calibration of modern neural networks",
/// 2017; how the number is found says `Calibration.init(logits:labels:)` of the module Imprint.
public struct Calibration: Codable, Hashable, Sendable {
    /// What the logits are divided by, more than 0; above 1 the network was too sure, below 1 not sure enough.
    public var temperature: Double
    /// The expected calibration error of the confidences before, 0…1.
    public var errorBefore: Double
    /// The expected calibration error of the confidences afterwards, 0…1, on the same images.
    public var errorAfter: Double
    /// The number of images that the temperature was found on.
    public var images: Int

    /// Makes a calibration from its numbers.
    public init(temperature: Double, errorBefore: Double, errorAfter: Double, images: Int) {
        self.temperature = temperature
        self.errorBefore = errorBefore
        self.errorAfter = errorAfter
        self.images = images
    }

    /// The calibrated confidences of one image: softmax of its logits, divided by the temperature.
    /// - Parameter logits: A finite number per label.
    public func confidences(_ logits: [Float]) -> [Float] {
        let largest = Double(logits.max() ?? 0)
        let powers = logits.map { exp((Double($0) - largest) / temperature) }
        let sum = powers.reduce(0, +)
        return powers.map { Float($0 / sum) }
    }
}

extension ModelFile {
    /// The same model with its logits divided by `temperature`; nil if the network does not end in a dense layer and
    /// a softmax.
    ///
    /// Weight and bias of the dense layer are divided, so that whatever reads or exports the file gives calibrated
    /// confidences without a further rule.
    /// - Parameter temperature: More than 0.
    /// - Throws: `NetworkError.outOfMemory`.
    public func calibrated(_ temperature: Double) throws -> ModelFile? {
        precondition(temperature > 0 && temperature.isFinite, "a temperature is more than 0, not \(temperature)")
        guard let head = network.headName, network.nodes.last?.layer is Softmax else { return nil }
        let calibrated = try parameters.copy()
        for entry in calibrated.layout.entries where entry.node == head {
            calibrated.withValues(of: entry) { values in
                for place in values.indices { values[place] = Float(Double(values[place]) / temperature) }
            }
        }
        return ModelFile(
            network: network, parameters: calibrated, labels: labels, preprocessing: preprocessing, detector: detector,
            training: training, base: base, rehearsal: rehearsal, categories: categories, precision: precision)
    }
}
