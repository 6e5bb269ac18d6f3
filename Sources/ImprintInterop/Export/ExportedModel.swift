internal import ImprintModel
internal import ImprintNetwork

/// A model to export to a format with the NCHW layout.
struct ExportedModel {
    /// The model.
    let file: ModelFile
    /// The network of the model, possibly for images of another size.
    let network: Network
    /// The precision of convolution and dense weights; biases, normalization parameters and statistics stay float32.
    let storagePrecision: Safetensors.Precision
    /// The quantization of the int8 layers, which keep their int8 weights; nil if there are none.
    let quantization: Quantization?
    private let nodeIndices: [String: Int]
    /// For each node, the shape of the image that its output vector flattens in channels-first order.
    ///
    /// It is nil if the output is in Imprint's channels-last order.
    private let reorderedImages: [TensorShape?]

    /// - Parameters:
    ///   - network: The network of the model for images of another size; nil for the network of the model file.
    ///   - keepsInt8Layers: Whether the int8 layers of a quantized model keep their int8 weights.
    init(
        _ file: ModelFile, network: Network? = nil, storagePrecision: Safetensors.Precision,
        keepsInt8Layers: Bool = true
    ) {
        let network = network ?? file.network
        self.file = file
        self.network = network
        self.storagePrecision = storagePrecision
        quantization = keepsInt8Layers ? file.parameters.quantization : nil
        let nodes = network.nodes
        let nodeIndices = Dictionary(uniqueKeysWithValues: nodes.enumerated().map { ($1.name, $0) })
        self.nodeIndices = nodeIndices
        reorderedImages = reorderedVectors(of: network, nodes.map { $0.inputs.map { nodeIndices[$0] } })
    }

    /// Returns the indices of the nodes that a node reads; `nil` is the network's input.
    func sources(of index: Int) -> [Int?] { network.nodes[index].inputs.map { nodeIndices[$0] } }

    /// Returns the shapes of a node's inputs.
    func inputShapes(of index: Int) -> [TensorShape] {
        sources(of: index).map { $0.map { network.shapes[$0] } ?? network.input }
    }

    /// Returns the metadata from which Imprint restores the model, as keys and JSON values.
    ///
    /// The keys are the same as in a model file. The key of the network identifies a model that Imprint exported.
    func metadata() throws -> [(key: String, value: String)] {
        [
            (ModelFileKey.labels, try json(file.labels)),
            (ModelFileKey.network, try json(file.network)),
            (ModelFileKey.preprocessing, try json(file.preprocessing)),
        ]
    }
}

// MARK: Tensors

extension ExportedModel {
    /// Returns a vector or scalar parameter of a node.
    func vector(_ name: String, of index: Int) -> ExportedTensor {
        let entry = entry(name, of: index)
        return tensor(entry, shape: entry.parameter.shape) { try $1($0) }
    }

    /// Returns the kernel of a convolution: [outputs, inputs / groups, height, width].
    ///
    /// - Parameter weights: The scales of the weights, whose integers the tensor contains; nil for the numbers themselves.
    func kernel(_ size: Size2D, at index: Int, integersOf weights: Quantization.Weights? = nil) -> ExportedTensor {
        let entry = entry("weight", of: index)
        let (height, width) = (size.height, size.width)
        let (inputs, outputs) = (entry.parameter.shape[2], entry.parameter.shape[3])
        return tensor(entry, shape: [outputs, inputs, height, width], integersOf: weights) {
            try forEachPartChannelsFirst($0, pixels: height * width, channels: inputs, outputs: outputs, $1)
        }
    }

    /// Returns the matrix of a dense layer, [outputs, inputs], with the inputs in the order of the format's flatten operator.
    ///
    /// - Parameter weights: The scales of the weights, whose integers the tensor contains; nil for the numbers themselves.
    func matrix(at index: Int, integersOf weights: Quantization.Weights? = nil) -> ExportedTensor {
        let entry = entry("weight", of: index)
        let (inputs, outputs) = (entry.parameter.shape[0], entry.parameter.shape[1])
        let image = sources(of: index)[0].flatMap { reorderedImages[$0] } ?? TensorShape(channels: inputs)
        return tensor(entry, shape: [outputs, inputs], integersOf: weights) {
            try forEachPartChannelsFirst($0, pixels: image.pixels, channels: image.channels, outputs: outputs, $1)
        }
    }

    /// Returns a parameter for each element of an image: [channels, height, width].
    func image(_ name: String, of index: Int) -> ExportedTensor {
        let shape = inputShapes(of: index)[0]
        return tensor(entry(name, of: index), shape: [shape.channels, shape.height, shape.width]) {
            try forEachPartChannelsFirst($0, pixels: shape.pixels, channels: shape.channels, outputs: 1, $1)
        }
    }

    private func entry(_ name: String, of index: Int) -> ParameterLayout.Entry {
        let name = "\(network.nodes[index].name).\(name)"
        guard let entry = file.parameters.layout[name] else {
            preconditionFailure("the network has no parameter \(name)")
        }
        return entry
    }

    private func tensor(
        _ entry: ParameterLayout.Entry, shape: [Int], integersOf weights: Quantization.Weights? = nil,
        _ order: @escaping (UnsafeBufferPointer<Float>, (UnsafeBufferPointer<Float>) throws -> Void) throws -> Void
    ) -> ExportedTensor {
        let parameters = file.parameters
        return ExportedTensor(
            entry.name, shape: shape, precision: entry.parameter.role == .weight ? storagePrecision : .float32
        ) { body in
            try parameters.withValues(of: entry) { values in
                let values = UnsafeBufferPointer(values)
                guard let weights else { return try order(values, body) }
                try weights.integers(values).map(Float.init).withUnsafeBufferPointer { try order($0, body) }
            }
        }
    }
}

// MARK: Order of vectors

extension ExportedModel {
    /// Whether the output of the `Flatten` at `index` is in channels-first order.
    ///
    /// Only dense layers depend on that order, and `matrix(at:)` permutes their weights to match.
    func isReordered(flattenAt index: Int) -> Bool { reorderedImages[index] != nil }

    /// Returns values for the elements of a node's output in the order of the exported tensor.
    func ordered<Value>(_ values: [Value], of index: Int) -> [Value] {
        guard index >= 0, let image = reorderedImages[index], values.count == image.count else { return values }
        return (0..<values.count).map { position in
            let (channel, pixel) = position.quotientAndRemainder(dividingBy: image.pixels)
            return values[pixel * image.channels + channel]
        }
    }
}

/// Returns, for each node, the image that its output may flatten in channels-first order.
///
/// It may if only dense layers depend on the order.
private func reorderedVectors(of network: Network, _ sources: [[Int?]]) -> [TensorShape?] {
    let nodes = network.nodes
    // Whether only dense layers depend on the order of an output, from the last node to the first.
    var mayReorder = [Bool](repeating: true, count: nodes.count)
    mayReorder[nodes.count - 1] = false
    for index in nodes.indices.reversed() where !(nodes[index].layer is Dense) {
        guard !(ignoresOrder(nodes[index].layer) && mayReorder[index]) else { continue }
        for source in sources[index].compactMap({ $0 }) { mayReorder[source] = false }
    }
    var images: [TensorShape?] = []
    for (index, node) in nodes.enumerated() {
        switch node.layer {
        case is Flatten where mayReorder[index]:
            images.append(sources[index][0].map { network.shapes[$0] } ?? network.input)
        case let layer where ignoresOrder(layer): images.append(sources[index][0].flatMap { images[$0] })
        default: images.append(nil)
        }
    }
    return images
}

/// Whether a layer applies the same function to each element, regardless of its index.
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
