/// The ready-made networks by name.
extension Network {
    /// The names that `named(_:labels:inputSize:width:)` knows.
    public static let readyMadeNames = ["lenet", "logonet", "mobilenet-v1", "resnet-50"]

    /// Makes a ready-made network.
    /// - Parameters:
    ///   - name: One of `readyMadeNames`.
    ///   - labels: How many labels it tells apart.
    ///   - inputSize: The height and width of its input; the network's usual one if nil.
    ///   - width: A factor on its channels, more than 0.
    /// - Throws: `NetworkError` for an unknown name or a size that the network cannot take.
    public static func named(
        _ name: String, labels: Int, inputSize: Int? = nil, width: Double = 1
    ) throws(NetworkError) -> Network {
        switch name {
        case "lenet": try lenet(labels: labels, inputSize: inputSize ?? 28, width: width)
        case "logonet": try logonet(labels: labels, inputSize: inputSize ?? 96, width: width)
        case "mobilenet-v1": try mobileNetV1(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "resnet-50": try resNet50(labels: labels, inputSize: inputSize ?? 224, width: width)
        default: throw .unknownNetwork(found: name, known: readyMadeNames)
        }
    }

    /// LeNet for small grey pictures: two 5x5 convolutions with pooling, two dense layers (after LeCun et al.,
    /// "Gradient-based learning applied to document recognition", 1998, in Caffe's form).
    public static func lenet(
        labels: Int = 10, inputSize: Int = 28, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("lenet", labels: labels, width: width, inputSize, atLeast: 16)
        var net = NetworkBuilder(name: "lenet", input: TensorShape(height: inputSize, width: inputSize, channels: 1))
        net.add(Convolution(outputChannels: scaled(20, width), kernelSize: 5), named: "conv1")
        net.add(MaxPool(kernelSize: 2))
        net.add(Convolution(outputChannels: scaled(50, width), kernelSize: 5), named: "conv2")
        net.add(MaxPool(kernelSize: 2))
        net.add(Flatten())
        net.add(Dense(outputChannels: scaled(500, width)), named: "dense1")
        net.add(ReLU())
        net.add(Dense(outputChannels: labels), named: "head")
        net.add(Softmax(), named: "probabilities")
        return try net.network()
    }

    /// LogoNet: four blocks of 3x3 convolution, batch normalization, ReLU and 2x2 pooling with 32, 64, 128 and 256
    /// channels, a global average and a dense layer.
    ///
    /// Small enough to learn from some hundred photos.
    public static func logonet(
        labels: Int = 2, inputSize: Int = 96, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("logonet", labels: labels, width: width, inputSize, atLeast: 16)
        var net = NetworkBuilder(name: "logonet", input: TensorShape(height: inputSize, width: inputSize, channels: 3))
        for (block, channels) in [32, 64, 128, 256].enumerated() {
            net.addConvolution(
                "\(block + 1)", outputChannels: scaled(channels, width), kernelSize: 3, activation: ReLU())
            net.add(MaxPool(kernelSize: 2), named: "pool\(block + 1)")
        }
        net.addHead(labels: labels)
        return try net.network()
    }

    /// MobileNet v1: depthwise and pointwise convolutions in turn, each with batch normalization and ReLU6 (Howard et
    /// al., "MobileNets", 2017); `width` is the paper's α.
    public static func mobileNetV1(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("mobilenet-v1", labels: labels, width: width, inputSize, atLeast: 1)
        var net = NetworkBuilder(
            name: "mobilenet-v1", input: TensorShape(height: inputSize, width: inputSize, channels: 3))
        var channels = scaled(32, width)
        net.addConvolution("0", outputChannels: channels, kernelSize: 3, stride: 2, activation: ReLU6())
        let blocks = [
            (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1), (512, 1), (512, 1), (512, 1),
            (1024, 2), (1024, 1),
        ]
        for (block, (outputChannels, stride)) in blocks.enumerated() {
            net.addConvolution(
                "\(block + 1)_depthwise", outputChannels: channels, kernelSize: 3, stride: Size2D(stride),
                groups: channels, activation: ReLU6())
            channels = scaled(outputChannels, width)
            net.addConvolution("\(block + 1)_pointwise", outputChannels: channels, kernelSize: 1, activation: ReLU6())
        }
        net.addHead(labels: labels)
        return try net.network()
    }

    /// ResNet-50: sixteen bottleneck blocks of 1x1, 3x3 and 1x1 convolutions around shortcuts (He et al., "Deep residual
    /// learning", 2016), with the stride in the 3x3 convolution as PyTorch has it.
    public static func resNet50(
        labels: Int = 1000, inputSize: Int = 224, width: Double = 1
    ) throws(NetworkError) -> Network {
        try checkSizes("resnet-50", labels: labels, width: width, inputSize, atLeast: 1)
        var net = NetworkBuilder(
            name: "resnet-50", input: TensorShape(height: inputSize, width: inputSize, channels: 3))
        net.addConvolution("1", outputChannels: scaled(64, width), kernelSize: 7, stride: 2, activation: ReLU())
        var shortcut = net.add(MaxPool(kernelSize: 3, stride: 2, padding: .all(1)), named: "pool1")
        for (stage, (channels, blocks)) in [(64, 3), (128, 4), (256, 6), (512, 3)].enumerated() {
            for block in 0..<blocks {
                let name = "\(stage + 2)_\(block + 1)"
                let inner = scaled(channels, width)
                let stride: Size2D = block == 0 && stage > 0 ? 2 : 1
                net.addConvolution("\(name)a", outputChannels: inner, kernelSize: 1, activation: ReLU(), to: shortcut)
                net.addConvolution("\(name)b", outputChannels: inner, kernelSize: 3, stride: stride, activation: ReLU())
                let branch = net.addConvolution("\(name)c", outputChannels: 4 * inner, kernelSize: 1)
                if block == 0 {
                    shortcut = net.addConvolution(
                        "\(name)s", outputChannels: 4 * inner, kernelSize: 1, stride: stride, to: shortcut)
                }
                net.add(AddLayer(), named: "add\(name)", to: [branch, shortcut])
                shortcut = net.add(ReLU(), named: "out\(name)")
            }
        }
        net.addHead(labels: labels)
        return try net.network()
    }

    /// LogoSpot: eight 3x3 convolutions with batch normalization and ReLU, four of stride 2, and a 1x1 convolution that gives
    /// each place of the picture a logit for each mark; for patches of 96 pixels in training, for pictures of any size after it.
    ///
    /// A place is 16 pixels wide and sees 103 pixels around its centre, which is at 16 times its number from 0.
    public static func logoDetector(marks: Int = 1, height: Int = 96, width: Int = 96) throws(NetworkError) -> Network {
        try check("logospot", "marks", marks, marks >= 1, "at least 1")
        try check("logospot", "size", min(height, width), min(height, width) >= 16, "at least 16")
        var net = NetworkBuilder(name: "logospot", input: TensorShape(height: height, width: width, channels: 3))
        let blocks: [(channels: Int, stride: Size2D)] = [
            (16, 2), (32, 2), (32, 1), (64, 2), (64, 1), (64, 1), (128, 2), (128, 1),
        ]
        for (block, (channels, stride)) in blocks.enumerated() {
            net.addConvolution(
                "\(block + 1)", outputChannels: channels, kernelSize: 3, stride: stride, activation: ReLU())
        }
        net.add(Convolution(outputChannels: marks, kernelSize: 1), named: "head")
        return try net.network()
    }

    private static func scaled(_ channels: Int, _ width: Double) -> Int {
        max(1, Int((Double(channels) * width).rounded()))
    }

    private static func checkSizes(
        _ network: String, labels: Int, width: Double, _ inputSize: Int, atLeast least: Int
    ) throws(NetworkError) {
        try check(network, "inputSize", inputSize, inputSize >= least, "at least \(least)")
        try check(network, "labels", labels, labels >= 1, "at least 1")
        try check(network, "width", width, width > 0 && width <= 16, "more than 0 and at most 16")
    }
}

extension NetworkBuilder {
    /// Adds a convolution without bias (padded by half the kernel), batch normalization and an activation.
    @discardableResult
    fileprivate mutating func addConvolution(
        _ name: String, outputChannels: Int, kernelSize: Int, stride: Size2D = 1, groups: Int = 1,
        activation: (any Layer)? = nil, to input: String? = nil
    ) -> String {
        add(
            Convolution(
                outputChannels: outputChannels, kernelSize: Size2D(kernelSize), stride: stride,
                padding: .all(kernelSize / 2), groups: groups, hasBias: false),
            named: "conv\(name)", to: input.map { [$0] })
        add(BatchNormalization(), named: "norm\(name)")
        if let activation { add(activation, named: "activation\(name)") }
        return last
    }

    /// Adds a global average, a dense layer with one number per label and softmax.
    fileprivate mutating func addHead(labels: Int) {
        add(GlobalAveragePool(), named: "features")
        add(Dense(outputChannels: labels), named: "head")
        add(Softmax(), named: "probabilities")
    }
}
