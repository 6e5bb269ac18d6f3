internal import ImprintNetwork

/// Makes a network of a Caffe architecture and its weights, which belong together by the layers' names.
struct CaffeImporter {
    var assembler: NetworkAssembler
    private let weights: CaffeWeights
    /// What each blob is by now; a layer may write over what it reads.
    private var blobs: [String: SourceActivation] = [:]

    /// One layer of the architecture.
    struct Layer {
        let name: String
        let type: String
        let bottoms: [String]
        let tops: [String]
        let properties: TextMessage
    }

    /// The layers that a prediction has, in order.
    static func layers(of net: TextMessage) throws(ImportError.Problem) -> [Layer] {
        guard !net.has("layers") || !net.has("layer") else {
            throw .malformed(reason: "the architecture has layers of both the older and the newer kind")
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

    /// Whether a rule is met by a net that predicts: phase TEST, level 0, no stages (net.cpp, StateMeetsRule).
    private static func isMet(_ rule: TextMessage) -> Bool {
        ["TEST", "1"].contains(rule.word("phase") ?? "TEST") && rule.integer("min_level") ?? 0 <= 0
            && rule.integer("max_level") ?? 0 >= 0 && !rule.has("stage")
    }

    /// The newer name of a type that older files write in capitals.
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

    /// What a prediction does without.
    private static let ignored: Set = [
        "Data", "ImageData", "MemoryData", "DummyData", "HDF5Data", "WindowData", "Accuracy", "Silence",
        "SoftmaxWithLoss",
    ]

    /// - Parameter size: Height and width of the image, instead of those in the architecture.
    init(_ net: TextMessage, _ layers: [Layer], _ weights: CaffeWeights, size: Size2D?) throws {
        self.weights = weights
        let inputs = layers.filter { $0.type == "Input" }
        let names = inputs.flatMap(\.tops) + net.words("input")
        guard names.count == 1 else {
            throw ImportError.Problem.otherKind(
                found: "a model of \(names.count) inputs", advice: "expected one, an image: use the deploy.prototxt")
        }
        let lengths =
            inputs.first?.properties.message("input_param").message("shape").integers("dim")
            ?? (net.has("input_shape") ? net.message("input_shape").integers("dim") : net.integers("input_dim"))
        guard lengths.count == 4, lengths[1] == 1 || lengths[1] == 3 else {
            throw ImportError.Problem.otherKind(
                found: "a model of an input \(lengths)", advice: "expected an image, of four axes with 1 or 3 channels")
        }
        let (height, width) = (size?.height ?? lengths[2], size?.width ?? lengths[3])
        guard (1...(1 << 14)).contains(height), (1...(1 << 14)).contains(width) else {
            throw ImportError.Problem.malformed(
                reason: "its image has the size \(width)x\(height), expected 1x1 to 16384x16384")
        }
        assembler = NetworkAssembler(
            input: TensorShape(height: height, width: width, channels: lengths[1]), weights: weights.byteCount)
        var image = assembler.image(axes: [.batch, .channels, .height, .width])
        // OpenCV, with which Caffe reads photos, has blue first.
        if lengths[1] == 3 {
            image = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "bgr", to: [image])
        }
        blobs[names[0]] = image
    }

    /// Adds all layers; what the last one writes is the result.
    mutating func run(_ layers: [Layer]) throws -> SourceActivation {
        let layers = layers.filter { $0.type != "Input" }
        guard let last = layers.last?.tops.first else {
            throw ImportError.Problem.malformed(reason: "it has no layers")
        }
        var missing = MissingOperations()
        for layer in layers {
            guard let add = Self.known[layer.type] else {
                missing.add(.init(operation: layer.type, node: layer.name), making: layer.tops)
                continue
            }
            try missing.collect(reading: layer.bottoms, making: layer.tops) {
                let inputs = try layer.bottoms.map { name throws(ImportError.Problem) in
                    guard let blob = blobs[name] else {
                        throw .malformed(
                            reason: "\(layer.name) reads \(name.debugDescription), which nothing before it makes")
                    }
                    return blob
                }
                guard !inputs.isEmpty else {
                    throw ImportError.Problem.malformed(reason: "\(layer.name) (\(layer.type)) reads nothing")
                }
                for (name, blob) in zip(layer.tops, try add(layer, inputs, &self)) { blobs[name] = blob }
            }
        }
        try missing.check()
        guard let result = blobs[last] else { throw ImportError.Problem.malformed(reason: "nothing makes \(last)") }
        return result
    }

    typealias Addition = @Sendable (Layer, [SourceActivation], inout CaffeImporter) throws -> [SourceActivation]

    /// The numbers of a layer, of which there must be at least so many tensors.
    func numbers(_ layer: Layer, atLeast count: Int) throws -> [Constant] {
        let blobs = weights.blobs[layer.name] ?? []
        guard blobs.count >= count else {
            throw ImportError.Problem.malformed(
                reason: "\(layer.name) (\(layer.type)) has \(blobs.count) blobs in the .caffemodel, expected \(count)")
        }
        return try blobs.map { try $0.constant() }
    }

    func unsupported(_ layer: Layer, _ reason: String) -> ImportError.Problem {
        .unsupported([.init(operation: layer.type, node: layer.name, reason: reason)])
    }
}
