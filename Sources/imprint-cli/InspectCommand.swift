internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintFormats
internal import ImprintImages
internal import ImprintNetwork

struct InspectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Show what a weights file holds.")

    @Argument(help: "The weights file.")
    var model: String

    @Flag(help: "Show how each layer is computed.")
    var plan = false

    @Flag(help: "Print one JSON object to standard output.")
    var json = false

    func validate() throws { try requirePaths([model]) }

    func run() throws {
        let weights = try WeightsFile(contentsOf: URL(filePath: model))
        let layers = try plan ? layers(of: weights) : nil
        if json {
            try Terminal.emit(InspectionLine(weights, plan: layers))
        } else {
            try Terminal.show(table(weights, layers))
        }
    }

    private func layers(of weights: WeightsFile) throws -> [Plan.LayerSummary] {
        try Plan(weights.network, parameters: weights.parameters, options: Plan.Options(batchSize: 1)).summary
    }

    private func table(_ weights: WeightsFile, _ layers: [Plan.LayerSummary]?) -> String {
        let preprocessing = weights.preprocessing
        var lines = [
            "format       \(WeightsFile.formatVersion)",
            "network      \(weights.network.name), \(weights.network.nodes.count) layers, "
                + "\(weights.parameters.layout.trainableParameterCount) parameters",
            "input        \(weights.network.input), \(preprocessing.cropAndScale.rawValue)",
            "labels       \(weights.labels.joined(separator: ", "))",
            "digest       \(weights.digest ?? "–")",
        ]
        if let base = weights.base { lines.append("base         \(base)") }
        if let training = weights.training {
            lines.append(
                "training     \(training.trainingImages.values.reduce(0, +)) images, \(training.history.count) epochs, "
                    + "seed \(training.seed), accuracy \(training.accuracy.map { Terminal.percent($0) } ?? "unknown") on the "
                    + "\(training.validationImages.isEmpty ? "training" : "validation") images")
        }
        if let layers {
            func row(_ name: String, _ kind: String, _ algorithm: String, _ output: String, _ parameters: String) {
                lines.append(
                    column(name, 24) + column(kind, 20) + column(algorithm, 15) + column(output, 15) + parameters)
            }
            lines.append("")
            row("layer", "kind", "algorithm", "output", "parameters")
            for layer in layers {
                row(
                    layer.name, layer.kind, layer.algorithm.rawValue, "\(layer.output)", "\(layer.parameterCount)")
            }
        }
        return lines.joined(separator: "\n")
    }

    private func column(_ text: String, _ width: Int) -> String {
        text.padding(toLength: max(width, text.count + 1), withPad: " ", startingAt: 0)
    }
}

private struct InspectionLine: Encodable {
    let format: String
    let network: String
    let labels: [String]
    let parameters: Int
    let digest: String?
    let base: String?
    let layers: Int
    let preprocessing: Preprocessing
    let training: TrainingRecord?
    let plan: [Plan.LayerSummary]?

    init(_ weights: WeightsFile, plan: [Plan.LayerSummary]?) {
        format = "\(WeightsFile.formatVersion)"
        network = weights.network.name
        labels = weights.labels
        parameters = weights.parameters.layout.trainableParameterCount
        digest = weights.digest
        base = weights.base
        layers = weights.network.nodes.count
        preprocessing = weights.preprocessing
        training = weights.training
        self.plan = plan
    }

    private enum CodingKeys: String, CodingKey {
        case format, network, labels, parameters, digest, base, layers, preprocessing, training, plan
    }

    /// Writes all keys but the plan, which is there where it was asked for; `null` where there is no value.
    func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(format, forKey: .format)
        try values.encode(network, forKey: .network)
        try values.encode(labels, forKey: .labels)
        try values.encode(parameters, forKey: .parameters)
        try values.encode(digest, forKey: .digest)
        try values.encode(base, forKey: .base)
        try values.encode(layers, forKey: .layers)
        try values.encode(preprocessing, forKey: .preprocessing)
        try values.encode(training, forKey: .training)
        try values.encodeIfPresent(plan, forKey: .plan)
    }
}
