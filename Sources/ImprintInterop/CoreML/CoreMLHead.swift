internal import ImprintCore
internal import ImprintNetwork

/// A generalized linear model as the last layer of a classifier.
///
/// The format is GLMClassifier.proto, https://github.com/apple/coremltools.
struct CoreMLHead {
    /// One row of weights per label, or for all labels except the first, which is the reference class.
    private var rows: [[Float]] = []
    private var offsets: [Float] = []
    private(set) var labels: [String] = []
    /// Whether each label has its own binary classifier (one-vs-rest), instead of all using a reference class.
    private var isOneVsRest = false

    init(_ message: WireMessage) throws {
        var transform = 0
        try message.forEachField { field in
            switch field.number {
            case 1:
                var row: [Float] = []
                try field.message().forEachField { if $0.number == 1 { try $0.append(doublesTo: &row) } }
                try rows.append(row, upTo: CoreMLModel.maximumCount, "rows of weights")
            case 2: try field.append(doublesTo: &offsets)
            case 3: transform = try field.integer()
            case 4: isOneVsRest = try field.integer() == 1
            case 100, 101: labels = try CoreMLModel.labels(field)
            default: break
            }
        }
        guard transform == 0 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a linear model with the probit function", advice: "Expected the logistic function")
        }
        let count = rows.count
        let expected = isOneVsRest && labels.count != 2 ? [labels.count] : [labels.count - 1, labels.count]
        guard !rows.isEmpty, expected.contains(count), isOneVsRest || count == labels.count - 1 else {
            throw ImportError.Problem.malformed(
                reason: "its linear model has \(counted(count, "row")) of weights for \(counted(labels.count, "label"))"
            )
        }
        if offsets.isEmpty { offsets = Array(repeating: 0, count: count) }
        guard offsets.count == count, rows.allSatisfy({ $0.count == rows[0].count }) else {
            throw ImportError.Problem.malformed(
                reason: "the rows of its linear model differ in length, or the number of offsets differs")
        }
    }

    /// Adds the linear model and returns the probabilities of the labels.
    func add(
        to assembler: inout NetworkAssembler, _ x: SourceActivation, _ notes: inout [String]
    ) throws -> SourceActivation {
        let hasReference = rows.count < labels.count
        let width = rows[0].count
        let weight = (hasReference ? [Float](repeating: 0, count: width) : []) + rows.flatMap { $0 }
        let logits = try assembler.dense(
            x, weight: weight, outputs: labels.count, bias: (hasReference ? [0] : []) + offsets, named: "linearModel")
        guard isOneVsRest, !hasReference else {
            return try assembler.add(Softmax(), named: "probabilities", to: [logits])
        }
        notes.append(
            "Each label was trained one-vs-rest: the confidences are independent "
                + "and do not add up to 1, unlike in Core ML."
        )
        return try assembler.add(Sigmoid(), named: "probabilities", to: [logits])
    }
}
