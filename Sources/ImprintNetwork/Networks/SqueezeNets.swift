extension Network {
    /// Returns SqueezeNet 1.0, a classifier with few parameters.
    ///
    /// A 7x7 convolution and eight fire modules: a 1x1 convolution squeezes the channels, and 1x1 and 3x3 convolutions expand them. A 1x1
    /// convolution with one channel per label, ReLU and global average pooling follow. `width` scales the channels. Input:
    /// [batch, inputSize, inputSize, 3] with an `inputSize` of at least 21. Output: [batch, 1, 1, labels].
    ///
    /// Source: Iandola et al., "SqueezeNet", 2016.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func squeezeNet10(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try squeezeNet(named: "squeezenet-1.0", labels: labels, input: Size2D(inputSize), width: width)
    }

    /// Returns SqueezeNet 1.1, which is as accurate as SqueezeNet 1.0 with 2.4 times less computation.
    ///
    /// As `squeezeNet10(labels:inputSize:width:)`, with a 3x3 convolution at the start, earlier pooling and an `inputSize` of at least 17.
    ///
    /// Source: Iandola et al., "SqueezeNet", 2016, and the authors' second release.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func squeezeNet11(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try squeezeNet(named: "squeezenet-1.1", labels: labels, input: Size2D(inputSize), width: width)
    }

    /// Returns the SqueezeNet with this name, for images of the size `input`.
    package static func squeezeNet(
        named name: String, labels: Int, input: Size2D, width: Double = 1
    ) throws(NetworkError) -> Network {
        let isFirst = name == "squeezenet-1.0"
        guard isFirst || name == "squeezenet-1.1" else {
            throw .unknownNetwork(found: name, known: ["squeezenet-1.0", "squeezenet-1.1"])
        }
        try checkSizes(
            name, labels: labels, width: width, min(input.height, input.width), atLeast: isFirst ? 21 : 17)
        var net = NetworkBuilder(
            name: name, input: TensorShape(height: input.height, width: input.width, channels: 3))
        net.add(
            Convolution(
                outputChannels: scaled(isFirst ? 96 : 64, width), kernelSize: isFirst ? 7 : 3, stride: 2),
            named: "conv1")
        net.add(ReLU(), named: "activation1")
        func addPool(_ number: Int) {
            net.add(MaxPool(kernelSize: 3, stride: 2, roundsUp: true), named: "pool\(number)")
        }
        addPool(1)
        let pooled = isFirst ? [4, 8] : [3, 5]
        let modules = [(16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256)]
        for (number, (squeezed, expanded)) in zip(2..., modules) {
            let name = "fire\(number)"
            func addConvolution(_ part: String, _ channels: Int, kernelSize: Int, to input: String) -> String {
                net.add(
                    Convolution(
                        outputChannels: scaled(channels, width), kernelSize: Size2D(kernelSize),
                        padding: .all(kernelSize / 2)),
                    named: "\(name)_\(part)", to: [input])
                return net.add(ReLU(), named: "\(name)_\(part)_activation")
            }
            let squeeze = addConvolution("squeeze", squeezed, kernelSize: 1, to: net.last)
            let branches = [
                addConvolution("expand1x1", expanded, kernelSize: 1, to: squeeze),
                addConvolution("expand3x3", expanded, kernelSize: 3, to: squeeze),
            ]
            net.add(Concat(), named: name, to: branches)
            if pooled.contains(number) { addPool(number) }
        }
        net.add(Dropout(rate: 0.5), named: "dropout")
        net.add(Convolution(outputChannels: labels, kernelSize: 1), named: "head")
        net.add(ReLU(), named: "activation_head")
        net.add(GlobalAveragePool(), named: "scores")
        net.add(Softmax(), named: "probabilities")
        return try net.network()
    }
}
