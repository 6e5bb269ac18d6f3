internal import ImprintModel
internal import ImprintNetwork

/// A classifier on its way into a format that keeps channels before pixels.
struct ExportedModel {
    let weights: ModelFile
    /// How weights of convolutions and dense layers are stored; biases, norms and statistics stay float32.
    let precision: Safetensors.Precision
    private let places: [String: Int]
    /// For each node, the shape of the image whose values its result holds with channels before pixels though it is a vector;
    /// nil if the result is in Imprint's order.
    private let reorderedImages: [TensorShape?]

    init(_ weights: ModelFile, precision: Safetensors.Precision) {
        self.weights = weights
        self.precision = precision
        let nodes = weights.network.nodes
        let places = Dictionary(uniqueKeysWithValues: nodes.enumerated().map { ($1.name, $0) })
        self.places = places
        reorderedImages = reorderedVectors(of: weights.network, nodes.map { $0.inputs.map { places[$0] } })
    }

    var network: Network { weights.network }

    /// The places of the nodes that a node reads; `nil` is the network's input.
    func sources(of place: Int) -> [Int?] { network.nodes[place].inputs.map { places[$0] } }

    /// The shapes that a node reads.
    func inputShapes(of place: Int) -> [TensorShape] {
        sources(of: place).map { $0.map { network.shapes[$0] } ?? network.input }
    }

    /// The metadata key of the network, by which Imprint recognizes a model that it exported.
    static let networkKey = "imprint.network"

    /// The metadata that lets Imprint read the model back as it was: name and JSON.
    func metadata() throws -> [(key: String, value: String)] {
        [
            ("imprint.labels", try json(weights.labels)),
            (Self.networkKey, try json(network)),
            ("imprint.preprocessing", try json(weights.preprocessing)),
        ]
    }
}

// MARK: Tensors

extension ExportedModel {
    /// A vector of a node, or a single number.
    func vector(_ name: String, of place: Int) -> ExportedTensor {
        let entry = entry(name, of: place)
        return tensor(entry, shape: entry.parameter.shape) { try $1($0) }
    }

    /// The kernel of a convolution: [outputs, inputs / groups, height, width].
    func kernel(_ size: Size2D, at place: Int) -> ExportedTensor {
        let entry = entry("weight", of: place)
        let (height, width) = (size.height, size.width)
        let (inputs, outputs) = (entry.parameter.shape[2], entry.parameter.shape[3])
        return tensor(entry, shape: [outputs, inputs, height, width]) {
            try forEachPartChannelsFirst($0, pixels: height * width, channels: inputs, outputs: outputs, $1)
        }
    }

    /// The matrix of a dense layer, [outputs, inputs], with the inputs in the order in which the format flattens an image.
    func matrix(at place: Int) -> ExportedTensor {
        let entry = entry("weight", of: place)
        let (inputs, outputs) = (entry.parameter.shape[0], entry.parameter.shape[1])
        let image = sources(of: place)[0].flatMap { reorderedImages[$0] } ?? TensorShape(channels: inputs)
        return tensor(entry, shape: [outputs, inputs]) {
            try forEachPartChannelsFirst($0, pixels: image.pixels, channels: image.channels, outputs: outputs, $1)
        }
    }

    /// A number for each value of an image: [channels, height, width].
    func image(_ name: String, of place: Int) -> ExportedTensor {
        let shape = inputShapes(of: place)[0]
        return tensor(entry(name, of: place), shape: [shape.channels, shape.height, shape.width]) {
            try forEachPartChannelsFirst($0, pixels: shape.pixels, channels: shape.channels, outputs: 1, $1)
        }
    }

    private func entry(_ name: String, of place: Int) -> ParameterLayout.Entry {
        let name = "\(network.nodes[place].name).\(name)"
        guard let entry = weights.parameters.layout[name] else {
            preconditionFailure("the network has no parameter \(name)")
        }
        return entry
    }

    private func tensor(
        _ entry: ParameterLayout.Entry, shape: [Int],
        _ order: @escaping (UnsafeBufferPointer<Float>, (UnsafeBufferPointer<Float>) throws -> Void) throws -> Void
    ) -> ExportedTensor {
        let parameters = weights.parameters
        return ExportedTensor(
            entry.name, shape: shape, precision: entry.parameter.role == .weight ? precision : .float32
        ) { body in
            try parameters.withValues(of: entry) { try order(UnsafeBufferPointer($0), body) }
        }
    }
}

// MARK: Order of vectors

extension ExportedModel {
    /// Whether the vector that the `Flatten` at `place` makes has its channels before its pixels, which only the matrices of dense
    /// layers notice, and these follow it.
    func isReordered(flattenAt place: Int) -> Bool { reorderedImages[place] != nil }
}

/// For each node, the image whose values its result may hold with channels before pixels, because nothing but dense layers sees the
/// order.
private func reorderedVectors(of network: Network, _ sources: [[Int?]]) -> [TensorShape?] {
    let nodes = network.nodes
    // Whether dense layers alone see the order of a result, from the last node to the first.
    var mayReorder = [Bool](repeating: true, count: nodes.count)
    mayReorder[nodes.count - 1] = false
    for place in nodes.indices.reversed() where !(nodes[place].layer is Dense) {
        guard !(ignoresOrder(nodes[place].layer) && mayReorder[place]) else { continue }
        for source in sources[place].compactMap({ $0 }) { mayReorder[source] = false }
    }
    var images: [TensorShape?] = []
    for (place, node) in nodes.enumerated() {
        switch node.layer {
        case is Flatten where mayReorder[place]:
            images.append(sources[place][0].map { network.shapes[$0] } ?? network.input)
        case let layer where ignoresOrder(layer): images.append(sources[place][0].flatMap { images[$0] })
        default: images.append(nil)
        }
    }
    return images
}

/// Whether a layer does the same to each value, wherever it stands.
private func ignoresOrder(_ layer: any Layer) -> Bool {
    switch layer {
    case is ClipLayer, is Dropout, is ELU, is Erf, is GELU, is HardSigmoid, is HardSwish, is LeakyReLU, is ReLU,
        is ReLU6,
        is Sigmoid, is Softplus, is Swish, is Tanh:
        true
    case let layer as PReLU: layer.isShared
    default: false
    }
}
