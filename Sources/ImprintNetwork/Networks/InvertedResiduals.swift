/// A block of MobileNetV2, MobileNetV3 or EfficientNet: an inverted residual.
///
/// A 1x1 convolution expands the channels, a depthwise convolution follows, squeeze-and-excitation scales its channels, and a 1x1
/// convolution without activation projects them. If input and output have the same shape, they are added.
package struct InvertedResidual: Sendable {
    /// The index of the stage: the group of blocks with the same number of output channels.
    package let stage: Int
    /// The index of the block in its stage.
    package let index: Int
    /// The height and width of the depthwise kernel.
    let kernelSize: Int
    let stride: Int
    /// Whether the block begins with the expanding convolution.
    package let hasExpansion: Bool
    /// The number of channels of the depthwise convolution.
    let expandedChannels: Int
    /// The number of channels between the dense layers of squeeze-and-excitation, or nil without squeeze-and-excitation.
    let squeezedChannels: Int?
    let outputChannels: Int
    let activation: any Layer

    /// Whether the block scales its channels by squeeze-and-excitation.
    package var hasSqueeze: Bool { squeezedChannels != nil }
}

/// A network of inverted residuals: MobileNetV2, MobileNetV3 or EfficientNet.
package struct InvertedResidualDesign: Sendable {
    let name: String
    /// The height and width of the input in the paper or its implementation.
    package let inputSize: Int
    let stemChannels: Int
    /// The blocks in order.
    package let blocks: [InvertedResidual]
    /// The number of channels of the 1x1 convolution after the blocks.
    let lastChannels: Int
    /// The activation after the first and the last convolution.
    let activation: any Layer
    /// The activation between the dense layers of squeeze-and-excitation.
    let squeezeActivation: any Layer
    /// The activation after them, which scales the channels by 0…1.
    let gate: any Layer
    /// The number of channels of a dense layer between the global average and the head, or nil without this layer.
    let hiddenChannels: Int?
    /// The rate of the dropout before the head.
    let dropout: Float
    /// Whether convolutions are padded as in TensorFlow, instead of equally on all sides.
    package var usesSamePadding: Bool
    /// The epsilon of all batch normalizations.
    package var epsilon: Float

    /// Whether a dense layer and an activation precede the head.
    package var hasHiddenLayer: Bool { hiddenChannels != nil }

    /// Returns the network for images of the size `input`.
    package func network(labels: Int, input: Size2D) throws(NetworkError) -> Network {
        try checkLabels(name, labels)
        var net = NetworkBuilder(
            name: name, input: TensorShape(height: input.height, width: input.width, channels: 3))
        @discardableResult
        func addConvolution(
            _ name: String, _ channels: Int, kernelSize: Int = 1, stride: Int = 1, groups: Int = 1,
            activation: (any Layer)?
        ) -> String {
            net.addConvolution(
                name, outputChannels: channels, kernelSize: kernelSize, stride: Size2D(stride), groups: groups,
                padding: usesSamePadding ? .same : nil, epsilon: epsilon, activation: activation)
        }
        addConvolution("0", stemChannels, kernelSize: 3, stride: 2, activation: activation)
        var channels = stemChannels
        for (number, block) in zip(1..., blocks) {
            let input = net.last
            if block.hasExpansion {
                addConvolution("\(number)_expand", block.expandedChannels, activation: block.activation)
            }
            addConvolution(
                "\(number)_depthwise", block.expandedChannels, kernelSize: block.kernelSize, stride: block.stride,
                groups: block.expandedChannels, activation: block.activation)
            if let squeezed = block.squeezedChannels {
                let image = net.last
                net.add(GlobalAveragePool(), named: "squeeze\(number)_pool")
                net.add(Dense(outputChannels: squeezed), named: "squeeze\(number)_reduce")
                net.add(squeezeActivation, named: "squeeze\(number)_activation")
                net.add(Dense(outputChannels: block.expandedChannels), named: "squeeze\(number)_expand")
                let gate = net.add(gate, named: "squeeze\(number)_gate")
                net.add(MultiplyLayer(), named: "squeeze\(number)", to: [image, gate])
            }
            let branch = addConvolution("\(number)_project", block.outputChannels, activation: nil)
            if block.stride == 1 && channels == block.outputChannels {
                net.add(AddLayer(), named: "add\(number)", to: [branch, input])
            }
            channels = block.outputChannels
        }
        addConvolution("\(blocks.count + 1)", lastChannels, activation: activation)
        net.add(GlobalAveragePool(), named: "features")
        if let hiddenChannels {
            net.add(Dense(outputChannels: hiddenChannels), named: "dense1")
            net.add(activation, named: "activation_dense1")
        }
        net.add(Dropout(rate: dropout), named: "dropout")
        net.add(Dense(outputChannels: labels), named: "head")
        net.add(Softmax(), named: "probabilities")
        return try net.network()
    }

    /// Returns the design of a ready-made network, or nil if the network has no inverted residuals.
    package static func named(_ name: String, width: Double = 1) throws(NetworkError) -> Self? {
        switch name {
        case "mobilenet-v2": try mobileNetV2(width: width)
        case "mobilenet-v3-small": try mobileNetV3(isLarge: false, width: width)
        case "mobilenet-v3-large": try mobileNetV3(isLarge: true, width: width)
        case "efficientnet-b0": try efficientNetB0(width: width)
        case "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "efficientnet-lite3",
            "efficientnet-lite4":
            try efficientNetLite(name.last?.wholeNumberValue ?? 0, width: width)
        default: nil
        }
    }
}

/// Returns the multiple of 8 that is closest to a number of channels, at least 8 and not more than 10 % below it.
///
/// Source: `_make_divisible` of TensorFlow's MobileNet.
func multipleOf8(_ channels: Double) -> Int {
    let rounded = max(8, Int(channels + 4) / 8 * 8)
    return Double(rounded) < 0.9 * channels ? rounded + 8 : rounded
}
