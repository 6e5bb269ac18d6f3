internal import Foundation
internal import ImprintImages
internal import ImprintNetwork

/// What a format's reader found, before it becomes a weights file.
struct ImportedParts {
    /// The architecture's name.
    var name: String
    var assembler: NetworkAssembler
    /// What the model gives back.
    var output: SourceActivation
    var labels: [String]?
    /// How photos are prepared; `nil` where the file does not say.
    var samples: ModelImporter.SampleRule?
    var notes: [String] = []
}

extension ModelImporter {
    /// The model as a weights file.
    func finish(_ found: ImportedParts) throws -> ImportedModel {
        var parts = found
        var notes = found.notes
        let output = try parts.assembler.vector(parts.output, named: "output")
        var last = output
        if parts.assembler.layer(of: output, as: Softmax.self) == nil {
            if parts.assembler.layer(of: output, as: Sigmoid.self) != nil {
                notes.append("The model ends in a sigmoid: each label has a confidence of its own.")
            } else {
                last = try parts.assembler.add(Softmax(), named: "probabilities", to: [output])
                notes.append("The model ends in logits; a softmax was added.")
            }
        }
        let (network, parameters) = try parts.assembler.finish(last, named: parts.name)
        let labels = try self.labels(for: network.output.channels, found.labels, &notes)
        let input = network.input
        var preprocessing = Preprocessing(
            width: input.width, height: input.height, channels: input.channels, cropAndScale: cropAndScale)
        let rule: SampleRule
        if let known = samples ?? found.samples {
            rule = known
        } else {
            rule = input.channels == 3 ? .imageNet : SampleRule(mean: [0], scale: [1 / 255])
            notes.append(
                "The file does not say how samples become the input; taken as "
                    + (input.channels == 3 ? "torchvision's models take them" : "0 to 1")
                    + ". Say otherwise with --mean and --scale.")
        }
        preprocessing.mean = try spread(rule.mean, input.channels, "mean")
        preprocessing.scale = try spread(rule.scale, input.channels, "scale")
        if let problem = preprocessing.problem {
            throw ImportError.Problem.malformed(reason: "it prepares images by \(problem)")
        }
        return ImportedModel(
            weights: WeightsFile(
                network: network, parameters: parameters, labels: labels, preprocessing: preprocessing), notes: notes)
    }

    private func spread(_ values: [Float], _ channels: Int, _ name: String) throws -> [Float] {
        if values.count == channels { return values }
        guard values.count == 1 else {
            throw ImportError.Problem.malformed(
                reason: "\(values.count) numbers as the \(name), expected 1 or \(channels)")
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
        let different = labels.map { label in
            seen[label, default: 0] += 1
            return seen[label] == 1 ? label : "\(label) (\(seen[label] ?? 0))"
        }
        if different != labels { notes.append("Labels that are there more than once have numbers now.") }
        return different
    }

    func readONNX(_ file: MappedFile) throws -> ImportedModel {
        let model = try ONNXModel(file)
        var importer = try ONNXImporter(model, size: inputSize, isBlueFirst: samples?.isBlueFirst ?? false)
        let output = try importer.run(model.graph)
        func json<Value: Decodable>(_ key: String, as type: Value.Type) -> Value? {
            model.metadata[key].flatMap { try? JSONDecoder().decode(type, from: Data($0.utf8)) }
        }
        let known = json("imprint.preprocessing", as: Preprocessing.self)
        return try finish(
            ImportedParts(
                name: model.graph.name.isEmpty ? "onnx" : model.graph.name, assembler: importer.assembler,
                output: output,
                labels: json("imprint.labels", as: [String].self),
                samples: known.map { SampleRule(mean: $0.mean, scale: $0.scale) }))
    }

    func readCaffe(_ file: MappedFile) throws -> ImportedModel {
        guard let prototxt else {
            throw ImportError.Problem.missing(
                what: "architecture, for it is the weights of a Caffe model",
                advice: "name its deploy.prototxt with --prototxt")
        }
        let text = try MappedFile(contentsOf: prototxt)
        let net: TextMessage
        do {
            net = try TextMessage(Array(text.bytes(0..<text.count)))
        } catch {
            throw ImportError(path: text.path, problem: .malformed(reason: "\(error)"))
        }
        let layers = try CaffeImporter.layers(of: net)
        var importer = try CaffeImporter(net, layers, CaffeWeights(file), size: inputSize)
        let output = try importer.run(layers)
        return try finish(
            ImportedParts(
                name: net.word("name") ?? "caffe", assembler: importer.assembler, output: output, labels: nil,
                // The means of ImageNet's photos that came with Caffe's own models.
                samples: SampleRule(mean: [123, 117, 104], scale: [1]),
                notes: [
                    "A prototxt does not say what is subtracted from photos; taken as 104, 117 and 123 from blue, green and red. "
                        + "Say otherwise with --mean and --scale."
                ]))
    }
}
