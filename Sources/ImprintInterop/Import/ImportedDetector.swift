internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// A kind of detector that `ModelImporter` can import, with the conventions of its original implementation.
public enum DetectorKind: String, CaseIterable, Hashable, Sendable {
    /// The face detector CenterFace, an ONNX model.
    ///
    /// Its first three outputs are the heat map, the logarithms of height and width, and the vertical and horizontal offset, all
    /// with a stride of 4 pixels. Further outputs, the landmarks of the faces, are left out. The input has samples from 0 to 255 in
    /// the order red, green, blue, and sides that are multiples of 32 pixels. The threshold of non-maximum suppression is an
    /// overlap (IoU) of 0.3.
    ///
    /// Source: Xu et al., "CenterFace: Joint Face Detection and Alignment Using Face as Point", 2019.
    case centerFace = "centerface"
    /// The face detector BlazeFace, a TensorFlow Lite model.
    ///
    /// Its outputs are one logit and a vector for each anchor; a vector starts with the centre, width and height of a box. The input has
    /// samples from −1 to 1 in the order red, green, blue. The threshold of non-maximum suppression is an overlap (IoU) of 0.3.
    ///
    /// Source: Bazarevsky et al., "BlazeFace: Sub-millisecond Neural Face Detection on Mobile GPUs", 2019.
    case blazeFace = "blazeface"

    /// The default labels.
    var labels: [String] { ["face"] }

    /// The format of its files.
    var format: ModelFormat {
        switch self {
        case .centerFace: .onnx
        case .blazeFace: .tensorFlowLite
        }
    }

    /// The outputs of its network, for messages.
    private var outputs: String {
        switch self {
        case .centerFace: "a heat map with a sigmoid, and two maps with two channels of the same size"
        case .blazeFace: "one logit and one vector for each anchor of its feature maps"
        }
    }

    /// Returns the error for a model with other outputs.
    func mismatch(found: String) -> ImportError.Problem {
        .unsuitableModel(
            found: found, advice: "Expected the outputs of \(rawValue): \(outputs)", setting: .detector)
    }
}

/// The number of pixels that divides the sides of CenterFace's input.
private let sideMultiple = 32
/// The default maximum height and width of the images that CenterFace sees.
private let defaultInputSize: Size2D = 1280

extension ModelImporter {
    /// Imports a detector from an ONNX model.
    ///
    /// Its outputs become one: the concatenation of the heat map with a sigmoid, the sizes and the offsets.
    /// - Parameter name: The name of the network.
    func readDetector(_ kind: DetectorKind, _ model: ONNXModel, named name: String) throws -> ImportedModel {
        try checkCropAndScale()
        let size = inputSize ?? defaultInputSize
        guard size.height.isMultiple(of: sideMultiple), size.width.isMultiple(of: sideMultiple) else {
            throw ImportError.Problem.sideMultiple(kind, size, multiple: sideMultiple)
        }
        var importer = try ONNXImporter(model, size: size, isBGR: normalization?.isBGR ?? false)
        let outputs = try importer.run(model.graph, outputs: 3)
        let rows = outputs.first?.shape.height ?? 0
        let shapes = outputs.map(\.dimensions)
        let labelCount = outputs.first?.shape.channels ?? 0
        let columns = outputs.first?.shape.width ?? 0
        guard shapes == [[1, labelCount, rows, columns], [1, 2, rows, columns], [1, 2, rows, columns]],
            rows > 0, size.height.isMultiple(of: rows)
        else {
            throw kind.mismatch(
                found: "a model whose first outputs have the shapes \(shapes.map { "\($0)" }.joined(separator: ", "))")
        }
        var (assembler, maps) = (importer.assembler, outputs)
        switch try assembler.ending(of: maps[0]) {
        case .separateProbabilities: maps[0] = try assembler.endingInSigmoid(maps[0])
        case .logits: maps[0] = try assembler.add(Sigmoid(), named: "probabilities", to: [maps[0]])
        case .probabilities: throw kind.mismatch(found: "a model whose heat map ends in a softmax")
        }
        let output = try assembler.add(Concat(), named: "output", to: maps)
        let (network, parameters) = try assembler.finish(output, named: name)
        var notes: [String] = []
        let rule = normalization ?? InputNormalization(mean: [0], scale: [1])
        var detector = ModelFile(
            network: network, parameters: parameters, labels: try labels(for: labelCount, kind.labels, &notes),
            preprocessing: try preprocessing(for: network, rule, cropAndScale: .scaleFill),
            centerPoints: CenterPointHead(
                stride: size.height / rows, sideMultiple: sideMultiple, iouThreshold: 0.3))
        detector.details = model.details.details
        return try imported(detector, as: kind, notes: notes + model.details.notes)
    }
}

extension ModelImporter {
    /// Returns a detector, whose head must fit its network.
    func imported(
        _ model: ModelFile, as kind: DetectorKind, notes: [String]
    ) throws(ImportError.Problem) -> ImportedModel {
        do throws(ModelFileError.Problem) {
            try checkFit(model.network, model.labels, model.preprocessing, model.head)
        } catch {
            let reason = if case .invalidMetadata(_, let reason) = error { reason } else { "\(error)" }
            throw kind.mismatch(found: "a model that has \(reason)")
        }
        return ImportedModel(model: model, notes: notes, headNotes: [])
    }

    func checkCropAndScale() throws(ImportError.Problem) {
        guard cropAndScale == nil else {
            throw .unsuitableModel(
                found: "a detector, which sees the whole image at its own aspect ratio",
                advice: "Import it without a crop and scale mode")
        }
    }
}
