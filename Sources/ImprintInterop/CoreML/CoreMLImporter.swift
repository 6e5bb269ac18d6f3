internal import ImprintModel
internal import ImprintNetwork

/// Makes a classifier of a Core ML file or package.
enum CoreMLImporter {
    /// Reads a model.
    /// - Parameter package: Where the file lies, and the weights that it names.
    /// - Throws: `ImportError.Problem` and `WireProblem` if it cannot be a model here, `FileError` where its weights
    ///   cannot be read.
    static func read(_ file: MappedFile, in package: CoreMLPackage, importer: ModelImporter) throws -> ImportedModel {
        let model = try CoreMLModel(file)
        let name = package.name
        if case .program(let message) = model.kind {
            return try importer.finish(
                MILImporter.parts(MILProgram(message), model.description, package, size: file.count, importer: importer)
            )
        }
        let parts = model.parts
        try refuseForeign(parts)
        return try importer.finish(network(file, model, parts, importer: importer, name: name))
    }

    /// Says what a model is that is no network with its weights in the file.
    private static func refuseForeign(_ parts: [CoreMLModel]) throws {
        for part in parts {
            switch part.kind {
            case .network, .linear: break
            case .other(2002):
                throw ImportError.Problem.otherKind(
                    found:
                        "an image classifier of Create ML, whose network (VisionFeaturePrint) is part of Apple's systems: "
                        + "this file has no weights of it, only those of the last layer",
                    advice: "it cannot run elsewhere; train on the same photos with `imprint train`, "
                        + "or convert a model whose weights are in the file")
            case .program:
                throw ImportError.Problem.otherKind(
                    found: "a pipeline with an ML program in it", advice: "convert the network alone")
            case .pipeline, .other:
                throw ImportError.Problem.otherKind(
                    found: "a model with a part of the kind \(part.kindName)",
                    advice: "expected a neural network, or one with a linear model behind it")
            }
        }
        guard case .network? = parts.first?.kind else {
            throw ImportError.Problem.otherKind(
                found: parts.isEmpty ? "an empty pipeline" : "a linear model without a network before it",
                advice: "expected a neural network that takes an image")
        }
    }

    /// Runs networks, of which each reads what those before it made, and perhaps a linear model at the end.
    private static func network(
        _ file: MappedFile, _ model: CoreMLModel, _ parts: [CoreMLModel], importer: ModelImporter, name: String
    ) throws -> ImportedParts {
        guard let first = parts.first, case .network(let network) = first.kind else {
            throw ImportError.Problem.malformed(reason: "it has no network")
        }
        var image = try CoreMLImage(
            first.description, size: importer.inputSize, takesBlueFirst: importer.samples?.isBlueFirst ?? false)
        // Numbers have 16 bits at least, or are codes, which are counted when they are read.
        var assembler = NetworkAssembler(
            input: image.shape, weights: 2 * file.count,
            isLiteral: model.description.userDefined[ExportedModel.networkKey] != nil)
        let start = try image.activation(&assembler, axes: axes(of: image, in: network), network)
        var graph = CoreMLGraph(assembler: assembler, values: [image.name: .activation(start)])
        var (labels, output): ([String]?, SourceActivation) = (nil, start)
        var notes = image.notes
        /// What the models before made, by the names of their outputs.
        var features: [String: SourceActivation] = [:]
        for (place, part) in parts.enumerated() {
            switch part.kind {
            case .network(let network):
                if place > 0 { try graph.begin(with: inputs(of: part, network, features, graph.assembler)) }
                try graph.run(network.layers)
                output = try result(of: network, part.description, graph)
                labels = network.labels ?? labels
                for feature in part.description.outputs {
                    if case .activation(let value)? = graph.values[feature.name] { features[feature.name] = value }
                }
            case .linear(let message):
                guard let input = part.description.inputs.first, let x = features[input.name] else {
                    throw ImportError.Problem.malformed(
                        reason: "its linear model reads what no network before it makes")
                }
                let head = try CoreMLHead(message)
                output = try head.add(to: &graph.assembler, x, &notes)
                labels = head.labels
            default: break
            }
        }
        return ImportedParts(
            name: name, assembler: graph.assembler, output: output, labels: labels, samples: image.samples,
            notes: notes, description: ExportedDescription(model.description.userDefined))
    }

    private static func axes(
        of image: CoreMLImage, in network: CoreMLModel.NeuralNetwork
    ) -> [SourceActivation.Axis] {
        let picture: [SourceActivation.Axis] = [.channels, .height, .width]
        let before: [SourceActivation.Axis] = [.unit, .batch]
        if let shape = image.arrayShape {
            return before.suffix(network.hasExactArrays ? shape.count - 3 : 2) + picture
        }
        return before.suffix(network.hasExactImages ? 1 : 2) + picture
    }

    /// What a network in a pipeline reads, with the axes that it expects.
    private static func inputs(
        of part: CoreMLModel, _ network: CoreMLModel.NeuralNetwork, _ features: [String: SourceActivation],
        _ assembler: NetworkAssembler
    ) throws -> [String: SourceTensor] {
        var inputs: [String: SourceTensor] = [:]
        for input in part.description.inputs {
            guard let value = features[input.name], case .array(let shape) = input.type else {
                throw ImportError.Problem.otherKind(
                    found:
                        "a pipeline whose parts read \(input.name.debugDescription), an array that no part before makes",
                    advice: "expected networks one after the other")
            }
            let ranks = [1: [1, 1] + shape + [1, 1], 3: [1, 1] + shape]
            let lengths = network.hasExactArrays ? shape : ranks[shape.count] ?? shape
            inputs[input.name] = .activation(try assembler.reshape(value, to: lengths, named: input.name))
        }
        return inputs
    }

    /// The tensor that a network is run for: the probabilities, else the model's first output, else the last layer's.
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
    /// The kind in the words of the format.
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
