/// The layers of a Core ML neural network, in the order in which they are added.
///
/// Source: NeuralNetwork.proto of coremltools, the messages NeuralNetworkLayer and WeightParams.
struct CoreMLLayerWriter {
    /// The layer types, by their field number in the message's "oneof".
    enum Kind: Int {
        case convolution = 100
        case pooling = 120
        case activation = 130
        case innerProduct = 140
        case batchNormalization = 160
        case softmax = 175
        case localResponseNormalization = 180
        case padding = 200
        case upsample = 210
        case unary = 220
        case add = 230
        case multiply = 231
        case scale = 245
        case bias = 250
        case maximum = 260
        case reduce = 280
        case flatten = 301
        case concat = 320
        case slice = 350
        case clip = 660
        case greaterEqual = 832
        case addBroadcastable = 880
        case multiplyBroadcastable = 900
        case concatArrays = 980
        case transpose = 985
        case matrixProduct = 1045
        case constant = 1070
        case reshape = 1140
        case reduceMaximum = 1260

        /// The first specification version with this layer.
        var version: Int {
            switch self {
            case .clip, .greaterEqual, .addBroadcastable, .multiplyBroadcastable, .concatArrays, .transpose,
                .matrixProduct,
                .constant, .reshape, .reduceMaximum:
                4
            default: 1
            }
        }
    }

    /// The activations, by their field number in the message ActivationParams.
    enum Activation: Int {
        case linear = 5
        case relu = 10
        case leakyReLU = 15
        case prelu = 25
        case tanh = 30
        case sigmoid = 40
        case hardSigmoid = 41
        case elu = 50
        case softplus = 70
    }

    /// One layer.
    struct Layer {
        let name: String
        let inputs: [String]
        let kind: Kind
        /// The activation, if the layer is one.
        let activation: Activation?
        let parameters: MessageBuilder
        let isUpdatable: Bool
    }

    /// The layers; the output of each has the layer's name.
    private(set) var layers: [Layer] = []
    /// The lowest specification version with all added layers.
    private(set) var version = 1
    private var names: ExportedNames

    init(names: ExportedNames) { self.names = names }

    /// Returns an unused name.
    mutating func unique(_ wanted: String) -> String { names.unique(wanted) }

    /// Adds a layer whose output has the layer's name.
    mutating func add(
        _ kind: Kind, _ name: String, _ inputs: [String], _ parameters: MessageBuilder = MessageBuilder(),
        isUpdatable: Bool = false
    ) {
        version = max(version, kind.version)
        layers.append(
            Layer(
                name: name, inputs: inputs, kind: kind, activation: nil, parameters: parameters,
                isUpdatable: isUpdatable))
    }

    /// Adds an activation with these parameters.
    mutating func add(_ activation: Activation, _ name: String, _ input: String, _ parameters: [Float] = []) {
        var values = MessageBuilder()
        for (index, value) in parameters.enumerated() { values.add(index + 1, value) }
        add(activation, name, input, values)
    }

    /// Adds an activation with encoded parameters.
    mutating func add(_ activation: Activation, _ name: String, _ input: String, _ properties: MessageBuilder) {
        var parameters = MessageBuilder()
        parameters.add(activation.rawValue, properties)
        layers.append(
            Layer(
                name: name, inputs: [input], kind: .activation, activation: activation, parameters: parameters,
                isUpdatable: false))
    }

    /// Requires at least a specification version.
    mutating func raiseVersion(to version: Int) { self.version = max(self.version, version) }

    /// Encodes the message WeightParams of a tensor.
    mutating func weights(_ tensor: ExportedTensor, isUpdatable: Bool = false) -> MessageBuilder {
        var message = MessageBuilder()
        if tensor.precision == .float16 { version = max(version, 2) }
        message.add(tensor.precision == .float16 ? 2 : 1, byteCount: tensor.byteCount, deferred: tensor.forEachPart)
        if isUpdatable { message.add(50, true) }
        return message
    }

    /// The messages NeuralNetworkLayer.
    var messages: [MessageBuilder] {
        layers.map { layer in
            var message = MessageBuilder()
            message.add(1, layer.name)
            for input in layer.inputs { message.add(2, input) }
            message.add(3, layer.name)
            if layer.isUpdatable { message.add(10, true) }
            message.add(layer.kind.rawValue, layer.parameters)
            return message
        }
    }
}
