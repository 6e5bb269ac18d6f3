internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The intermediate result of an importer, from which `ModelImporter` makes a model file.
struct ImportedParts {
    /// The architecture's name.
    var name: String
    var assembler: NetworkAssembler
    /// The model's output.
    var output: SourceActivation
    var labels: [String]?
    /// The input normalization; nil if the file does not specify it.
    var normalization: ModelImporter.InputNormalization?
    var notes: [String] = []
    /// The quantization that the file contains.
    var quantization = ImportedQuantization()
    /// The metadata of Imprint, if it wrote the file.
    var description: ExportedDescription?
    /// The version, licence and intended use that the file states.
    var details = ImportedDetails()
}

extension ModelImporter {
    /// Makes a model file.
    func finish(_ found: ImportedParts) throws -> ImportedModel {
        var parts = found
        var notes = found.notes
        var headNotes: [String] = []
        let map = parts.output.shape
        let output = try parts.assembler.vector(parts.output, named: "output")
        let ending = try parts.assembler.ending(of: output)
        let last: SourceActivation
        switch ending {
        // The softmax of a single logit is always 1.
        case .logits where output.shape.channels == 1:
            last = try parts.assembler.add(Sigmoid(), named: "probabilities", to: [output])
        case .logits: last = try parts.assembler.add(Softmax(), named: "probabilities", to: [output])
        case .separateProbabilities: last = try parts.assembler.endingInSigmoid(output)
        case .probabilities: last = output
        }
        var (network, parameters) = try parts.assembler.finish(last, named: parts.name)
        guard network.output.channels <= NetworkAssembler.maximumLabelCount else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its output has \(network.output.channels) elements, expected one for each label, "
                    + "at most \(NetworkAssembler.maximumLabelCount)")
        }
        let channels = network.input.channels
        let rule = normalization ?? found.normalization ?? defaultNormalization(channels, &notes)
        var preprocessing = try preprocessing(
            for: network, rule,
            cropAndScale: cropAndScale ?? found.description?.preprocessing.cropAndScale ?? .centerCrop)
        let channelNormalization = InputNormalization(mean: preprocessing.mean, scale: preprocessing.scale)
        let graph =
            ending == .logits
            ? try Network(name: network.name, input: network.input, nodes: network.nodes.dropLast()) : network
        if normalization == nil, let description = found.description,
            let known = try description.parameters(from: graph, parameters, rule: channelNormalization)
        {
            (network, parameters) = (description.network, known)
            parts.quantization.removeNormalization(of: graph, for: network)
            preprocessing = description.preprocessing
            if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        } else {
            headNotes += self.notes(on: ending, of: map)
        }
        let quantization = parts.quantization
        if let note = try quantization.apply(to: parameters, of: network, in: &parts.assembler) { notes.append(note) }
        let labels = try self.labels(for: network.output.count, found.labels ?? found.description?.labels, &headNotes)
        var model = ModelFile(
            network: network, parameters: parameters, labels: labels, preprocessing: preprocessing)
        model.details = found.details.details
        return ImportedModel(
            model: model, notes: notes + found.details.notes + headNotes, headNotes: headNotes)
    }

    /// Returns the preprocessing with an input normalization for a network.
    func preprocessing(
        for network: Network, _ rule: InputNormalization, cropAndScale: CropAndScale
    ) throws -> Preprocessing {
        let channels = network.input.channels
        var preprocessing = Preprocessing(
            width: network.input.width, height: network.input.height, channels: channels, cropAndScale: cropAndScale)
        preprocessing.mean = try broadcast(rule.mean, channels, "mean")
        preprocessing.scale = try broadcast(rule.scale, channels, "scale")
        if let problem = preprocessing.problem {
            guard normalization == nil else {
                throw ImportError.Problem.missing(
                    item: "valid input normalization: \(problem)", advice: "Set another mean or scale",
                    setting: .normalization)
            }
            throw ImportError.Problem.malformed(reason: "its preprocessing has \(problem)")
        }
        return preprocessing
    }

    /// Notes about the output layer.
    private func notes(on ending: NetworkAssembler.Ending, of shape: TensorShape) -> [String] {
        let end: String? =
            switch ending {
            case .logits where shape.count == 1:
                "The model outputs one logit; a sigmoid was added to turn it into a confidence."
            case .logits: "The model outputs logits; a softmax was added."
            case .separateProbabilities: "The model ends in a sigmoid: each label has an independent confidence."
            case .probabilities: nil
            }
        let map = "The model outputs a feature map of \(shape); each of its elements becomes a label."
        return [end, shape.pixels > 1 ? map : nil].compactMap { $0 }
    }

    /// Returns the input normalization if neither the file nor the user specifies one.
    private func defaultNormalization(_ channels: Int, _ notes: inout [String]) -> InputNormalization {
        notes.append(
            "The file does not specify the input normalization. Imprint assumes "
                + (channels == 3 ? "ImageNet's mean and standard deviation, as in torchvision" : "the range 0 to 1")
                + ". Set a mean and a scale if the model was trained with others.")
        return channels == 3 ? .imageNet : InputNormalization(mean: [0], scale: [1 / 255])
    }

    private func broadcast(_ values: [Float], _ channels: Int, _ name: String) throws -> [Float] {
        if values.count == channels { return values }
        guard values.count == 1 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model for images with \(counted(channels, "channel"))",
                advice:
                    "The \(name) has \(counted(values.count, "value")), expected \(channels == 1 ? "1" : "1 or \(channels)")",
                setting: .normalization)
        }
        return Array(repeating: values[0], count: channels)
    }

    /// Returns a unique label for each output.
    func labels(for count: Int, _ found: [String]?, _ notes: inout [String]) throws -> [String] {
        guard let labels = labels ?? found else {
            notes.append("The file has no labels. Imprint uses the output indices; set the labels to name them.")
            return (0..<count).map(String.init)
        }
        guard labels.count == count else {
            throw ImportError.Problem.missing(
                item: "matching labels: \(labels.count) for \(counted(count, "output"))",
                advice: "Set exactly \(counted(count, "label"))", setting: .labels)
        }
        var seen: [String: Int] = [:]
        var taken = Set(labels)
        let unique = labels.map { label in
            seen[label, default: 0] += 1
            guard var number = seen[label], number > 1 else { return label }
            while !taken.insert("\(label) (\(number))").inserted { number += 1 }
            return "\(label) (\(number))"
        }
        if unique != labels { notes.append("Duplicate labels were numbered.") }
        return unique
    }

    func readONNX(_ file: MappedFile) throws -> ImportedModel {
        let model = try ONNXModel(file)
        try ExportedDescription.checkNoDetector(model.metadata)
        // The graph name usually names the exporter, not the model.
        let name = URL(filePath: file.path).deletingPathExtension().lastPathComponent
        if let detector { return try readDetector(detector, model, named: name) }
        var importer: ONNXImporter
        let output: SourceActivation
        do {
            importer = try ONNXImporter(model, size: inputSize, isBGR: normalization?.isBGR ?? false)
            guard let first = try importer.run(model.graph, outputs: 1).first else {
                throw ImportError.Problem.unsuitableModel(
                    found: "a model without outputs", advice: "Expected an image classifier")
            }
            output = first
        } catch let problem as ImportError.Problem {
            throw model.explanation(of: problem) ?? problem
        }
        let description = ExportedDescription(model.metadata)
        let takesSamples = model.metadata["imprint.input"] == "samples"
        let parts = ImportedParts(
            name: name, assembler: importer.assembler, output: output, labels: nil,
            normalization: takesSamples || importer.takesBytes
                ? InputNormalization(mean: [0], scale: [1])
                : description.map { InputNormalization(mean: $0.preprocessing.mean, scale: $0.preprocessing.scale) },
            notes: model.graph.outputs.count < 2
                ? []
                : [
                    "The model has \(model.graph.outputs.count) outputs. "
                        + "Imprint uses the first, \(model.graph.outputs[0].name.debugDescription)."
                ], quantization: importer.quantization, description: description, details: model.details)
        let isMap = description == nil && !output.isFlat
        do {
            let model = try finish(parts)
            if !isMap { return model }
        } catch ImportError.Problem.exceedsLimit where isMap {
        } catch ImportError.Problem.unsuitableModel where isMap {}
        throw ImportError.Problem.notScores(output.dimensions)
    }

    func readCaffe(_ file: MappedFile) throws -> ImportedModel {
        guard let prototxt else {
            throw ImportError.Problem.missing(
                item: "architecture, because a .caffemodel contains only weights",
                advice: "Import it together with its deploy.prototxt", setting: .prototxt)
        }
        let text = try MappedFile(contentsOf: prototxt)
        guard text.count <= TextMessage.maximumLength else {
            throw ImportError(
                path: text.path,
                problem: .malformed(
                    reason:
                        "it has \(text.count) bytes, expected a deploy.prototxt of at most \(TextMessage.maximumLength)"
                )
            )
        }
        let net: TextMessage
        do {
            net = try TextMessage(Array(text.bytes(0..<text.count)))
        } catch {
            throw ImportError(path: text.path, problem: .malformed(reason: "\(error)"))
        }
        let weights = try CaffeWeights(file)
        var importer: CaffeImporter
        let output: SourceActivation
        do {
            let layers = try CaffeImporter.layers(of: net)
            importer = try CaffeImporter(net, layers, weights, size: inputSize)
            output = try importer.run(layers)
        } catch let problem as ImportError.Problem {
            throw ImportError(path: text.path, problem: problem)
        }
        let isColor = importer.assembler.input.channels == 3
        return try finish(
            ImportedParts(
                name: net.word("name") ?? "caffe", assembler: importer.assembler, output: output, labels: nil,
                // The ImageNet channel means that Caffe's own models use.
                normalization: isColor ? InputNormalization(mean: [123, 117, 104], scale: [1]) : nil,
                notes: isColor && normalization == nil
                    ? [
                        "A prototxt does not specify the input normalization. Imprint subtracts 104, 117 and 123 from blue, "
                            + "green and red. Set a mean and a scale if the model was trained with others."
                    ] : []))
    }
}
