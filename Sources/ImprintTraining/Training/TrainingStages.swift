internal import ImprintModel
internal import ImprintNetwork

/// The frozen and trainable layers of each stage of a run (gradual unfreezing).
struct TrainingStages {
    /// The frozen nodes of each stage.
    let frozen: [Set<String>]
    /// The number of epochs of each stage except the last.
    private let epochs: Int

    /// One stage with all layers trainable.
    static let single = TrainingStages(frozen: [[]], epochs: 1)

    private init(frozen: [Set<String>], epochs: Int) {
        self.frozen = frozen
        self.epochs = epochs
    }

    /// Creates the stages of training a base model.
    /// - Parameter epochs: The number of epochs of each stage except the last.
    init(of network: Network, _ trainableLayers: FineTuning.TrainableLayers, epochs: Int) {
        let blocks = network.blocks
        func allBut(_ count: Int) -> Set<String> { blocks.dropLast(count).reduce(into: []) { $0.formUnion($1) } }
        switch trainableLayers {
        case .head: frozen = [allBut(1)]
        case .all: frozen = [[]]
        case .headFirst: frozen = [allBut(1), []]
        case .gradual: frozen = blocks.indices.map { allBut($0 + 1) }
        }
        self.epochs = epochs
    }

    /// The number of stages.
    var count: Int { frozen.count }
    /// The frozen nodes of the last stage.
    var lastFrozen: Set<String> { frozen[count - 1] }
    /// The first epoch (from 0) of the last stage.
    var lastStageStart: Int { (count - 1) * epochs }
    /// Returns the stage of an epoch, both from 0.
    func stage(ofEpoch epoch: Int) -> Int { min(epoch / epochs, count - 1) }
    /// Whether an epoch (from 0) is the first of a stage after the first stage.
    func startsStage(_ epoch: Int) -> Bool { epoch > 0 && stage(ofEpoch: epoch) > stage(ofEpoch: epoch - 1) }
}

extension Network {
    /// Returns the learning-rate factor of each node for layer-wise learning-rate decay.
    ///
    /// It is 1 for the head's block, and for each earlier block `decay` times the factor of the next block.
    func learningRateFactors(decay: Float) -> [String: Float] {
        var factors: [String: Float] = [:]
        var factor: Float = 1
        for block in blocks.reversed() {
            for node in block { factors[node] = factor }
            factor *= decay
        }
        return factors
    }
}
