internal import ImprintModel
internal import ImprintNetwork

/// Imports a classifier from a Core ML file or package.
enum CoreMLImporter {
    /// Imports a model.
    ///
    /// - Parameter package: The package or folder with the model file and its weights.
    /// - Throws: `ImportError.Problem` and `WireError` if Imprint cannot import the model, `FileError` if its weights are
    ///   unreadable.
    static func read(_ file: MappedFile, in package: CoreMLPackage, importer: ModelImporter) throws -> ImportedModel {
        let model = try CoreMLModel(file)
        try ExportedDescription.checkNoDetector(model.description.userDefined)
        let name = package.name
        if case .program(let message) = model.kind {
            return try importer.finish(
                MILImporter.parts(MILProgram(message), model.description, package, size: file.count, importer: importer)
            )
        }
        let parts = model.parts
        try checkSupported(parts)
        return try importer.finish(network(file, model, parts, importer: importer, name: name))
    }

    /// Throws an error for a model that is not a neural network with its weights in the file.
    private static func checkSupported(_ parts: [CoreMLModel]) throws {
        for part in parts {
            switch part.kind {
            case .network, .linear: break
            case .other(2002):
                throw ImportError.Problem.unsuitableModel(
                    found:
                        "a Create ML image classifier, which contains only the weights of its last layer: its network "
                        + "(VisionFeaturePrint) is part of Apple's systems",
                    advice: "Train a new model on the same photos, "
                        + "or import a model that contains all its weights")
            case .program:
                throw ImportError.Problem.unsuitableModel(
                    found: "a pipeline with an ML program", advice: "Import only the network")
            case .pipeline, .other:
                throw ImportError.Problem.unsuitableModel(
                    found: "a model with a part of the type \(part.kindName)",
                    advice: "Expected a neural network, or a neural network followed by a linear model")
            }
        }
        guard case .network? = parts.first?.kind else {
            throw ImportError.Problem.unsuitableModel(
                found: parts.isEmpty ? "an empty pipeline" : "a linear model without a preceding network",
                advice: "Expected a neural network with an image input")
        }
    }

    /// Converts a sequence of networks with an optional linear model at the end.
    private static func network(
        _ file: MappedFile, _ model: CoreMLModel, _ parts: [CoreMLModel], importer: ModelImporter, name: String
    ) throws -> ImportedParts {
        guard let first = parts.first, case .network(let network) = first.kind else {
            throw ImportError.Problem.malformed(reason: "it contains no network")
        }
        var image = try CoreMLImage(
            first.description, size: importer.inputSize, expectsBGR: importer.normalization?.isBGR ?? false)
        // Weights have at least 16 bits. Quantized weights raise the limit when they are decoded.
        var assembler = NetworkAssembler(
            input: image.shape, weights: 2 * file.count,
            preservesNodes: model.description.userDefined[ModelFileKey.network] != nil)
        let start = try image.activation(&assembler, axes: axes(of: image, in: network), network)
        var graph = CoreMLGraph(assembler: assembler, values: [image.name: .activation(start)])
        var (labels, output): ([String]?, SourceActivation) = (nil, start)
        var notes = image.notes
        /// The outputs of the preceding models by name.
        var features: [String: SourceActivation] = [:]
        for (index, part) in parts.enumerated() {
            switch part.kind {
            case .network(let network):
                if index > 0 { try graph.begin(with: inputs(of: part, network, features, graph.assembler)) }
                try graph.run(network.layers)
                output = try result(of: network, part.description, graph)
                labels = network.labels ?? labels
                for feature in part.description.outputs {
                    if case .activation(let value)? = graph.values[feature.name] { features[feature.name] = value }
                }
            case .linear(let message):
                guard let input = part.description.inputs.first, let x = features[input.name] else {
                    throw ImportError.Problem.malformed(
                        reason: "its linear model reads an array that no preceding network computes")
                }
                let head = try CoreMLHead(message)
                output = try head.add(to: &graph.assembler, x, &notes)
                labels = head.labels
            default: break
            }
        }
        if let note = graph.quantizationNote { notes.append(note) }
        return ImportedParts(
            name: name, assembler: graph.assembler, output: output, labels: labels,
            normalization: image.normalization, notes: notes,
            description: ExportedDescription(model.description.userDefined), details: model.description.details)
    }

    private static func axes(
        of image: CoreMLImage, in network: CoreMLModel.NeuralNetwork
    ) -> [SourceActivation.Axis] {
        let imageAxes: [SourceActivation.Axis] = [.channels, .height, .width]
        let before: [SourceActivation.Axis] = [.unit, .batch]
        if let shape = image.arrayShape {
            return before.suffix(network.hasExactArrays ? shape.count - 3 : 2) + imageAxes
        }
        return before.suffix(network.hasExactImages ? 1 : 2) + imageAxes
    }

    /// Returns the inputs of a network in a pipeline, reshaped to its expected axes.
    private static func inputs(
        of part: CoreMLModel, _ network: CoreMLModel.NeuralNetwork, _ features: [String: SourceActivation],
        _ assembler: NetworkAssembler
    ) throws -> [String: SourceTensor] {
        var inputs: [String: SourceTensor] = [:]
        for input in part.description.inputs {
            guard let value = features[input.name], case .array(let shape) = input.type else {
                throw ImportError.Problem.unsuitableModel(
                    found:
                        "a pipeline that reads \(input.name.debugDescription), an array that no preceding part computes",
                    advice: "Expected a linear sequence of networks")
            }
            let ranks = [1: [1, 1] + shape + [1, 1], 3: [1, 1] + shape]
            let lengths = network.hasExactArrays ? shape : ranks[shape.count] ?? shape
            inputs[input.name] = .activation(try assembler.reshape(value, to: lengths, named: input.name))
        }
        return inputs
    }

    /// Returns the output of a network: the probabilities, else the model's first output, else the last layer's output.
    private static func result(
        of network: CoreMLModel.NeuralNetwork, _ description: CoreMLModel.Description, _ graph: CoreMLGraph
    ) throws -> SourceActivation {
        let names =
            [network.probabilities, description.probabilities] + description.outputs.map(\.name)
            + (network.layers.last?.outputs ?? [])
        for name in names {
            if case .activation(let output)? = graph.values[name], !name.isEmpty { return output }
        }
        throw ImportError.Problem.malformed(reason: "none of its outputs depends on the image")
    }
}

extension CoreMLModel {
    /// The name of the model type in the format.
    var kindName: String {
        switch kind {
        case .network: "neuralNetwork"
        case .pipeline: "pipeline"
        case .linear: "glmClassifier"
        case .program: "mlProgram"
        case .other(let number): CoreMLLayerNames.models[number] ?? "\(number)"
        }
    }
}
