internal import Foundation
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// What a format's reader found, before it becomes a model file.
struct ImportedParts {
    /// The architecture's name.
    var name: String
    var assembler: NetworkAssembler
    /// What the model gives back.
    var output: SourceActivation
    var labels: [String]?
    /// How photos are prepared; nil if the file does not say.
    var samples: ModelImporter.SampleRule?
    var notes: [String] = []
    /// What Imprint says of the model, where it wrote the file.
    var description: ExportedDescription?
}

extension ModelImporter {
    /// The model as a model file.
    func finish(_ found: ImportedParts) throws -> ImportedModel {
        var parts = found
        var notes = found.notes
        let map = parts.output.shape
        let output = try parts.assembler.vector(parts.output, named: "output")
        let ending = parts.assembler.ending(of: parts.output)
        // Of one number a softmax is always 1.
        let isSingle = output.shape.channels == 1
        let last =
            ending == .logits
            ? try isSingle
                ? parts.assembler.add(Sigmoid(), named: "probabilities", to: [output])
                : parts.assembler.add(Softmax(), named: "probabilities", to: [output]) : output
        var (network, parameters) = try parts.assembler.finish(last, named: parts.name)
        guard network.output.channels <= NetworkAssembler.greatestLabelCount else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its result has \(network.output.channels) numbers, expected one for each label, "
                    + "\(NetworkAssembler.greatestLabelCount) at most")
        }
        let channels = network.input.channels
        let rule = samples ?? found.samples ?? assumedSamples(channels, &notes)
        let ownRule = SampleRule(
            mean: try spread(rule.mean, channels, "mean"), scale: try spread(rule.scale, channels, "scale"))
        var preprocessing = Preprocessing(
            width: network.input.width, height: network.input.height, channels: channels,
            cropAndScale: cropAndScale ?? found.description?.preprocessing.cropAndScale ?? .centerCrop)
        preprocessing.mean = ownRule.mean
        preprocessing.scale = ownRule.scale
        if let problem = preprocessing.problem {
            guard samples == nil else {
                throw ImportError.Problem.missing(what: "use for \(problem)", advice: "give another --mean or --scale")
            }
            throw ImportError.Problem.malformed(reason: "it prepares images by \(problem)")
        }
        let graph =
            ending == .logits
            ? try Network(name: network.name, input: network.input, nodes: network.nodes.dropLast()) : network
        if samples == nil, let description = found.description,
            let known = try description.parameters(from: graph, parameters, rule: ownRule)
        {
            (network, parameters) = (description.network, known)
            preprocessing = description.preprocessing
            if let cropAndScale { preprocessing.cropAndScale = cropAndScale }
        } else {
            notes += self.notes(on: ending, of: map)
        }
        let labels = try self.labels(for: network.output.count, found.labels ?? found.description?.labels, &notes)
        return ImportedModel(
            weights: ModelFile(
                network: network, parameters: parameters, labels: labels, preprocessing: preprocessing), notes: notes)
    }

    /// What was made of a model's end.
    private func notes(on ending: NetworkAssembler.Ending, of shape: TensorShape) -> [String] {
        let end: String? =
            switch ending {
            case .logits where shape.count == 1:
                "The model ends in one logit; a sigmoid was added, so that it gives a confidence."
            case .logits: "The model ends in logits; a softmax was added."
            case .separateProbabilities: "The model ends in a sigmoid: each label has a confidence of its own."
            case .probabilities: nil
            }
        let map = "The model gives a map of \(shape); each of its numbers is taken for a label."
        return [end, shape.pixels > 1 ? map : nil].compactMap { $0 }
    }

    /// How samples are prepared where neither the file nor the user says so.
    private func assumedSamples(_ channels: Int, _ notes: inout [String]) -> SampleRule {
        notes.append(
            "The file does not say how samples become the input; taken as "
                + (channels == 3 ? "torchvision's models take them" : "0 to 1")
                + ". Say otherwise with --mean and --scale.")
        return channels == 3 ? .imageNet : SampleRule(mean: [0], scale: [1 / 255])
    }

    private func spread(_ values: [Float], _ channels: Int, _ name: String) throws -> [Float] {
        if values.count == channels { return values }
        guard values.count == 1 else {
            throw ImportError.Problem.otherKind(
                found: "a model of images with \(channels) channels",
                advice: "the \(name) has \(values.count) numbers, expected \(channels == 1 ? "1" : "1 or \(channels)")")
        }
        return Array(repeating: values[0], count: channels)
    }

    /// A label for each output, all different.
    private func labels(for count: Int, _ found: [String]?, _ notes: inout [String]) throws -> [String] {
        guard let labels = labels ?? found else {
            notes.append("The file has no labels; they are the outputs' numbers. Say which with --labels.")
            return (0..<count).map(String.init)
        }
        guard labels.count == count else {
            throw ImportError.Problem.missing(
                what: "label for each of its \(count) outputs, but \(labels.count)",
                advice: "give as many with --labels")
        }
        var seen: [String: Int] = [:]
        var taken = Set(labels)
        let different = labels.map { label in
            seen[label, default: 0] += 1
            guard var number = seen[label], number > 1 else { return label }
            while !taken.insert("\(label) (\(number))").inserted { number += 1 }
            return "\(label) (\(number))"
        }
        if different != labels { notes.append("Labels that are there more than once have numbers now.") }
        return different
    }

    func readONNX(_ file: MappedFile) throws -> ImportedModel {
        let model = try ONNXModel(file)
        var importer: ONNXImporter
        let output: SourceActivation
        do {
            importer = try ONNXImporter(model, size: inputSize, isBlueFirst: samples?.isBlueFirst ?? false)
            output = try importer.run(model.graph)
        } catch let problem as ImportError.Problem {
            throw model.explanation(of: problem) ?? problem
        }
        let description = ExportedDescription(model.metadata)
        let takesSamples = model.metadata["imprint.input"] == "samples"
        let parts = ImportedParts(
            // The graph's name is mostly the exporter's.
            name: URL(filePath: file.path).deletingPathExtension().lastPathComponent, assembler: importer.assembler,
            output: output, labels: nil,
            samples: takesSamples || importer.takesBytes
                ? SampleRule(mean: [0], scale: [1])
                : description.map { SampleRule(mean: $0.preprocessing.mean, scale: $0.preprocessing.scale) },
            notes: model.graph.outputs.count < 2
                ? []
                : [
                    "The model has \(model.graph.outputs.count) results, "
                        + "of which the first, \(model.graph.outputs[0].name.debugDescription), is taken."
                ], description: description)
        let isMap = description == nil && !output.isFlat
        do {
            let model = try finish(parts)
            if !isMap { return model }
        } catch ImportError.Problem.exceedsLimit where isMap {}
        throw ImportError.Problem.notScores(output.dimensions)
    }

    func readCaffe(_ file: MappedFile) throws -> ImportedModel {
        guard let prototxt else {
            throw ImportError.Problem.missing(
                what: "architecture, for it is the weights of a Caffe model",
                advice: "name its deploy.prototxt with --prototxt")
        }
        let text = try MappedFile(contentsOf: prototxt)
        guard text.count <= TextMessage.greatestLength else {
            throw ImportError(
                path: text.path,
                problem: .malformed(
                    reason:
                        "it has \(text.count) bytes, expected a deploy.prototxt of \(TextMessage.greatestLength) at most"
                )
            )
        }
        let net: TextMessage
        do {
            net = try TextMessage(Array(text.bytes(0..<text.count)))
        } catch {
            throw ImportError(path: text.path, problem: .malformed(reason: "\(error)"))
        }
        let layers = try CaffeImporter.layers(of: net)
        var importer = try CaffeImporter(net, layers, CaffeWeights(file), size: inputSize)
        let output = try importer.run(layers)
        let hasColours = importer.assembler.input.channels == 3
        return try finish(
            ImportedParts(
                name: net.word("name") ?? "caffe", assembler: importer.assembler, output: output, labels: nil,
                // The means of ImageNet's photos that came with Caffe's own models.
                samples: hasColours ? SampleRule(mean: [123, 117, 104], scale: [1]) : nil,
                notes: hasColours && samples == nil
                    ? [
                        "A prototxt does not say what is subtracted from photos; taken as 104, 117 and 123 from blue, green and red. "
                            + "Say otherwise with --mean and --scale."
                    ] : []))
    }
}
