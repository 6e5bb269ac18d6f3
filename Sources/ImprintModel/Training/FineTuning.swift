/// How the layers of a trained model are trained further.
public struct FineTuning: Codable, Hashable, Sendable {
    /// What of a base is trained, and when.
    public enum Trains: String, Codable, Sendable, CaseIterable {
        /// The last dense layer alone; all others stay as they are, statistics of norms included.
        case head
        /// Every layer.
        case all
        /// The head alone in a first stage, every layer in the next.
        case headFirst = "head-first"
        /// The head alone in a first stage, and one block of layers more in each that follows, up to every layer (Howard and Ruder,
        /// "Universal language model fine-tuning for text classification", 2018); see `Network.blocks`.
        case gradual
    }

    /// Layer-wise learning-rate decay: the rate of the head's block is the learning rate, that of each block before it the rate of the
    /// block after it times this, 0 < x ≤ 1.
    ///
    /// Block b of 0…B has rate · x^(B − b): what is learnt first, edges and colours, changes least.
    public var layerDecay: Float
    /// How many epochs each stage lasts, but for the last, which lasts to the end; ≥ 1.
    ///
    /// The learning rate rises in the first epoch of every stage.
    public var stageEpochs: Int
    /// Whether norms normalize with the base's running statistics, and leave them as they are.
    ///
    /// If not, they normalize with the statistics of each batch, which the running ones follow. Scales and shifts are trained in
    /// either case.
    public var keepsStatistics: Bool

    /// Makes settings; those that are left out suit a few dozen to a few thousand photos.
    public init(layerDecay: Float = 0.4, stageEpochs: Int = 1, keepsStatistics: Bool = true) {
        self.layerDecay = layerDecay
        self.stageEpochs = stageEpochs
        self.keepsStatistics = keepsStatistics
    }
}
