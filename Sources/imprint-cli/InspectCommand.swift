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
        commandName: "inspect", abstract: "Show the contents of a model file or personalization, layer by layer.",
        discussion: """
            Examples:
              imprint inspect m.imprint
              imprint inspect m.imprint --plan --threads 1
              imprint inspect m.imprint --card > card.json
              imprint inspect me.imprint
            """)

    @Argument(help: "A model file, or a personalization from imprint personalize.")
    var model: String

    @Flag(help: "Show the execution plan: the algorithm and memory of each operation, with fused layers in one line.")
    var plan = false

    @Flag(help: "Show the plan of a training step instead of a prediction.")
    var training = false

    @Option(help: "The batch size of the plan. (default: 1, with --training 32)")
    var batchSize: Int?

    @Flag(help: "Print a model card instead, a CycloneDX 1.6 document in JSON.")
    var card = false

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model])
        if card && plan { throw ValidationError("Expected --card or --plan, found both. Leave out one of them.") }
        try require(batchSize ?? 1, "--batch-size", in: 1...65536)
        guard plan || !(training || batchSize != nil) else {
            throw ValidationError("--training and --batch-size apply only to the plan. Add --plan.")
        }
    }

    func run() throws {
        let file = installedFile(model) ?? URL(filePath: model)
        if Personalization.isPersonalization(at: file) {
            guard !plan, !card else {
                let (option, part) = plan ? ("--plan", "network") : ("--card", "model card")
                throw ValidationError(
                    "\(option): \(model) is a personalization, which has no \(part). Inspect its model instead.")
            }
            return try show(Personalization(contentsOf: file))
        }
        let model = try namedModel(model)
        if card { return try showCard(of: model, at: file) }
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.resolvingSymlinksInPath().path)
        let byteCount = attributes?[.size]
        let inspection = Inspection(
            model: model, summary: model.network.summary(),
            memory: Network.PredictionMemory(model.network, quantization: model.parameters.quantization),
            fileByteCount: byteCount as? Int ?? 0,
            plan: plan ? try overview(of: model) : nil)
        if common.json {
            try Terminal.emit(InspectionLine(inspection))
        } else {
            let layers = inspection.plan.map(PlanTable.text) ?? inspection.summary.description
            try Terminal.show([table(inspection), layers].joined(separator: "\n\n"))
        }
    }

    /// Prints the model card on one line with --json, otherwise on several.
    private func showCard(of model: ModelFile, at file: URL) throws {
        // The built-in base model has no file.
        let isFile = FileStatus(file)?.isFile == true
        var hash = SHA256()
        if isFile {
            let handle = try FileHandle(forReadingFrom: file)
            while let chunk = try handle.read(upToCount: 1 << 20), !chunk.isEmpty {
                hash.update([UInt8](chunk).span.bytes)
            }
        }
        let card = ModelCard(
            model, name: file.deletingPathExtension().lastPathComponent, sha256: isFile ? hash.hexadecimal : nil,
            tool: ModelCard.Tool(version: ImprintCommand.configuration.version))
        try Terminal.put(String(decoding: card.json(isPretty: !common.json), as: UTF8.self))
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
                + (line.layers.isEmpty ? "" : "; \(list(line.layers))") + ", \(line.parameters) parameters",
            "photos       \(photos.isEmpty ? "none" : photos.joined(separator: ", "))"
                + (corrected > 0 ? "; \(counted(corrected, "correction"))" : ""),
        ]
        try Terminal.show(lines.joined(separator: "\n"))
    }

    private func overview(of model: ModelFile) throws -> ExecutionPlan.Overview {
        var options = ExecutionPlan.Options(
            batchSize: batchSize ?? (training ? ClassifierHyperparameters().batchSize : 1),
            mode: training ? .training : .prediction, workers: Workers(common.threadCount))
        options.precision = .automatic
        return ExecutionPlan.Overview(
            training ? try model.network.logits() : model.network, options: options,
            quantization: training ? nil : model.parameters.quantization)
    }

    /// Returns the training data, the length of training and the accuracy.
    private func summary(_ training: TrainingRecord, _ photos: RecordedPhotos) -> String {
        let data =
            photos.isOnlyArtwork
            ? "composites of artwork"
            : photos.countsLabels
                ? "photos with \(counted(photos.training, "label"))" : counted(photos.training, "photo")
        let length = counted(training.history.count, training.unit)
        let set =
            switch photos.accuracySet {
            case .validation: "validation photos"
            case .training: "training photos"
            case .composites: "composites"
            }
        let accuracy = training.accuracy.map { ", accuracy \(Terminal.percent($0)) on the \(set)" }
        return "\(data), \(length), seed \(training.seed)\(accuracy ?? "")"
    }

    private func text(_ memory: Network.PredictionMemory) -> String {
        "\(TextTable.bytes(memory.byteCount)) to predict: parameters \(TextTable.bytes(memory.parameterByteCount)), "
            + "packed weights \(TextTable.bytes(memory.transformedWeightsByteCount)), activations "
            + TextTable.bytes(memory.arenaByteCount)
    }

    /// Returns the labels; those of a detector's logos before the label of photos without a logo.
    private func labels(of model: ModelFile) -> String {
        let logos = model.head.logos.map(\.label)
        let others = logos.isEmpty ? [] : model.labels.filter { !logos.contains($0) }
        let known = others.isEmpty ? model.labels : logos
        return TextTable.list(known) + (others.isEmpty ? "" : "; without a logo: \(TextTable.list(others))")
    }

    private func table(_ inspection: Inspection) -> String {
        let model = inspection.model
        let preprocessing = model.preprocessing
        var lines = [
            "format       \(inspection.format)",
            "network      \(shown(model.network.name)), \(counted(model.network.nodes.count, "layer")), "
                + counted(model.parameters.layout.trainableCount, "parameter"),
            "input        \(model.network.input), \(preprocessing.cropAndScale.rawValue)",
            "labels       \(labels(of: model))",
            "digest       \(model.digest ?? "–")",
        ]
        if let digest = model.baseDigest { lines.append("base         \(shown(digest))") }
        if let rehearsal = model.rehearsal {
            lines.append(
                "rehearsal    features of \(counted(rehearsal.labels.count, "training photo")), for imprint personalize"
            )
        }
        if let rule = model.noveltyRule {
            lines.append(
                "novelty      accepts \(Terminal.percent(rule.acceptance)) of \(rule.images) photos of the labels, "
                    + "others are \"none of these\"")
        }
        if let categories = model.categories {
            lines.append("categories   \(TextTable.list(categories.names))")
        }
        if let training = model.training, let photos = RecordedPhotos(model) {
            // Merging has changed the parameters since.
            let owner = training.trainedModel.map {
                "of \($0 == model.baseDigest ? "the base model" : "the model \(shown($0))"): "
            }
            lines.append("training     \(owner ?? "")\(summary(training, photos))")
        }
        let details = model.details
        if let version = details.version { lines.append("version      \(version)") }
        if let license = details.license { lines.append("licence      \(shown(license))") }
        if let intendedUse = details.intendedUse { lines.append("use          \(shown(intendedUse))") }
        if let quantization = model.parameters.quantization {
            lines.append(
                "precision    int8 in \(counted(quantization.weights.count, "layer")), float32 in others")
        }
        lines.append("file         \(TextTable.bytes(inspection.fileByteCount)), \(model.storage.rawValue)")
        lines.append("memory       \(text(inspection.memory))")
        return lines.joined(separator: "\n")
    }
}

private struct PersonalizationLine: Encodable {
    let format = "\(Personalization.formatVersion)"
    let kind = "personalization"
    let base: String
    /// The labels that the personalization adds.
    let added: [String]
    /// The labels whose parameters in the head it changes.
    let labels: [String]
    /// The weights before the head that it changes.
    let layers: [String]
    let parameters: Int
    let examples: [String: Int]
    let corrections: [String: Int]

    init(_ personalization: Personalization) {
        base = personalization.baseDigest
        added = personalization.addedLabels
        labels = personalization.columns.map(\.label)
        layers = personalization.adapters.map(\.parameter)
        parameters =
            personalization.columns.reduce(0) { $0 + $1.weights.count + 1 }
            + personalization.adapters.reduce(0) { $0 + $1.left.count + $1.right.count }
        examples = personalization.record.examples
        corrections = personalization.record.corrections
    }
}

/// A model and its properties.
private struct Inspection {
    let model: ModelFile
    let summary: Network.Summary
    let memory: Network.PredictionMemory
    let fileByteCount: Int
    let plan: ExecutionPlan.Overview?

    /// The format of the file.
    var format: String { model.format.map(String.init) ?? "" }
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
    /// The number of training photos whose features the file stores.
    let rehearsal: Int
    /// The novelty rule, if there is one.
    let novelty: NoveltyLine?
    /// The labels of each category, if there are any.
    @NullIfMissing var categories: Categories?
    @NullIfMissing var training: TrainingRecord?
    /// The version, the licence and the intended use, as far as they are known.
    let details: ModelDetails
    let storage: ModelFile.Storage
    /// The names of the layers that compute in int8, if there are any.
    let int8Layers: [String]?
    let fileByteCount: Int
    /// The layers.
    let nodes: [Network.Summary.Layer]
    let multiplications: Int
    let memory: Network.PredictionMemory
    /// Only with --plan, as `engine`.
    let plan: ExecutionPlan.Overview?
    let engine: Engine?

    init(_ inspection: Inspection) {
        let model = inspection.model
        format = inspection.format
        network = model.network.name
        labels = model.labels
        parameters = model.parameters.layout.trainableCount
        digest = model.digest
        base = model.baseDigest
        layers = model.network.nodes.count
        preprocessing = model.preprocessing
        rehearsal = model.rehearsal?.labels.count ?? 0
        novelty = model.noveltyRule.map(NoveltyLine.init)
        categories = model.categories
        training = model.training
        details = model.details
        storage = model.storage
        int8Layers = model.parameters.quantization?.weights.keys.sorted()
        fileByteCount = inspection.fileByteCount
        nodes = inspection.summary.layers
        multiplications = inspection.summary.multiplications
        memory = inspection.memory
        plan = inspection.plan
        engine = plan.map { _ in Engine.current }
    }
}
