/// The parts of a Core ML file that an image classifier needs (Model.proto, https://github.com/apple/coremltools).
///
/// Weights are decoded on demand.
struct CoreMLModel {
    /// An upper bound for the layers and labels of a model, so that a small file cannot exhaust memory.
    static let maximumCount = 1 << 16

    private(set) var description = Description()
    private(set) var kind = Kind.other(0)

    /// The type of a model.
    enum Kind {
        case network(NeuralNetwork)
        /// Models that run one after the other.
        case pipeline([CoreMLModel])
        /// A generalized linear model with labels.
        case linear(WireMessage)
        /// An ML program.
        case program(WireMessage)
        /// Another type, by its field number.
        case other(Int)
    }

    /// Parses a file.
    ///
    /// - Throws: `WireError` and `ImportError.Problem` if it is not a valid Model message.
    init(_ file: MappedFile) throws {
        try self.init(WireMessage(file))
        if case .other(0) = kind { throw ImportError.Problem.malformed(reason: "it contains no model") }
    }

    private init(_ message: WireMessage) throws {
        try message.forEachField { field in
            switch field.number {
            case 2: description = try Description(field.message())
            case 200, 201: kind = .pipeline(try Self.pipelineOfClassifier(field.message()))
            case 202: kind = .pipeline(try Self.pipeline(field.message()))
            case 400: kind = .linear(try field.message())
            case 403, 500: kind = .network(try NeuralNetwork(field.message()))
            case 502: kind = .program(try field.message())
            case 200...: kind = .other(field.number)
            default: break
            }
        }
    }

    private static func pipelineOfClassifier(_ message: WireMessage) throws -> [CoreMLModel] {
        var models: [CoreMLModel] = []
        try message.forEachField { if $0.number == 1 { models = try pipeline($0.message()) } }
        return models
    }

    private static func pipeline(_ message: WireMessage) throws -> [CoreMLModel] {
        var models: [CoreMLModel] = []
        try message.forEachField { field in
            guard field.number == 1 else { return }
            try models.append(CoreMLModel(field.message()), upTo: 256, "models in a pipeline")
        }
        return models
    }

    /// The models of a pipeline including nested pipelines, in order; only this model if it is not a pipeline.
    var parts: [CoreMLModel] {
        if case .pipeline(let models) = kind { models.flatMap(\.parts) } else { [self] }
    }
}

extension CoreMLModel {
    /// A neural network whose layers read and write named tensors.
    struct NeuralNetwork {
        /// The layers in topological order.
        private(set) var layers: [Layer] = []
        private(set) var preprocessing: [CoreMLRecord] = []
        /// Whether arrays have exactly the axes in the description, instead of sequence, batch, channels, height and width.
        private(set) var hasExactArrays = false
        /// Whether images have the axes batch, channels, height and width, without a sequence axis.
        private(set) var hasExactImages = false
        /// The labels; nil if the network is not a classifier.
        private(set) var labels: [String]?
        /// The name of the tensor with the probabilities; empty if the file does not specify it.
        private(set) var probabilities = ""
        /// The mean image, with one value for each sample of the image.
        private(set) var meanImage: [Float]?

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try layers.append(Layer(field.message()), upTo: CoreMLModel.maximumCount, "layers")
                case 2: try readPreprocessing(field.message())
                case 5: hasExactArrays = try field.integer() == 1
                case 6: hasExactImages = try field.integer() == 1
                case 100, 101: labels = try CoreMLModel.labels(field)
                case 200: probabilities = try field.string()
                default: break
                }
            }
        }

        private mutating func readPreprocessing(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 10: try preprocessing.append(CoreMLRecord(field.message()), upTo: 256, "steps of preprocessing")
                case 11:
                    var means: [Float] = []
                    try field.message().forEachField { if $0.number == 1 { try $0.append(to: &means) } }
                    meanImage = means
                default: break
                }
            }
        }
    }

    /// Returns the labels in a field of strings (100) or of integers (101), which become strings.
    static func labels(_ field: WireMessage.Field) throws -> [String] {
        var (texts, integers): ([String], [Int]) = ([], [])
        let isText = field.number == 100
        try field.message().forEachField { field in
            guard field.number == 1 else { return }
            if isText {
                try texts.append(field.string(), upTo: maximumCount, "labels")
            } else {
                try field.append(to: &integers, limit: maximumCount, of: "labels")
            }
        }
        return isText ? texts : integers.map(String.init)
    }

    /// One layer.
    struct Layer {
        private(set) var name = ""
        private(set) var inputs: [String] = []
        private(set) var outputs: [String] = []
        /// The field number of the layer type; 0 if the layer has no type.
        private(set) var kind = 0
        private let settings: WireMessage?

        fileprivate init(_ message: WireMessage) throws {
            var (name, inputs, outputs, kind): (String, [String], [String], Int) = ("", [], [], 0)
            var settings: WireMessage?
            try message.forEachField { field in
                switch field.number {
                case 1: name = try field.string()
                case 2: try inputs.append(field.string(), upTo: 4096, "inputs of a layer")
                case 3: try outputs.append(field.string(), upTo: 4096, "outputs of a layer")
                case 100...: (kind, settings) = (field.number, try field.message())
                default: break
                }
            }
            self.name = name.isEmpty ? outputs.first ?? "" : name
            (self.inputs, self.outputs, self.kind, self.settings) = (inputs, outputs, kind, settings)
        }

        /// Returns the parameters of the layer type.
        func record() throws -> CoreMLRecord {
            guard let settings else {
                throw ImportError.Problem.malformed(reason: "the layer \(name.debugDescription) has no type")
            }
            return try CoreMLRecord(settings)
        }

        /// The name of the layer type in the format.
        var kindName: String { CoreMLLayerNames.all[kind] ?? "kind \(kind)" }
    }
}
