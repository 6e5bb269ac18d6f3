internal import ImprintModel
internal import ImprintNetwork

/// What of a network is trained, from stage to stage of a run.
struct TrainingStages {
    /// For each stage the nodes that stay as they are.
    let frozen: [Set<String>]
    /// How many epochs each stage lasts, but for the last.
    private let epochs: Int

    /// One stage, in which everything is trained.
    static let single = TrainingStages(frozen: [[]], epochs: 1)

    private init(frozen: [Set<String>], epochs: Int) {
        self.frozen = frozen
        self.epochs = epochs
    }

    /// The stages in which a base is trained.
    /// - Parameter epochs: How many epochs each lasts, but for the last.
    init(of network: Network, _ trains: FineTuning.Trains, epochs: Int) {
        let blocks = network.blocks
        func allBut(_ count: Int) -> Set<String> { blocks.dropLast(count).reduce(into: []) { $0.formUnion($1) } }
        switch trains {
        case .head: frozen = [allBut(1)]
        case .all: frozen = [[]]
        case .headFirst: frozen = [allBut(1), []]
        case .gradual: frozen = blocks.indices.map { allBut($0 + 1) }
        }
        self.epochs = epochs
    }

    /// The number of stages.
    var count: Int { frozen.count }
    /// What stays as it is to the end.
    var last: Set<String> { frozen[count - 1] }
    /// The epoch (from 0) with which the last stage begins.
    var lastBegins: Int { (count - 1) * epochs }
    /// The stage that an epoch (from 0) belongs to.
    func stage(ofEpoch epoch: Int) -> Int { min(epoch / epochs, count - 1) }
    /// Whether an epoch (from 0) is the first of a stage after the first.
    func isNew(inEpoch epoch: Int) -> Bool { epoch > 0 && stage(ofEpoch: epoch) > stage(ofEpoch: epoch - 1) }
}

extension Network {
    /// The factor of each node's learning rate: 1 for the head's block, and for each block before it `decay` times that of the next.
    func rateFactors(decay: Float) -> [String: Float] {
        var factors: [String: Float] = [:]
        var factor: Float = 1
        for block in blocks.reversed() {
            for node in block { factors[node] = factor }
            factor *= decay
        }
        return factors
    }
}
