internal import ImprintNetwork

/// The image that a Core ML model takes, and how its samples become the network's input.
struct CoreMLImage {
    /// The name by which layers read it.
    let name: String
    let shape: TensorShape
    /// Whether the model takes blue first, where Imprint has red.
    private(set) var isBlueFirst: Bool
    /// How the samples 0…255 become the input; nil if the model takes an array and the file does not say.
    var samples: ModelImporter.SampleRule?
    /// What the file does not say and was assumed.
    private(set) var notes: [String] = []
    /// The axes that the model's own array has; `nil` for an image.
    private(set) var arrayShape: [Int]?

    /// The input of a model that has one.
    /// - Parameters:
    ///   - size: Height and width, instead of those in the file.
    ///   - takesBlueFirst: The order of colours where the file has an array, which does not say.
    init(_ description: CoreMLModel.Description, size: Size2D?, takesBlueFirst: Bool) throws {
        guard description.inputs.count == 1, let input = description.inputs.first else {
            let names = description.inputs.map(\.name).joined(separator: ", ")
            throw ImportError.Problem.otherKind(
                found:
                    "a model of \(description.inputs.count) inputs (\(names))",
                advice: "expected one, an image")
        }
        name = input.name
        var (height, width, channels): (Int, Int, Int)
        switch input.type {
        case .image(let imageWidth, let imageHeight, let colors):
            guard !takesBlueFirst else {
                throw ImportError.Problem.otherKind(
                    found: "a Core ML model of an image, which says the order of its colours",
                    advice: "leave out --bgr")
            }
            (height, width) = (imageHeight, imageWidth)
            channels = colors == .redFirst || colors == .blueFirst ? 3 : 1
            isBlueFirst = colors == .blueFirst
            samples = ModelImporter.SampleRule(mean: [0], scale: [1])
        case .array(let shape):
            let lengths = Array(shape.suffix(3))
            guard lengths.count == 3, shape.count <= 5, shape.dropLast(3).allSatisfy({ $0 == 1 }) else {
                throw Self.noImage(input.name)
            }
            (channels, height, width) = (lengths[0], lengths[1], lengths[2])
            isBlueFirst = channels == 3 && takesBlueFirst
            arrayShape = shape
        case .other: throw Self.noImage(input.name)
        }
        guard channels == 1 || channels == 3 else { throw Self.noImage(input.name) }
        (height, width) = (size?.height ?? height, size?.width ?? width)
        guard (1...(1 << 14)).contains(height), (1...(1 << 14)).contains(width) else {
            throw ImportError.Problem.malformed(
                reason: "its image has the size \(width)x\(height), expected 1x1 to 16384x16384")
        }
        shape = TensorShape(height: height, width: width, channels: channels)
    }

    private static func noImage(_ name: String) -> ImportError.Problem {
        .otherKind(
            found: "a model whose input \(name.debugDescription) is no image",
            advice: "expected an image, or an array of 1 or 3 channels, height and width")
    }

    /// The image as the first layers read it: channels in the model's order, without the mean image.
    /// - Parameter axes: The axes of an image in this model.
    mutating func activation(
        _ assembler: inout NetworkAssembler, axes: [SourceActivation.Axis], _ network: CoreMLModel.NeuralNetwork?
    ) throws -> SourceActivation {
        var image = assembler.image(axes: axes)
        if isBlueFirst {
            image = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "blueFirst", to: [image])
        }
        guard let network else { return image }
        try readScaler(network)
        guard let means = network.meanImage else { return image }
        guard means.count == shape.count else {
            throw ImportError.Problem.malformed(
                reason: "its mean image has \(means.count) numbers for an image of \(shape); "
                    + "where the input's size was changed, leave it as it is")
        }
        guard samples?.scale.allSatisfy({ $0 == 1 }) ?? true else {
            throw ImportError.Problem.unsupported([
                .init(
                    operation: "preprocessing", node: name,
                    reason: "a mean image and a scale, of which the file does not say which comes first")
            ])
        }
        let constant = Constant(
            shape: [shape.channels, shape.height, shape.width], floats: means.map { -$0 })
        return try assembler.add(image, constant, named: "meanImage")
    }

    /// Takes over y = scale · x + bias, of the colours' own biases, as (x − mean) · scale.
    private mutating func readScaler(_ network: CoreMLModel.NeuralNetwork) throws {
        guard let scaler = network.preprocessing.last else { return }
        guard network.preprocessing.count == 1 else {
            throw ImportError.Problem.malformed(reason: "it scales its image \(network.preprocessing.count) times")
        }
        var scale = try scaler.float(10)
        if scale == 0 {
            scale = 1
            notes.append(
                "The file scales the image by 0, which is what is read where a writer left it out; taken as 1.")
        }
        let biases =
            shape.channels == 1
            ? [try scaler.float(30)] : [try scaler.float(22), try scaler.float(21), try scaler.float(20)]
        samples = ModelImporter.SampleRule(mean: biases.map { 0 - $0 / scale }, scale: biases.map { _ in scale })
    }
}
