extension Network {
    /// Returns ResNet-18, a classifier with residual connections.
    ///
    /// Eight blocks of two 3x3 convolutions with shortcuts. `width` scales the channels. Input: [batch, inputSize, inputSize, 3]. Output:
    /// [batch, 1, 1, labels].
    ///
    /// Source: He et al., "Deep residual learning for image recognition", 2016.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func resNet18(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("resnet-18", labels: labels, width: width, inputSize, atLeast: 1)
        return try resNet(named: "resnet-18", labels: labels, input: Size2D(inputSize), width: width)
    }

    /// Returns ResNet-34, a classifier with residual connections.
    ///
    /// Sixteen blocks of two 3x3 convolutions with shortcuts. `width` scales the channels. Input: [batch, inputSize, inputSize, 3].
    /// Output: [batch, 1, 1, labels].
    ///
    /// Source: He et al., "Deep residual learning for image recognition", 2016.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func resNet34(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("resnet-34", labels: labels, width: width, inputSize, atLeast: 1)
        return try resNet(named: "resnet-34", labels: labels, input: Size2D(inputSize), width: width)
    }

    /// Returns ResNet-50, a classifier with residual connections.
    ///
    /// Sixteen bottleneck blocks of 1x1, 3x3 and 1x1 convolutions with shortcuts; as in PyTorch, the 3x3 convolution has the stride. Input:
    /// [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Source: He et al., "Deep residual learning for image recognition", 2016.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func resNet50(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("resnet-50", labels: labels, width: width, inputSize, atLeast: 1)
        return try resNet(named: "resnet-50", labels: labels, input: Size2D(inputSize), width: width)
    }

    /// Returns the ResNet with this name, for images of the size `input`.
    package static func resNet(
        named name: String, labels: Int, input: Size2D, width: Double = 1
    ) throws(NetworkError) -> Network {
        let blocks: [Int]
        switch name {
        case "resnet-18": blocks = [2, 2, 2, 2]
        case "resnet-34", "resnet-50": blocks = [3, 4, 6, 3]
        default: throw .unknownNetwork(found: name, known: ["resnet-18", "resnet-34", "resnet-50"])
        }
        try checkLabels(name, labels)
        try checkWidth(name, width)
        let isBottleneck = name == "resnet-50"
        var net = NetworkBuilder(
            name: name, input: TensorShape(height: input.height, width: input.width, channels: 3))
        net.addConvolution("1", outputChannels: scaled(64, width), kernelSize: 7, stride: 2, activation: ReLU())
        var shortcut = net.add(MaxPool(kernelSize: 3, stride: 2, padding: .all(1)), named: "pool1")
        for (stage, (channels, blocks)) in zip([64, 128, 256, 512], blocks).enumerated() {
            for block in 0..<blocks {
                let name = "\(stage + 2)_\(block + 1)"
                let inner = scaled(channels, width)
                let outputs = isBottleneck ? 4 * inner : inner
                let stride: Size2D = block == 0 && stage > 0 ? 2 : 1
                let branch: String
                if isBottleneck {
                    net.addConvolution(
                        "\(name)a", outputChannels: inner, kernelSize: 1, activation: ReLU(), to: shortcut)
                    net.addConvolution(
                        "\(name)b", outputChannels: inner, kernelSize: 3, stride: stride, activation: ReLU())
                    branch = net.addConvolution("\(name)c", outputChannels: outputs, kernelSize: 1)
                } else {
                    net.addConvolution(
                        "\(name)a", outputChannels: inner, kernelSize: 3, stride: stride, activation: ReLU(),
                        to: shortcut)
                    branch = net.addConvolution("\(name)b", outputChannels: outputs, kernelSize: 3)
                }
                if block == 0 && (stage > 0 || isBottleneck) {
                    shortcut = net.addConvolution(
                        "\(name)s", outputChannels: outputs, kernelSize: 1, stride: stride, to: shortcut)
                }
                net.add(AddLayer(), named: "add\(name)", to: [branch, shortcut])
                shortcut = net.add(ReLU(), named: "out\(name)")
            }
        }
        net.addHead(labels: labels)
        return try net.network()
    }
}
