internal import ImprintCore
internal import ImprintNetwork

/// Converts a Caffe architecture and its weights to a network; layer names link the two.
struct CaffeImporter {
    var assembler: NetworkAssembler
    private let weights: CaffeWeights
    /// The current tensor of each blob; a layer may overwrite its input.
    private var tensors: [String: SourceActivation] = [:]

    /// One layer of the architecture.
    struct Layer {
        let name: String
        let type: String
        let bottoms: [String]
        let tops: [String]
        let properties: TextMessage
    }

    /// Returns the layers of the network for inference, in order.
    static func layers(of net: TextMessage) throws(ImportError.Problem) -> [Layer] {
        guard !net.has("layers") || !net.has("layer") else {
            throw .malformed(reason: "the architecture mixes the old format (layers) with the new format (layer)")
        }
        let isOld = net.has("layers")
        return (net.messages("layer") + net.messages("layers")).compactMap { layer in
            let included = layer.messages("include")
            guard included.isEmpty || included.contains(where: isMet),
                !layer.messages("exclude").contains(where: isMet),
                !["TRAIN", "0"].contains(layer.word("phase"))
            else {
                return nil
            }
            return Layer(
                name: layer.word("name") ?? "", type: layer.word("type").map(isOld ? newType : { $0 }) ?? "",
                bottoms: layer.words("bottom"), tops: layer.words("top"), properties: layer)
        }.filter { !ignored.contains($0.type) }
    }

    /// Whether a rule matches inference: phase TEST, level 0, no stages (net.cpp, StateMeetsRule).
    private static func isMet(_ rule: TextMessage) -> Bool {
        ["TEST", "1"].contains(rule.word("phase") ?? "TEST") && rule.integer("min_level") ?? 0 <= 0
            && rule.integer("max_level") ?? 0 >= 0 && !rule.has("stage")
    }

    /// Returns the new name of a layer type, which old files write in capitals.
    private static func newType(_ type: String) -> String {
        let special = [
            "RELU": "ReLU", "PRELU": "PReLU", "LRN": "LRN", "TANH": "TanH", "INNER_PRODUCT": "InnerProduct",
            "SOFTMAX_LOSS": "SoftmaxWithLoss", "IMAGE_DATA": "ImageData", "MEMORY_DATA": "MemoryData",
            "DUMMY_DATA": "DummyData", "HDF5_DATA": "HDF5Data", "WINDOW_DATA": "WindowData", "ELTWISE": "Eltwise",
            "ARGMAX": "ArgMax", "ABSVAL": "AbsVal", "BNLL": "BNLL", "MVN": "MVN",
        ]
        if let name = special[type] { return name }
        guard type == type.uppercased(), let first = type.first else { return type }
        return String(first) + type.dropFirst().lowercased()
    }

    /// The layer types that inference does not need.
    private static let ignored: Set = [
        "Data", "ImageData", "MemoryData", "DummyData", "HDF5Data", "WindowData", "Accuracy", "Silence",
        "SoftmaxWithLoss",
    ]

    /// - Parameter size: The height and width of the image; nil for the size in the architecture.
    init(_ net: TextMessage, _ layers: [Layer], _ weights: CaffeWeights, size: Size2D?) throws {
        self.weights = weights
        let inputs = layers.filter { $0.type == "Input" }
        let names = inputs.flatMap(\.tops) + net.words("input")
        guard names.count == 1 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model with \(counted(names.count, "input"))",
                advice: "Expected one input, an image. Use the deploy.prototxt")
        }
        let lengths =
            inputs.first?.properties.message("input_param").message("shape").integers("dim")
            ?? (net.has("input_shape") ? net.message("input_shape").integers("dim") : net.integers("input_dim"))
        guard lengths.count == 4, lengths[1] == 1 || lengths[1] == 3 else {
            throw ImportError.Problem.unsuitableModel(
                found: "a model with the input shape \(lengths)",
                advice: "Expected an image of four axes with 1 or 3 channels")
        }
        let (height, width) = (size?.height ?? lengths[2], size?.width ?? lengths[3])
        guard (1...(1 << 14)).contains(height), (1...(1 << 14)).contains(width) else {
            throw ImportError.Problem.malformed(
                reason: "its image has the size \(width)x\(height), expected 1x1 to 16384x16384")
        }
        assembler = NetworkAssembler(
            input: TensorShape(height: height, width: width, channels: lengths[1]), weights: weights.byteCount)
        var image = assembler.image(axes: [.batch, .channels, .height, .width])
        // Caffe reads photos with OpenCV, whose channel order is BGR.
        if lengths[1] == 3 {
            image = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "bgr", to: [image])
        }
        tensors[names[0]] = image
    }

    /// Adds all layers, and returns the output of the last one.
    /// - Throws: `ImportError.Problem` for the architecture, and the errors of `blobs(_:atLeast:)`.
    mutating func run(_ layers: [Layer]) throws -> SourceActivation {
        let layers = layers.filter { $0.type != "Input" }
        guard let last = layers.last?.tops.first else {
            throw ImportError.Problem.malformed(reason: "it has no layers")
        }
        var missing = UnsupportedOperators()
        for layer in layers {
            guard let add = Self.conversions[layer.type] else {
                missing.add(.init(operation: layer.type, node: layer.name), producing: layer.tops)
                continue
            }
            try missing.collect(reading: layer.bottoms, producing: layer.tops) {
                let inputs = try layer.bottoms.map { name throws(ImportError.Problem) in
                    guard let blob = tensors[name] else {
                        throw .malformed(
                            reason: "\(layer.name) reads \(name.debugDescription), which no earlier layer computes")
                    }
                    return blob
                }
                guard !inputs.isEmpty else {
                    throw ImportError.Problem.malformed(reason: "\(layer.name) (\(layer.type)) has no inputs")
                }
                for (name, blob) in zip(layer.tops, try add(layer, inputs, &self)) { tensors[name] = blob }
            }
        }
        try missing.check()
        guard let result = tensors[last] else {
            throw ImportError.Problem.malformed(reason: "no layer computes \(last.debugDescription)")
        }
        return result
    }

    typealias Conversion = @Sendable (Layer, [SourceActivation], inout CaffeImporter) throws -> [SourceActivation]

    /// Returns the weight blobs of a layer, which must have at least `count`.
    /// - Throws: `ImportError` with the path of the .caffemodel, and `WireError`.
    func blobs(_ layer: Layer, atLeast count: Int) throws -> [Constant] {
        do {
            let blobs = weights.blobs[layer.name] ?? []
            guard blobs.count >= count else {
                throw ImportError.Problem.malformed(
                    reason:
                        "\(layer.name) (\(layer.type)) has \(blobs.count) blobs in the .caffemodel, expected \(count)")
            }
            return try blobs.map { try $0.constant() }
        } catch let problem as ImportError.Problem {
            throw ImportError(path: weights.path, problem: problem)
        }
    }

    func unsupported(_ layer: Layer, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: layer.type, node: layer.name, reason: reason)])
    }
}
