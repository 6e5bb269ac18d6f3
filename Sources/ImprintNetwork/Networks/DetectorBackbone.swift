extension Network {
    /// Returns a detector whose heat maps are computed from the features of a pretrained network.
    ///
    /// The first layers of the network, up to a stride of 16, are the backbone. They are followed by a 3x3 convolution with batch
    /// normalization and ReLU, and the 1x1 convolutions of the heat maps and the boxes. Layers of the backbone keep their names, so that the
    /// parameters of the pretrained network can be loaded. Shapes are those of `logoDetector(logos:regressesBoxes:height:width:)` with
    /// box regression.
    /// - Parameters:
    ///   - logos: The number of logos, at least 1.
    ///   - backbone: The pretrained network, with an input of [batch, height, width, 3].
    ///   - side: The height and width of training patches, in pixels.
    /// - Returns: nil if the network has no cut with a stride of 16 (see `cuts(stride:)`), or if earlier layers read averages of the whole
    ///   image, as squeeze-and-excitation does: averages of a patch differ from those of a photo.
    /// - Throws: `NetworkError` if the backbone does not accept patches.
    package static func logoDetector(
        logos: Int, backbone: Network, side: Int
    ) throws(NetworkError) -> Network? {
        guard let sized = backbone.withInput(multipleOf: 16), let last = sized.lastBackboneIndex,
            !sized.shapes[...last].contains(where: { $0.pixels == 1 })
        else { return nil }
        let nodes = Array(backbone.nodes[...last])
        func node(_ name: String, _ layer: any Layer, _ inputs: [String]) -> Node {
            // Names of later layers are also in use: their parameters are those of the pretrained network.
            Node(name: backbone.nodes.unusedName(name), layer: layer, inputs: inputs)
        }
        let convolution = node(
            "neck",
            Convolution(outputChannels: neckChannels, kernelSize: 3, padding: .all(1), hasBias: false),
            [nodes[last].name])
        let norm = node("neck.norm", BatchNormalization(), [convolution.name])
        let activation = node("neck.activation", ReLU(), [norm.name])
        let head = node("head", Convolution(outputChannels: logos, kernelSize: 1), [activation.name])
        let boxes = node("boxes", Convolution(outputChannels: BoxCode.count, kernelSize: 1), [activation.name])
        let output = node("output", Concat(), [head.name, boxes.name])
        return try Network(
            name: "\(backbone.name)-detector", input: TensorShape(height: side, width: side, channels: 3),
            nodes: nodes + [convolution, norm, activation, head, boxes, output])
    }

    /// The index of the last node of the backbone of a detector; nil without a cut with a stride of 16.
    ///
    /// It is the output of the last residual block or concatenation. Wider activations after it belong to the next block.
    private var lastBackboneIndex: Int? {
        let cuts = cuts(stride: 16)
        let join = cuts.last { nodes[$0].layer is AddLayer || nodes[$0].layer is Concat }
        guard var index = join else { return cuts.last }
        // The activation after the sum is part of the block.
        while cuts.contains(index + 1), !(nodes[index + 1].layer is Convolution) { index += 1 }
        return index
    }

    /// The number of channels between a backbone and the heat maps, the same as in the logo detector.
    private static let neckChannels = 128
}
