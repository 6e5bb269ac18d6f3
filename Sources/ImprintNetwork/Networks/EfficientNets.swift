extension Network {
    /// Returns EfficientNet-B0, a classifier of inverted residuals with squeeze-and-excitation.
    ///
    /// 16 blocks with Swish, a 1x1 convolution with 1280 channels, global average pooling, dropout and a dense layer. `width` scales the
    /// channels, which stay multiples of 8. Convolutions have TensorFlow's padding, and batch normalization has an epsilon of 0.001, as in
    /// the original implementation. Input: [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Source: Tan and Le, "EfficientNet: Rethinking model scaling for convolutional neural networks", 2019.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func efficientNetB0(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("efficientnet-b0", labels: labels, width: width, inputSize, atLeast: 1)
        return try InvertedResidualDesign.efficientNetB0(width: width).network(labels: labels, input: Size2D(inputSize))
    }

    /// Returns EfficientNet-Lite, a classifier for mobile devices: EfficientNet with ReLU6 and without squeeze-and-excitation.
    ///
    /// 16 to 30 blocks, a 1x1 convolution with 1280 channels, global average pooling, dropout and a dense layer. Convolutions have
    /// TensorFlow's padding, and batch normalization has an epsilon of 0.001, as in the original implementation. Input:
    /// [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Sources: Liu, "Higher accuracy on vision models with EfficientNet-Lite", TensorFlow blog, 2020; Tan and Le, "EfficientNet", 2019.
    /// - Parameters:
    ///   - variant: 0…4, for EfficientNet-Lite0 to EfficientNet-Lite4.
    ///   - labels: The number of labels.
    ///   - inputSize: The height and width of the input, or nil for the variant's: 224, 240, 260, 280 or 300.
    ///   - width: The width multiplier of the variant's channel counts, which stay multiples of 8.
    /// - Throws: `NetworkError` for a variant or a size that is out of range.
    public static func efficientNetLite(
        _ variant: Int, labels: Int = 1000, inputSize: Int? = nil, width: Double = 1
    ) throws(NetworkError) -> Network {
        let design = try InvertedResidualDesign.efficientNetLite(variant, width: width)
        let inputSize = inputSize ?? design.inputSize
        try checkSizes(design.name, labels: labels, width: width, inputSize, atLeast: 1)
        return try design.network(labels: labels, input: Size2D(inputSize))
    }
}

extension InvertedResidualDesign {
    /// Returns the design of EfficientNet-B0 (table 1 of the paper).
    static func efficientNetB0(width: Double) throws(NetworkError) -> Self {
        try checkWidth("efficientnet-b0", width)
        return Self(
            name: "efficientnet-b0", inputSize: 224, stemChannels: multipleOf8(32 * width),
            blocks: efficientNetBlocks(width: width, depth: 1, stemChannels: multipleOf8(32 * width), isLite: false),
            lastChannels: multipleOf8(1280 * width), activation: Swish(), squeezeActivation: Swish(), gate: Sigmoid(),
            hiddenChannels: nil, dropout: 0.2, usesSamePadding: true, epsilon: 1e-3)
    }

    /// Returns the design of EfficientNet-Lite0 to EfficientNet-Lite4.
    static func efficientNetLite(_ variant: Int, width: Double) throws(NetworkError) -> Self {
        let variants: [(width: Double, depth: Double, inputSize: Int, dropout: Float)] = [
            (1, 1, 224, 0.2), (1, 1.1, 240, 0.2), (1.1, 1.2, 260, 0.3), (1.2, 1.4, 280, 0.3), (1.4, 1.8, 300, 0.3),
        ]
        try check("efficientnet-lite", "variant", variant, variants.indices.contains(variant), "between 0 and 4")
        try checkWidth("efficientnet-lite\(variant)", width)
        let scale = variants[variant]
        // The variants differ neither in the first nor in the last convolution.
        let stemChannels = multipleOf8(32 * width)
        return Self(
            name: "efficientnet-lite\(variant)", inputSize: scale.inputSize, stemChannels: stemChannels,
            blocks: efficientNetBlocks(
                width: width * scale.width, depth: scale.depth, stemChannels: stemChannels, isLite: true),
            lastChannels: multipleOf8(1280 * width), activation: ReLU6(), squeezeActivation: ReLU6(), gate: Sigmoid(),
            hiddenChannels: nil, dropout: scale.dropout, usesSamePadding: true, epsilon: 1e-3)
    }

    /// Returns the blocks of an EfficientNet.
    ///
    /// - Parameter depth: The depth multiplier: a factor of the number of blocks of each stage except the first and the last.
    private static func efficientNetBlocks(
        width: Double, depth: Double, stemChannels: Int, isLite: Bool
    ) -> [InvertedResidual] {
        let stages = [
            (expansion: 1, kernelSize: 3, channels: 16, repeats: 1, stride: 1), (6, 3, 24, 2, 2), (6, 5, 40, 2, 2),
            (6, 3, 80, 3, 2), (6, 5, 112, 3, 1), (6, 5, 192, 4, 2), (6, 3, 320, 1, 1),
        ]
        var channels = stemChannels
        var blocks: [InvertedResidual] = []
        for (stage, (expansion, kernelSize, outputs, repeats, stride)) in stages.enumerated() {
            let isScaled = stage > 0 && stage < stages.count - 1
            let count = isScaled ? Int((Double(repeats) * depth).rounded(.up)) : repeats
            for index in 0..<count {
                let outputChannels = multipleOf8(Double(outputs) * width)
                blocks.append(
                    InvertedResidual(
                        stage: stage, index: index, kernelSize: kernelSize, stride: index == 0 ? stride : 1,
                        hasExpansion: expansion > 1, expandedChannels: expansion * channels,
                        squeezedChannels: isLite ? nil : max(1, channels / 4), outputChannels: outputChannels,
                        activation: isLite ? ReLU6() : Swish()))
                channels = outputChannels
            }
        }
        return blocks
    }
}
