extension Network {
    /// The names of the ready-made networks; see `named(_:labels:inputSize:width:)`.
    public static let readyMadeNames = [
        "lenet", "logonet", "mobilenet-v1", "mobilenet-v2", "mobilenet-v3-small", "mobilenet-v3-large",
        "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "efficientnet-lite3", "efficientnet-lite4",
        "efficientnet-b0", "resnet-18", "resnet-34", "resnet-50", "squeezenet-1.0", "squeezenet-1.1",
    ]

    /// Returns a ready-made network.
    /// - Parameters:
    ///   - name: One of `readyMadeNames`.
    ///   - labels: The number of labels.
    ///   - inputSize: The height and width of the input; nil for the network's default.
    ///   - width: The width multiplier of the channel counts, > 0 and ≤ 16.
    /// - Throws: `NetworkError` for an unknown name or a size that is out of range.
    public static func named(
        _ name: String, labels: Int, inputSize: Int? = nil, width: Double = 1
    ) throws(NetworkError) -> Network {
        switch name {
        case "lenet": try lenet(labels: labels, inputSize: inputSize ?? 28, width: width)
        case "logonet": try logonet(labels: labels, inputSize: inputSize ?? 96, width: width)
        case "mobilenet-v1": try mobileNetV1(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "mobilenet-v2": try mobileNetV2(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "mobilenet-v3-small": try mobileNetV3Small(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "mobilenet-v3-large": try mobileNetV3Large(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "efficientnet-lite0": try efficientNetLite(0, labels: labels, inputSize: inputSize, width: width)
        case "efficientnet-lite1": try efficientNetLite(1, labels: labels, inputSize: inputSize, width: width)
        case "efficientnet-lite2": try efficientNetLite(2, labels: labels, inputSize: inputSize, width: width)
        case "efficientnet-lite3": try efficientNetLite(3, labels: labels, inputSize: inputSize, width: width)
        case "efficientnet-lite4": try efficientNetLite(4, labels: labels, inputSize: inputSize, width: width)
        case "efficientnet-b0": try efficientNetB0(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "resnet-18": try resNet18(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "resnet-34": try resNet34(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "squeezenet-1.0": try squeezeNet10(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "squeezenet-1.1": try squeezeNet11(labels: labels, inputSize: inputSize ?? 224, width: width)
        case "resnet-50": try resNet50(labels: labels, inputSize: inputSize ?? 224, width: width)
        default: throw .unknownNetwork(found: name, known: readyMadeNames)
        }
    }

    /// Returns LeNet, a classifier of small greyscale images.
    ///
    /// Two 5x5 convolutions with max pooling and two dense layers, as in Caffe's version. Input: [batch, inputSize, inputSize, 1]. Output:
    /// [batch, 1, 1, labels].
    ///
    /// Source: LeCun et al., "Gradient-based learning applied to document recognition", 1998.
    /// - Throws: `NetworkError` for a size that is out of range.
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

    /// Returns LogoNet, a classifier small enough to train on a few hundred photos.
    ///
    /// Four blocks of 3x3 convolution, batch normalization, ReLU and 2x2 max pooling with 32, 64, 128 and 256 channels, followed by global
    /// average pooling and a dense layer. Input: [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    /// - Throws: `NetworkError` for a size that is out of range.
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

    /// Returns MobileNet v1, a classifier of depthwise separable convolutions.
    ///
    /// Depthwise and pointwise convolutions alternate, each with batch normalization and ReLU6; `width` is the paper's width
    /// multiplier α. Input: [batch, inputSize, inputSize, 3]. Output: [batch, 1, 1, labels].
    ///
    /// Source: Howard et al., "MobileNets", 2017.
    /// - Throws: `NetworkError` for a size that is out of range.
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

    /// Returns a logo detector, a fully convolutional network whose output is a heat map of logits for each logo.
    ///
    /// Eight 3x3 convolutions with batch normalization and ReLU, four of them with stride 2, and a 1x1 convolution. Input:
    /// [batch, height, width, 3], patches of 96 pixels in training and images of any size in prediction. Output: [batch, ⌈height / 16⌉,
    /// ⌈width / 16⌉, logos]. With box regression, four more channels of the output describe the box of a logo at each position
    /// (docs/explanation/detection.md).
    ///
    /// Neighbouring positions of the heat map are 16 pixels apart. Position i is centred at pixel 16 · i, and its receptive field is 103
    /// pixels wide.
    /// - Parameters:
    ///   - logos: The number of logos, at least 1.
    ///   - regressesBoxes: Whether the network also predicts boxes.
    ///   - height: The height of the input, at least 16.
    ///   - width: The width of the input, at least 16.
    /// - Throws: `NetworkError` for a size that is out of range.
    public static func logoDetector(
        logos: Int = 1, regressesBoxes: Bool = false, height: Int = 96, width: Int = 96
    ) throws(NetworkError) -> Network {
        try check("logo detector", "logos", logos, logos >= 1, "at least 1")
        try check("logo detector", "size", min(height, width), min(height, width) >= 16, "at least 16")
        var net = NetworkBuilder(name: "logospot", input: TensorShape(height: height, width: width, channels: 3))
        let blocks: [(channels: Int, stride: Size2D)] = [
            (16, 2), (32, 2), (32, 1), (64, 2), (64, 1), (64, 1), (128, 2), (128, 1),
        ]
        for (block, (channels, stride)) in blocks.enumerated() {
            net.addConvolution(
                "\(block + 1)", outputChannels: channels, kernelSize: 3, stride: stride, activation: ReLU())
        }
        let features = net.last
        net.add(Convolution(outputChannels: logos, kernelSize: 1), named: "head")
        if regressesBoxes {
            net.add(Convolution(outputChannels: BoxCode.count, kernelSize: 1), named: "boxes", to: [features])
            net.add(Concat(), named: "output", to: ["head", "boxes"])
        }
        return try net.network()
    }

    static func scaled(_ channels: Int, _ width: Double) -> Int {
        max(1, Int((Double(channels) * width).rounded()))
    }

    static func checkSizes(
        _ network: String, labels: Int, width: Double, _ inputSize: Int, atLeast minimum: Int
    ) throws(NetworkError) {
        try check(network, "inputSize", inputSize, inputSize >= minimum, "at least \(minimum)")
        try checkLabels(network, labels)
        try checkWidth(network, width)
    }
}

/// Checks the number of labels of a ready-made network.
func checkLabels(_ network: String, _ labels: Int) throws(NetworkError) {
    try check(network, "labels", labels, labels >= 1, "at least 1")
}

/// Checks the width multiplier of a ready-made network.
func checkWidth(_ network: String, _ width: Double) throws(NetworkError) {
    try check(network, "width", width, width > 0 && width <= 16, "more than 0 and at most 16")
}

extension NetworkBuilder {
    /// Adds a convolution without bias, batch normalization and, unless it is nil, an activation.
    /// - Parameters:
    ///   - name: The suffix of the names of the nodes.
    ///   - padding: The padding; nil for half of the kernel on all sides.
    ///   - epsilon: The epsilon of the batch normalization.
    /// - Returns: The name of the last of these nodes.
    @discardableResult
    mutating func addConvolution(
        _ name: String, outputChannels: Int, kernelSize: Int, stride: Size2D = 1, groups: Int = 1,
        padding: Padding? = nil, epsilon: Float = 1e-5, activation: (any Layer)? = nil, to input: String? = nil
    ) -> String {
        add(
            Convolution(
                outputChannels: outputChannels, kernelSize: Size2D(kernelSize), stride: stride,
                padding: padding ?? .all(kernelSize / 2), groups: groups, hasBias: false),
            named: "conv\(name)", to: input.map { [$0] })
        add(BatchNormalization(epsilon: epsilon), named: "norm\(name)")
        if let activation { add(activation, named: "activation\(name)") }
        return last
    }

    /// Adds global average pooling, a dense layer with one output per label, and softmax.
    mutating func addHead(labels: Int) {
        add(GlobalAveragePool(), named: "features")
        add(Dense(outputChannels: labels), named: "head")
        add(Softmax(), named: "probabilities")
    }
}
