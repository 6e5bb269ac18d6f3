internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork
internal import ImprintTraining

struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Show what a weights file or a personalization holds, layer by layer.")

    @Argument(help: "The weights file, or what imprint personalize made.")
    var model: String

    @Flag(help: "Show how each layer is computed and what it takes, with what is computed together in one line.")
    var plan = false

    @Flag(help: "Show the plan of a training step instead of a prediction's.")
    var training = false

    @Option(help: "How many images the plan takes at once. (default: 1, with --training 32)")
    var batchSize: Int?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model])
        try require(batchSize ?? 1, "--batch-size", in: 1...65536)
        guard plan || !(training || batchSize != nil) else {
            throw ValidationError("--training and --batch-size are about the plan; add --plan.")
        }
    }

    func run() throws {
        let file = URL(filePath: model)
        if Personalization.isOne(file) {
            guard !plan else {
                throw ValidationError("--plan: \(model) is a personalization, which has no network; inspect its model.")
            }
            return try show(Personalization(contentsOf: file))
        }
        let weights = try ModelFile(contentsOf: file)
        let byteCount = try FileManager.default.attributesOfItem(atPath: file.resolvingSymlinksInPath().path)[.size]
        let inspection = Inspection(
            weights: weights, network: Network.Overview(weights.network), fileByteCount: byteCount as? Int ?? 0,
            plan: plan ? try overview(of: weights) : nil)
        if common.json {
            try Terminal.emit(InspectionLine(inspection))
        } else {
            let layers = inspection.plan.map(PlanTable.text) ?? LayerTable.text(inspection.network)
            try Terminal.show([table(inspection), layers].joined(separator: "\n\n"))
        }
    }

    private func show(_ personalization: Personalization) throws {
        let line = PersonalizationLine(personalization)
        guard !common.json else { return try Terminal.emit(line) }
        let corrected = personalization.record.corrections.values.reduce(0, +)
        func list(_ names: [String]) -> String { names.isEmpty ? "none" : shown(names) }
        let photos = line.examples.sorted { $0.key < $1.key }.map { "\($0.value) of \(shown($0.key))" }
        let lines = [
            "format       \(line.format), a personalization",
            "base         \(shown(line.base))",
            "new labels   \(list(line.added))",
            "changes      the head for \(list(line.labels))"
                + (line.layers.isEmpty ? "" : "; \(list(line.layers))") + ", \(line.parameters) numbers",
            "photos       \(photos.isEmpty ? "none" : photos.joined(separator: ", "))"
                + (corrected > 0 ? "; \(corrected) corrections" : ""),
        ]
        try Terminal.show(lines.joined(separator: "\n"))
    }

    private func overview(of weights: ModelFile) throws -> ExecutionPlan.Overview {
        ExecutionPlan.Overview(
            training ? try weights.network.logits() : weights.network,
            options: ExecutionPlan.Options(
                batchSize: batchSize ?? (training ? ClassifierHyperparameters().batchSize : 1),
                mode: training ? .training : .prediction, workers: Workers(common.threadCount)))
    }

    private func table(_ inspection: Inspection) -> String {
        let weights = inspection.weights
        let preprocessing = weights.preprocessing
        var lines = [
            "format       \(inspection.format)",
            "network      \(shown(weights.network.name)), \(weights.network.nodes.count) layers, "
                + "\(weights.parameters.layout.trainableCount) parameters",
            "input        \(weights.network.input), \(preprocessing.cropAndScale.rawValue)",
            "labels       \(TextTable.list(weights.labels))",
            "digest       \(weights.digest ?? "–")",
        ]
        if let base = weights.base { lines.append("base         \(shown(base))") }
        if let rehearsal = weights.rehearsal {
            lines.append("rehearsal    features of \(rehearsal.labels.count) training photos, for imprint personalize")
        }
        if let categories = weights.categories {
            lines.append("categories   \(TextTable.list(categories.names))")
        }
        if let training = weights.training {
            lines.append(
                "training     \(training.trainingImages.values.reduce(0, +)) images, \(training.history.count) epochs, "
                    + "seed \(training.seed), accuracy \(training.accuracy.map { Terminal.percent($0) } ?? "unknown") on the "
                    + "\(training.validationImages.isEmpty ? "training" : "validation") images")
        }
        lines.append("file         \(TextTable.bytes(inspection.fileByteCount)), \(weights.storage.rawValue)")
        lines.append("memory       \(LayerTable.memory(inspection.network.memory))")
        return lines.joined(separator: "\n")
    }
}

private struct PersonalizationLine: Encodable {
    let format = "\(Personalization.formatVersion)"
    let kind = "personalization"
    let base: String
    /// The labels that it adds.
    let added: [String]
    /// The labels whose numbers in the head it changes.
    let labels: [String]
    /// The weights before the head that it changes.
    let layers: [String]
    let parameters: Int
    let examples: [String: Int]
    let corrections: [String: Int]

    init(_ personalization: Personalization) {
        base = personalization.base
        added = personalization.addedLabels
        labels = personalization.columns.map(\.label)
        layers = personalization.factors.map(\.parameter)
        parameters =
            personalization.columns.reduce(0) { $0 + $1.weights.count + 1 }
            + personalization.factors.reduce(0) { $0 + $1.left.count + $1.right.count }
        examples = personalization.record.examples
        corrections = personalization.record.corrections
    }
}

/// A model and what was found out about it.
private struct Inspection {
    let weights: ModelFile
    let network: Network.Overview
    let fileByteCount: Int
    let plan: ExecutionPlan.Overview?

    /// The format of the file.
    var format: String { weights.format.map(String.init) ?? "" }
}

private struct InspectionLine: Encodable {
    let format: String
    let network: String
    let labels: [String]
    let parameters: Int
    @NullIfMissing var digest: String?
    @NullIfMissing var base: String?
    let layers: Int
    let preprocessing: Preprocessing
    /// Of how many training photos it keeps features.
    let rehearsal: Int
    /// The labels of each category, if there are any.
    @NullIfMissing var categories: Categories?
    @NullIfMissing var training: TrainingRecord?
    let storage: ModelFile.Storage
    let fileByteCount: Int
    /// The layers one by one.
    let nodes: [Network.LayerOverview]
    let multiplications: Int
    let memory: Network.PredictionMemory
    /// Only with --plan, as `engine`.
    let plan: ExecutionPlan.Overview?
    let engine: Engine?

    init(_ inspection: Inspection) {
        let weights = inspection.weights
        format = inspection.format
        network = weights.network.name
        labels = weights.labels
        parameters = weights.parameters.layout.trainableCount
        digest = weights.digest
        base = weights.base
        layers = weights.network.nodes.count
        preprocessing = weights.preprocessing
        rehearsal = weights.rehearsal?.labels.count ?? 0
        categories = weights.categories
        training = weights.training
        storage = weights.storage
        fileByteCount = inspection.fileByteCount
        nodes = inspection.network.layers
        multiplications = inspection.network.multiplications
        memory = inspection.network.memory
        plan = inspection.plan
        engine = plan.map { _ in Engine.current }
    }
}
