/// The fine-tuning of a base model.
public struct FineTuning: Codable, Hashable, Sendable {
    /// The trainable layers of a base model, and the order in which they are unfrozen.
    public enum TrainableLayers: String, Codable, Sendable, CaseIterable {
        /// Only the head, which is the last dense layer; all other layers are frozen, including the statistics of normalization layers.
        case head
        /// All layers.
        case all
        /// Only the head in the first stage, and all layers in the second.
        case headFirst = "head-first"
        /// Only the head in the first stage, and one more block of layers in each following stage (gradual unfreezing).
        ///
        /// A block has the layers whose outputs have the same number of pixels.
        ///
        /// Source: Howard and Ruder, "Universal language model fine-tuning for text classification", 2018.
        case gradual
    }

    /// The layer-wise learning-rate decay, 0 < x ≤ 1.
    ///
    /// The head's block has the learning rate itself. Each earlier block has the rate of the next block times this factor: block b of 0…B
    /// has rate · x^(B − b). The first blocks, which detect edges and colours, change least.
    public var layerDecay: Float
    /// The number of epochs of each stage, ≥ 1, except the last stage, which continues to the end.
    ///
    /// The learning rate warms up in the first epoch of every stage.
    public var stageEpochs: Int
    /// Whether batch normalization uses the running statistics of the base model without changing them.
    ///
    /// If false, it uses the statistics of each batch, and updates the running statistics. Scales and shifts are trainable in both cases.
    public var freezesStatistics: Bool

    private enum CodingKeys: String, CodingKey {
        case layerDecay, stageEpochs
        // The key of version 1.
        case freezesStatistics = "keepsStatistics"
    }

    /// Creates fine-tuning settings; the defaults suit a few dozen to a few thousand photos.
    public init(layerDecay: Float = 0.4, stageEpochs: Int = 1, freezesStatistics: Bool = true) {
        self.layerDecay = layerDecay
        self.stageEpochs = stageEpochs
        self.freezesStatistics = freezesStatistics
    }
}
