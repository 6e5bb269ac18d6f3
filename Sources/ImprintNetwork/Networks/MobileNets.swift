extension Network {
    /// Returns MobileNetV2, a classifier of inverted residuals with linear bottlenecks.
    ///
    /// 17 blocks with ReLU6, a 1x1 convolution with 1280 channels, global average pooling, dropout and a dense layer. `width` scales the
    /// channels, which stay multiples of 8; the last convolution never has fewer than 1280. Convolutions are padded equally on all sides,
    /// as in torchvision. Input: [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Source: Sandler et al., "MobileNetV2: Inverted residuals and linear bottlenecks", 2018.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func mobileNetV2(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("mobilenet-v2", labels: labels, width: width, inputSize, atLeast: 1)
        return try InvertedResidualDesign.mobileNetV2(width: width).network(labels: labels, input: Size2D(inputSize))
    }

    /// Returns MobileNetV3-Small, a classifier of inverted residuals with squeeze-and-excitation.
    ///
    /// 11 blocks with ReLU or hard swish, a 1x1 convolution, global average pooling, a dense layer with 1024 channels, dropout and a dense
    /// layer. `width` scales the channels, which stay multiples of 8. Convolutions are padded equally on all sides, as in torchvision, and
    /// batch normalization has an epsilon of 0.001. Input: [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Source: Howard et al., "Searching for MobileNetV3", 2019.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func mobileNetV3Small(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("mobilenet-v3-small", labels: labels, width: width, inputSize, atLeast: 1)
        return try InvertedResidualDesign.mobileNetV3(isLarge: false, width: width)
            .network(labels: labels, input: Size2D(inputSize))
    }

    /// Returns MobileNetV3-Large, a classifier of inverted residuals with squeeze-and-excitation.
    ///
    /// As `mobileNetV3Small(labels:inputSize:width:)`, with 15 blocks and a dense layer with 1280 channels.
    ///
    /// Source: Howard et al., "Searching for MobileNetV3", 2019.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func mobileNetV3Large(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("mobilenet-v3-large", labels: labels, width: width, inputSize, atLeast: 1)
        return try InvertedResidualDesign.mobileNetV3(isLarge: true, width: width)
            .network(labels: labels, input: Size2D(inputSize))
    }
}

extension InvertedResidualDesign {
    /// Returns the design of MobileNetV2 (table 2 of the paper).
    static func mobileNetV2(width: Double) throws(NetworkError) -> Self {
        try checkWidth("mobilenet-v2", width)
        let stages = [
            (expansion: 1, channels: 16, repeats: 1, stride: 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
            (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
        ]
        let stemChannels = multipleOf8(32 * width)
        var channels = stemChannels
        var blocks: [InvertedResidual] = []
        for (stage, (expansion, outputs, repeats, stride)) in stages.enumerated() {
            for index in 0..<repeats {
                let outputChannels = multipleOf8(Double(outputs) * width)
                blocks.append(
                    InvertedResidual(
                        stage: stage, index: index, kernelSize: 3, stride: index == 0 ? stride : 1,
                        hasExpansion: expansion > 1, expandedChannels: expansion * channels, squeezedChannels: nil,
                        outputChannels: outputChannels, activation: ReLU6()))
                channels = outputChannels
            }
        }
        return Self(
            name: "mobilenet-v2", inputSize: 224, stemChannels: stemChannels, blocks: blocks,
            lastChannels: multipleOf8(1280 * max(1, width)), activation: ReLU6(), squeezeActivation: ReLU(),
            gate: Sigmoid(), hiddenChannels: nil, dropout: 0.2, usesSamePadding: false, epsilon: 1e-5)
    }

    /// A row of a table of MobileNetV3.
    private struct Row {
        let kernelSize: Int
        /// The number of channels of the depthwise convolution.
        let expanded: Int
        let outputs: Int
        let squeezes: Bool
        let usesHardSwish: Bool
        let stride: Int

        init(_ kernelSize: Int, _ expanded: Int, _ outputs: Int, _ squeezes: Bool, _ usesHardSwish: Bool, _ stride: Int)
        {
            self.kernelSize = kernelSize
            self.expanded = expanded
            self.outputs = outputs
            self.squeezes = squeezes
            self.usesHardSwish = usesHardSwish
            self.stride = stride
        }
    }

    /// Returns the design of MobileNetV3 (tables 1 and 2 of the paper).
    static func mobileNetV3(isLarge: Bool, width: Double) throws(NetworkError) -> Self {
        let name = isLarge ? "mobilenet-v3-large" : "mobilenet-v3-small"
        try checkWidth(name, width)
        let rows =
            isLarge
            ? [
                Row(3, 16, 16, false, false, 1), Row(3, 64, 24, false, false, 2), Row(3, 72, 24, false, false, 1),
                Row(5, 72, 40, true, false, 2), Row(5, 120, 40, true, false, 1), Row(5, 120, 40, true, false, 1),
                Row(3, 240, 80, false, true, 2), Row(3, 200, 80, false, true, 1), Row(3, 184, 80, false, true, 1),
                Row(3, 184, 80, false, true, 1), Row(3, 480, 112, true, true, 1), Row(3, 672, 112, true, true, 1),
                Row(5, 672, 160, true, true, 2), Row(5, 960, 160, true, true, 1), Row(5, 960, 160, true, true, 1),
            ]
            : [
                Row(3, 16, 16, true, false, 2), Row(3, 72, 24, false, false, 2), Row(3, 88, 24, false, false, 1),
                Row(5, 96, 40, true, true, 2), Row(5, 240, 40, true, true, 1), Row(5, 240, 40, true, true, 1),
                Row(5, 120, 48, true, true, 1), Row(5, 144, 48, true, true, 1), Row(5, 288, 96, true, true, 2),
                Row(5, 576, 96, true, true, 1), Row(5, 576, 96, true, true, 1),
            ]
        let stemChannels = multipleOf8(16 * width)
        var channels = stemChannels
        var blocks: [InvertedResidual] = []
        var (stage, index) = (-1, 0)
        for (number, row) in rows.enumerated() {
            let isFirst = number == 0 || rows[number - 1].outputs != row.outputs
            (stage, index) = isFirst ? (stage + 1, 0) : (stage, index + 1)
            let expanded = multipleOf8(Double(row.expanded) * width)
            blocks.append(
                InvertedResidual(
                    stage: stage, index: index, kernelSize: row.kernelSize, stride: row.stride,
                    hasExpansion: expanded != channels, expandedChannels: expanded,
                    squeezedChannels: row.squeezes ? multipleOf8(Double(expanded) / 4) : nil,
                    outputChannels: multipleOf8(Double(row.outputs) * width),
                    activation: row.usesHardSwish ? HardSwish() : ReLU()))
            channels = multipleOf8(Double(row.outputs) * width)
        }
        return Self(
            name: name, inputSize: 224, stemChannels: stemChannels, blocks: blocks, lastChannels: 6 * channels,
            activation: HardSwish(), squeezeActivation: ReLU(), gate: HardSigmoid(),
            hiddenChannels: multipleOf8((isLarge ? 1280 : 1024) * width), dropout: 0.2, usesSamePadding: false,
            epsilon: 1e-3)
    }
}
