/// A Core ML file as far as an image classifier needs it (Model.proto, https://github.com/apple/coremltools).
///
/// Weights stay in the file until they are asked for.
struct CoreMLModel {
    /// More than any model has; a file may name as many of each in two bytes.
    static let greatestCount = 1 << 16

    private(set) var description = Description()
    private(set) var kind = Kind.other(0)

    /// What a model is made of.
    enum Kind {
        case network(NeuralNetwork)
        /// Models that feed each other.
        case pipeline([CoreMLModel])
        /// A generalized linear model with labels.
        case linear(WireMessage)
        /// Operations in the intermediate language of newer converters.
        case program(WireMessage)
        /// Another one, by the number of its field.
        case other(Int)
    }

    /// Reads a file.
    /// - Throws: `WireProblem` and `ImportError.Problem` if it is no message of this kind.
    init(_ file: MappedFile) throws {
        try self.init(WireMessage(file))
        if case .other(0) = kind { throw ImportError.Problem.malformed(reason: "it has no model in it") }
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

    /// The models of a pipeline, and of pipelines in it, one after the other; the model alone if it is none.
    var parts: [CoreMLModel] {
        if case .pipeline(let models) = kind { models.flatMap(\.parts) } else { [self] }
    }
}

extension CoreMLModel {
    /// Layers that read and make named tensors.
    struct NeuralNetwork {
        /// In an order in which each reads what is there by then.
        private(set) var layers: [Layer] = []
        private(set) var preprocessing: [CoreMLRecord] = []
        /// Whether arrays have the axes that the model says, instead of sequence, batch, channels, height and width.
        private(set) var hasExactArrays = false
        /// Whether images have the axes batch, channels, height and width, without that of a sequence.
        private(set) var hasExactImages = false
        /// The names of the outputs; nil if the network is no classifier.
        private(set) var labels: [String]?
        /// The tensor of the probabilities; empty where the file does not tell.
        private(set) var probabilities = ""
        /// The means of all samples of the image, and the place among the steps of preprocessing.
        private(set) var meanImage: [Float]?

        fileprivate init(_ message: WireMessage) throws {
            try message.forEachField { field in
                switch field.number {
                case 1: try layers.append(Layer(field.message()), upTo: CoreMLModel.greatestCount, "layers")
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

    /// The labels in a field of strings (100) or of whole numbers (101), which become text.
    static func labels(_ field: WireMessage.Field) throws -> [String] {
        var (texts, numbers): ([String], [Int]) = ([], [])
        let isText = field.number == 100
        try field.message().forEachField { field in
            guard field.number == 1 else { return }
            if isText {
                try texts.append(field.string(), upTo: greatestCount, "labels")
            } else {
                try field.append(to: &numbers, limit: greatestCount, of: "labels")
            }
        }
        return isText ? texts : numbers.map(String.init)
    }

    /// One layer.
    struct Layer {
        private(set) var name = ""
        private(set) var inputs: [String] = []
        private(set) var outputs: [String] = []
        /// The number of the field that says what it is; 0 if there is none.
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

        /// What the layer's kind has of settings.
        func record() throws -> CoreMLRecord {
            guard let settings else {
                throw ImportError.Problem.malformed(reason: "the layer \(name.debugDescription) has no kind")
            }
            return try CoreMLRecord(settings)
        }

        /// The kind in the words of the format.
        var kindName: String { CoreMLLayerNames.all[kind] ?? "kind \(kind)" }
    }
}
