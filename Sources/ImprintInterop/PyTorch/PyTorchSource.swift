internal import ImprintNetwork

/// The library that wrote a checkpoint, which determines the names of the parameters and details of the network.
struct PyTorchSource {
    /// The naming convention of the parameters.
    enum Library: String {
        case torchvision
        case timm
        /// The packages efficientnet-pytorch and efficientnet-lite-pytorch.
        case efficientNetPyTorch = "EfficientNet-PyTorch"
    }

    let architecture: PyTorchArchitecture
    let library: Library
    /// The PyTorch module of each node with parameters.
    let modules: [String: String]

    /// Detects the library by the name of the first convolution.
    ///
    /// - Throws: `ArchitectureMismatch` if no library that has the architecture uses these names.
    init(of tensors: StateDictionary, for architecture: PyTorchArchitecture) throws {
        let libraries = Self.libraries(of: architecture)
        let library = libraries.first { library in
            Self.firstModules(library, architecture.network).contains {
                tensors.shape(of: "\($0).weight") != nil
            }
        }
        guard let library else {
            let expected = libraries.map { library in
                "\"\(Self.firstModules(library, architecture.network)[0]).weight\" as in \(library.rawValue)"
            }
            let found = tensors.names.first.map { "whose first tensor is \($0.debugDescription)" } ?? "without tensors"
            throw ArchitectureMismatch(
                finding: .contains("a checkpoint \(found)"),
                expected:
                    "Expected the first convolution of \(architecture.name): \(expected.joined(separator: ", or "))")
        }
        self.architecture = architecture
        self.library = library
        modules = try Self.modules(library, architecture.network)
    }

    private static func libraries(of architecture: PyTorchArchitecture) -> [Library] {
        switch architecture.network {
        case "resnet-18", "resnet-34", "resnet-50", "squeezenet-1.0", "squeezenet-1.1": [.torchvision]
        case "mobilenet-v2", "mobilenet-v3-small", "mobilenet-v3-large":
            architecture.isFromTensorFlow ? [.timm] : [.torchvision, .timm]
        case "efficientnet-b0":
            architecture.isFromTensorFlow
                ? [.timm, .efficientNetPyTorch] : [.torchvision, .timm, .efficientNetPyTorch]
        default: [.timm, .efficientNetPyTorch]
        }
    }

    /// Returns the name of the first convolution.
    private static func firstModules(_ library: Library, _ network: String) -> [String] {
        switch library {
        case .timm: ["conv_stem"]
        case .efficientNetPyTorch: ["_conv_stem"]
        case .torchvision:
            network.hasPrefix("resnet")
                ? ["conv1"] : network.hasPrefix("squeezenet") ? ["features.0"] : ["features.0.0"]
        }
    }
}

/// The network and its preprocessing.
extension PyTorchSource {
    /// The PyTorch module of the head.
    var head: String { modules["head"] ?? "" }

    /// Whether convolutions are padded as in TensorFlow.
    private var usesSamePadding: Bool { architecture.isFromTensorFlow || library == .efficientNetPyTorch }

    /// The epsilon of batch normalization.
    private var epsilon: Float {
        let isMobileNetV3 = architecture.network.hasPrefix("mobilenet-v3")
        return usesSamePadding || (library == .torchvision && isMobileNetV3) ? 1e-3 : 1e-5
    }

    /// Returns the network, with a softmax at its end.
    func network(labels: Int, input: Size2D) throws -> Network {
        let name = architecture.network
        guard var design = try InvertedResidualDesign.named(name) else {
            return name.hasPrefix("resnet")
                ? try .resNet(named: name, labels: labels, input: input)
                : try .squeezeNet(named: name, labels: labels, input: input)
        }
        design.usesSamePadding = usesSamePadding
        design.epsilon = epsilon
        return try design.network(labels: labels, input: input)
    }

    /// The height and width of images with which the library's model was trained or is evaluated.
    var inputSize: Int {
        switch (library, architecture.network) {
        case (.timm, "efficientnet-lite3"): 300
        case (.timm, "efficientnet-lite4"): 380
        case (_, "efficientnet-lite1"): 240
        case (_, "efficientnet-lite2"): 260
        case (_, "efficientnet-lite3"): 280
        case (_, "efficientnet-lite4"): 300
        default: 224
        }
    }

    /// The input normalization of the library's model, and its name.
    private var preprocessing: (ModelImporter.InputNormalization, name: String) {
        let isLite = architecture.network.hasPrefix("efficientnet-lite")
        if library == .efficientNetPyTorch && isLite {
            return (.init(mean: [127], scale: [1 / 128]), "a mean of 127 and a scale of 1/128")
        }
        if architecture.isFromTensorFlow && architecture.network != "efficientnet-b0" {
            return (.init(mean: [127.5], scale: [1 / 127.5]), "a mean of 127.5 and a scale of 1/127.5")
        }
        return (.imageNet, "ImageNet's mean and standard deviation")
    }

    var normalization: ModelImporter.InputNormalization { preprocessing.0 }

    /// Notes about what the checkpoint does not specify.
    func notes(for importer: ModelImporter) -> [String] {
        var notes: [String] = []
        let size = importer.inputSize == nil ? "an input size of \(Size2D(inputSize))" : nil
        let normalization = importer.normalization == nil ? preprocessing.name : nil
        let assumed = [size, normalization].compactMap { $0 }.joined(separator: " and ")
        if !assumed.isEmpty {
            notes.append(
                "A PyTorch checkpoint does not specify the preprocessing. Imprint assumes \(assumed), as in "
                    + "\(library.rawValue). Set others if the model was trained with them.")
        }
        if library == .timm && PyTorchArchitecture.names.contains("tf-\(architecture.name)") {
            notes.append(
                "timm's models with weights from TensorFlow have the same parameter names. Choose the architecture "
                    + "tf-\(architecture.name) if the model's name begins with tf_.")
        }
        return notes
    }
}
