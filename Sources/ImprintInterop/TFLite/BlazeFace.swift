internal import Foundation
internal import ImprintModel
internal import ImprintNetwork

extension ModelImporter {
    /// Imports BlazeFace from a TensorFlow Lite model.
    ///
    /// Its two outputs become one: the concatenation of the logits with a sigmoid, and the vectors of the anchors.
    func readBlazeFace(_ file: MappedFile) throws -> ImportedModel {
        try checkCropAndScale()
        if normalization?.isBGR == true {
            throw ImportError.Problem.unsuitableModel(
                found: "a TensorFlow Lite model, whose channel order is always RGB",
                advice: "Import it without the BGR setting",
                setting: .isBGR)
        }
        var importer = try TFLiteImporter(TFLiteModel(file))
        let input = importer.assembler.input
        if let inputSize, inputSize != Size2D(height: input.height, width: input.width) {
            throw ImportError.Problem.unsuitableModel(
                found: "a detector for images of \(input.width)x\(input.height) pixels",
                advice: "Import it without setting an input size")
        }
        let outputs = try importer.run()
        guard outputs.count == 2, outputs.allSatisfy({ $0.shape.count == 3 && $0.shape[0] == 1 }),
            let scores = outputs.first(where: { $0.shape[2] == 1 }),
            let boxes = outputs.first(where: { $0.shape[2] != 1 }),
            scores.shape[1] == boxes.shape[1]
        else {
            throw DetectorKind.blazeFace.mismatch(
                found: "a model whose outputs have the shapes \(outputs.map(\.shape))")
        }
        var assembler = importer.assembler
        let levels = try levels(of: scores, in: assembler)
        let probabilities: SourceActivation
        switch try assembler.ending(of: scores.activation) {
        case .logits: probabilities = try assembler.add(Sigmoid(), named: "probabilities", to: [scores.activation])
        case .separateProbabilities: probabilities = try assembler.endingInSigmoid(scores.activation)
        case .probabilities: throw DetectorKind.blazeFace.mismatch(found: "a model whose scores end in a softmax")
        }
        let output = try assembler.add(Concat(), named: "output", to: [probabilities, boxes.activation])
        let name = URL(filePath: file.path).deletingPathExtension().lastPathComponent
        let (network, parameters) = try assembler.finish(output, named: name)
        var notes: [String] = []
        let head = AnchorHead(levels: levels, valuesPerAnchor: boxes.shape[2], iouThreshold: 0.3)
        let model = ModelFile(
            network: network, parameters: parameters, labels: try labels(for: 1, DetectorKind.blazeFace.labels, &notes),
            preprocessing: try preprocessing(
                for: network, normalization ?? InputNormalization(mean: [127.5], scale: [1 / 127.5]),
                cropAndScale: .scaleFit),
            anchors: head)
        return try imported(model, as: .blazeFace, notes: notes)
    }

    /// Returns the feature maps whose scores are concatenated.
    private func levels(
        of scores: TFLiteImporter.Value, in assembler: NetworkAssembler
    ) throws(ImportError.Problem) -> [AnchorHead.Level] {
        let parts =
            assembler.layer(of: scores.activation, as: Concat.self) == nil
            ? [scores.activation] : assembler.inputs(of: scores.activation)
        var levels: [AnchorHead.Level] = []
        for part in parts {
            let map = assembler.layer(of: part, as: Flatten.self) == nil ? part : assembler.inputs(of: part)[0]
            let input = assembler.input
            guard input.height.isMultiple(of: map.shape.height), input.width.isMultiple(of: map.shape.width),
                input.height / map.shape.height == input.width / map.shape.width
            else {
                throw DetectorKind.blazeFace.mismatch(
                    found: "a model with scores of the shape \(map.shape) for images of \(input)")
            }
            levels.append(.init(stride: input.height / map.shape.height, anchors: map.shape.channels))
        }
        return levels
    }
}
