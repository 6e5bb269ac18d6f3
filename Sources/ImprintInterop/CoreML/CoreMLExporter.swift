public import Foundation
internal import ImprintImages
public import ImprintModel
internal import ImprintNetwork

/// Options for the Core ML export.
public struct CoreMLOptions: Sendable {
    /// The precision of convolution and dense weights; must be float32 for an updatable model.
    public var storagePrecision: Safetensors.Precision
    /// Whether an `MLUpdateTask` with labeled images can train the last dense layer or convolution on a device.
    public var isUpdatable: Bool
    /// Whether the int8 layers of a quantized model have int8 weights; if false, `storagePrecision` also applies to them.
    ///
    /// All weights of an updatable model are float32.
    public var keepsInt8Layers: Bool

    /// Creates options.
    public init(
        storagePrecision: Safetensors.Precision = .float32, isUpdatable: Bool = false, keepsInt8Layers: Bool = true
    ) {
        self.storagePrecision = storagePrecision
        self.isUpdatable = isUpdatable
        self.keepsInt8Layers = keepsInt8Layers
    }
}

extension ModelFile {
    /// Writes the model as a Core ML file (`.mlmodel`), which atomically replaces the file at `url`.
    ///
    /// A classifier becomes a neuralNetworkClassifier.
    ///
    /// The input "image" is an RGB or grey image of the network's size, and the model includes the preprocessing. The outputs
    /// are "classLabel" and "probabilities". The metadata contains labels, preprocessing and network as JSON: `imprint.labels`,
    /// `imprint.preprocessing`, `imprint.network`. The specification version is the lowest possible: 1, or 2 with float16
    /// weights, 3 with the int8 weights of a quantized model, or 4 for updatable models and general broadcasting. Equal models produce equal bytes.
    ///
    /// A logo detector becomes a pipeline of a neural network and non-maximum suppression, with specification version 4. Its input
    /// "image" is a square image of the size of the largest pyramid level, and its optional inputs are "iouThreshold" and
    /// "confidenceThreshold". Its outputs are "confidence" [objects, logos] and "coordinates" [objects, 4] (horizontal and vertical
    /// centre, width and height, relative to the image), which Vision turns into recognized objects.
    ///
    /// - Throws: `ExportError` if Core ML cannot express the model or train it on a device, `ModelFileError` if labels and
    ///   network do not match or a parameter is not finite, `FileError` if the file cannot be written.
    public func writeCoreML(to url: URL, options: CoreMLOptions = CoreMLOptions()) throws {
        try writeExport(to: url) { () throws -> MessageBuilder in
            switch head {
            case .softmax, .sigmoid:
                let model = ExportedModel(
                    self, storagePrecision: options.storagePrecision, keepsInt8Layers: options.keepsInt8Layers)
                var exporter = CoreMLExporter(model, options)
                return try exporter.message()
            case .detector(let detector):
                return try CoreMLDetectorExporter.message(self, detector, options)
            case .centerPoints, .anchors: throw ExportError.Problem.detector
            }
        }
    }
}

/// Converts a classifier to a Core ML model.
///
/// Source: Model.proto, FeatureTypes.proto and NeuralNetwork.proto of coremltools.
struct CoreMLExporter {
    /// The names of the model's input and outputs.
    static let image = "image"
    static let label = "classLabel"
    static let probabilities = "probabilities"

    /// A node to export, with its index, its inputs and the name of its output.
    struct Step {
        let index: Int
        let inputs: [String]
        let inputShapes: [TensorShape]
        let shape: TensorShape
        let output: String
        let isUpdatable: Bool
    }

    let model: ExportedModel
    private let options: CoreMLOptions
    var isUpdatable: Bool { options.isUpdatable }
    var layers: CoreMLLayerWriter

    /// - Parameter layers: The layers that precede those of the network; nil if there are none.
    init(_ model: ExportedModel, _ options: CoreMLOptions, layers: CoreMLLayerWriter? = nil) {
        self.model = model
        self.options = options
        self.layers =
            layers
            ?? CoreMLLayerWriter(names: ExportedNames(reserving: [Self.image, Self.label, Self.probabilities, ""]))
    }

    /// Encodes the message Model of a classifier.
    mutating func message() throws -> MessageBuilder {
        guard !(options.isUpdatable && options.storagePrecision == .float16) else {
            throw ExportError.Problem.notUpdatable(reason: "its weights must be float32, not float16")
        }
        try addLayers(to: addFirstScale(), output: Self.probabilities)
        var network = MessageBuilder()
        for layer in layers.messages { network.add(1, layer) }
        network.add(2, scaler)
        if options.isUpdatable {
            network.add(10, try CoreMLUpdates.message(of: layers, loss: layers.unique("loss"), target: Self.label))
        }
        var labels = MessageBuilder()
        for label in model.file.labels { labels.add(1, label) }
        network.add(100, labels)
        network.add(200, Self.probabilities)

        var message = MessageBuilder()
        message.add(1, options.isUpdatable ? max(layers.version, CoreMLUpdates.version) : layers.version)
        message.add(2, try description())
        if options.isUpdatable { message.add(10, true) }
        message.add(403, network)
        return message
    }

    /// Adds all layers of the network.
    /// - Parameters:
    ///   - input: The name of the normalized image.
    ///   - prefix: The start of the names of the layers, if the model contains the network several times.
    ///   - output: The name of the last layer's output.
    mutating func addLayers(
        to input: String, prefix: String = "", output: String
    ) throws(ExportError.Problem) {
        let nodes = model.network.nodes
        /// The name of each node's output.
        var values: [String] = []
        let updatable = options.isUpdatable ? nodes.lastIndex { $0.layer is Dense || $0.layer is Convolution } : nil
        var unsupported: [UnsupportedLayer] = []
        for (index, node) in nodes.enumerated() {
            let inputs = model.sources(of: index).map { $0.map { values[$0] } ?? input }
            let isLast = index == nodes.count - 1
            if node.layer is Dropout, inputs[0] != Self.image, !isLast {
                values.append(inputs[0])
                continue
            }
            let step = Step(
                index: index, inputs: inputs, inputShapes: model.inputShapes(of: index),
                shape: model.network.shapes[index], output: isLast ? output : layers.unique(prefix + node.name),
                isUpdatable: index == updatable)
            if let reason = add(node.layer, step) {
                let kind = type(of: node.layer).kind
                unsupported.append(UnsupportedLayer(node: node.name, kind: kind, reason: reason))
            }
            values.append(step.output)
        }
        guard unsupported.isEmpty else { throw .unsupported(format: "Core ML", layers: unsupported) }
    }

    // MARK: Preprocessing

    private var hasOneScale: Bool {
        let scale = model.file.preprocessing.scale
        return scale.allSatisfy { $0 == scale[0] }
    }

    /// The message NeuralNetworkPreprocessing: y = scale · x + bias, with one scale for all channels.
    var scaler: MessageBuilder {
        let preprocessing = model.file.preprocessing
        let scale = hasOneScale ? preprocessing.scale[0] : 1
        let biases = preprocessing.mean.map { -$0 * scale }
        var scaler = MessageBuilder()
        scaler.add(10, scale)
        if biases.count == 1 {
            scaler.add(30, biases[0])
        } else {
            for (field, bias) in zip([22, 21, 20], biases) { scaler.add(field, bias) }
        }
        var message = MessageBuilder()
        message.add(1, Self.image)
        message.add(10, scaler)
        return message
    }

    /// Adds a scale layer if the channels have different scales, and returns the name of the first layer's input.
    mutating func addFirstScale() -> String {
        guard !hasOneScale else { return Self.image }
        let scale = model.file.preprocessing.scale
        let name = layers.unique("preprocessing.scale")
        var parameters = MessageBuilder()
        parameters.add(1, packed: [scale.count])
        parameters.add(2, layers.weights(ExportedTensor(name, shape: [scale.count]) { scale }))
        layers.add(.scale, name, [Self.image], parameters)
        return name
    }

    // MARK: Description

    /// Encodes the message ModelDescription.
    private func description() throws -> MessageBuilder {
        let preprocessing = model.file.preprocessing
        var image = MessageBuilder()
        image.add(1, preprocessing.width)
        image.add(2, preprocessing.height)
        image.add(3, preprocessing.channels == 1 ? 10 : 20)
        var dictionary = MessageBuilder()
        dictionary.add(2, MessageBuilder())
        let cropping = "The upright image in sRGB, with the crop and scale mode \(preprocessing.cropAndScale.rawValue)."

        let input = Self.feature(Self.image, cropping, type: 4, image)
        let label = Self.feature(Self.label, "The most likely label.", type: 3, MessageBuilder())

        var message = MessageBuilder()
        message.add(1, input)
        message.add(10, label)
        message.add(10, Self.feature(Self.probabilities, "The probability of each label.", type: 6, dictionary))
        message.add(11, Self.label)
        message.add(12, Self.probabilities)
        if options.isUpdatable {
            message.add(50, input)
            message.add(50, label)
        }
        message.add(
            100,
            ExportedDetails.coreML(
                model.file.details, kind: "Image classifier \(model.network.name), exported by Imprint.",
                userDefined: try model.metadata()))
        return message
    }

    /// Encodes the message FeatureDescription.
    static func feature(
        _ name: String, _ text: String, type field: Int, _ value: MessageBuilder
    ) -> MessageBuilder {
        var type = MessageBuilder()
        type.add(field, value)
        var message = MessageBuilder()
        message.add(1, name)
        message.add(2, text)
        message.add(3, type)
        return message
    }
}
