internal import ImprintCore
internal import ImprintNetwork

/// The input image of a Core ML model with its normalization.
struct CoreMLImage {
    /// The name of the input.
    let name: String
    let shape: TensorShape
    /// Whether the model expects the channel order BGR.
    private(set) var isBGR: Bool
    /// The input normalization; nil if the input is an array without preprocessing in the file.
    var normalization: ModelImporter.InputNormalization?
    /// Assumptions about settings that the file does not specify.
    private(set) var notes: [String] = []
    /// The shape of an array input; `nil` for an image.
    private(set) var arrayShape: [Int]?

    /// Reads the input of a model with one input.
    ///
    /// - Parameters:
    ///   - size: The height and width; nil for the size in the file.
    ///   - expectsBGR: Whether an array input has the channel order BGR, which the file does not specify.
    init(_ description: CoreMLModel.Description, size: Size2D?, expectsBGR: Bool) throws {
        guard description.inputs.count == 1, let input = description.inputs.first else {
            let names = description.inputs.map(\.name).joined(separator: ", ")
            throw ImportError.Problem.unsuitableModel(
                found:
                    "a model with \(counted(description.inputs.count, "input")) (\(names))",
                advice: "Expected one input, an image")
        }
        name = input.name
        var (height, width, channels): (Int, Int, Int)
        switch input.type {
        case .image(let imageWidth, let imageHeight, let colors):
            guard !expectsBGR else {
                throw ImportError.Problem.unsuitableModel(
                    found: "a Core ML model with an image input, which specifies its channel order",
                    advice: "Import it without the BGR setting", setting: .isBGR)
            }
            (height, width) = (imageHeight, imageWidth)
            channels = colors == .rgb || colors == .bgr ? 3 : 1
            isBGR = colors == .bgr
            normalization = ModelImporter.InputNormalization(mean: [0], scale: [1])
        case .array(let shape):
            let lengths = Array(shape.suffix(3))
            guard lengths.count == 3, shape.count <= 5, shape.dropLast(3).allSatisfy({ $0 == 1 }) else {
                throw Self.notAnImage(input.name)
            }
            (channels, height, width) = (lengths[0], lengths[1], lengths[2])
            isBGR = channels == 3 && expectsBGR
            arrayShape = shape
        case .other: throw Self.notAnImage(input.name)
        }
        guard channels == 1 || channels == 3 else { throw Self.notAnImage(input.name) }
        (height, width) = (size?.height ?? height, size?.width ?? width)
        guard (1...(1 << 14)).contains(height), (1...(1 << 14)).contains(width) else {
            throw ImportError.Problem.malformed(
                reason: "its image has the size \(width)x\(height), expected 1x1 to 16384x16384")
        }
        shape = TensorShape(height: height, width: width, channels: channels)
    }

    private static func notAnImage(_ name: String) -> ImportError.Problem {
        .unsuitableModel(
            found: "a model whose input \(name.debugDescription) is not an image",
            advice: "Expected an image, or an array of 1 or 3 channels, height and width")
    }

    /// Returns the input of the first layers: the image in the model's channel order, minus the mean image.
    ///
    /// - Parameter axes: The axes of an image in this model.
    mutating func activation(
        _ assembler: inout NetworkAssembler, axes: [SourceActivation.Axis], _ network: CoreMLModel.NeuralNetwork?
    ) throws -> SourceActivation {
        var image = assembler.image(axes: axes)
        if isBGR {
            image = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "blueFirst", to: [image])
        }
        guard let network else { return image }
        try readScaler(network)
        guard let means = network.meanImage else { return image }
        guard means.count == shape.count else {
            throw ImportError.Problem.malformed(
                reason: "its mean image has \(means.count) values for an image of \(shape), "
                    + "expected the input size of the file")
        }
        guard normalization?.scale.allSatisfy({ $0 == 1 }) ?? true else {
            throw ImportError.Problem.unsupported([
                .init(
                    operation: "preprocessing", node: name,
                    reason: "a mean image and a scale, whose order the file does not specify")
            ])
        }
        let constant = Constant(
            shape: [shape.channels, shape.height, shape.width], floats: means.map { -$0 })
        return try assembler.add(image, constant, named: "meanImage")
    }

    /// Converts y = scale · x + bias, with a bias per channel, to (x − mean) · scale.
    private mutating func readScaler(_ network: CoreMLModel.NeuralNetwork) throws {
        guard let scaler = network.preprocessing.last else { return }
        guard network.preprocessing.count == 1 else {
            throw ImportError.Problem.malformed(
                reason: "it has \(network.preprocessing.count) scaling steps for its image, expected at most one")
        }
        var scale = try scaler.float(10)
        if scale == 0 {
            scale = 1
            notes.append(
                "The file scales the image by 0, which usually means that the scale is missing. Imprint uses 1.")
        }
        let biases =
            shape.channels == 1
            ? [try scaler.float(30)] : [try scaler.float(22), try scaler.float(21), try scaler.float(20)]
        normalization = ModelImporter.InputNormalization(
            mean: biases.map { 0 - $0 / scale }, scale: biases.map { _ in scale })
    }
}
