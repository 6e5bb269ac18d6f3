internal import Foundation
internal import ImprintNetwork

/// An image classifier of torchvision, timm or EfficientNet-PyTorch whose `state_dict` can be imported.
///
/// A `state_dict` has parameters by name, but no operators. The architecture's name determines the network, and the parameter names
/// determine the library. Networks of the libraries can differ in padding and in the epsilon of batch normalization.
struct PyTorchArchitecture {
    /// The names of all architectures.
    ///
    /// Those that begin with "tf-" are timm's models with weights from TensorFlow ("tf_efficientnet_lite0"). Their parameters have the same
    /// names as those of timm's other models, but the networks have TensorFlow's padding.
    static let names =
        [
            "resnet-18", "resnet-34", "resnet-50", "mobilenet-v2", "mobilenet-v3-small", "mobilenet-v3-large",
            "efficientnet-b0", "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "efficientnet-lite3",
            "efficientnet-lite4", "squeezenet-1.0", "squeezenet-1.1",
        ] + [
            "tf-mobilenet-v3-small", "tf-mobilenet-v3-large", "tf-efficientnet-b0", "tf-efficientnet-lite0",
            "tf-efficientnet-lite1", "tf-efficientnet-lite2", "tf-efficientnet-lite3", "tf-efficientnet-lite4",
        ]

    /// The name of the architecture.
    let name: String
    /// The name of the ready-made network.
    let network: String
    /// Whether the network is one of timm's with TensorFlow's padding.
    let isFromTensorFlow: Bool

    /// Creates the architecture with a name; nil if it is not one of `names`.
    init?(named name: String) {
        guard Self.names.contains(name) else { return nil }
        self.name = name
        isFromTensorFlow = name.hasPrefix("tf-")
        network = isFromTensorFlow ? String(name.dropFirst("tf-".count)) : name
    }

    /// Makes a model from the tensors of a checkpoint.
    ///
    /// - Throws: `ImportError.Problem` if a tensor is missing, has another shape or is not a parameter of the architecture.
    func importModel(_ tensors: StateDictionary, importer: ModelImporter) throws -> ImportedModel {
        do {
            return try importMatchingModel(tensors, importer)
        } catch let mismatch as ArchitectureMismatch {
            throw mismatch.problem(tensors, as: name)
        }
    }

    private func importMatchingModel(_ tensors: StateDictionary, _ importer: ModelImporter) throws -> ImportedModel {
        let source = try PyTorchSource(of: tensors, for: self)
        let labels = try labelCount(tensors, source)
        let size = importer.inputSize ?? Size2D(source.inputSize)
        guard (1...(1 << 14)).contains(size.height), (1...(1 << 14)).contains(size.width) else {
            throw ImportError.Problem.inputSize(size, reason: "expected 1x1 to 16384x16384")
        }
        let network = try source.network(labels: labels, input: size)
        let state = try PyTorchState(tensors, network: network.logits(), source: source)
        try state.check()
        let elements = state.elementCount
        try ImportError.Problem.checkMemory(forElements: elements)
        var assembler = NetworkAssembler(
            input: network.input, weights: elements * MemoryLayout<Float>.stride, preservesNodes: true)
        var image = assembler.image(axes: [.batch, .channels, .height, .width])
        if importer.normalization?.isBGR == true {
            image = try assembler.add(SelectChannels(channels: [2, 1, 0]), named: "bgr", to: [image])
        }
        var activations = [Network.inputName: image]
        var output = image
        for node in try network.logits().nodes {
            output = try assembler.add(
                node.layer, named: node.name, to: node.inputs.compactMap { activations[$0] },
                parameters: state.parameters(of: node))
            activations[node.name] = output
        }
        output.axes = [.batch, .channels]
        return try importer.finish(
            ImportedParts(
                name: network.name, assembler: assembler, output: output, labels: nil,
                normalization: source.normalization, notes: source.notes(for: importer)))
    }

    /// Returns the number of rows of the head's weight.
    func labelCount(_ tensors: StateDictionary, _ source: PyTorchSource) throws -> Int {
        let head = "\(source.head).weight"
        guard let shape = tensors.shape(of: head) else {
            throw ArchitectureMismatch(finding: .lacks("tensor \(head.debugDescription), the head of \(name)"))
        }
        guard shape.count >= 2, let labels = shape.first, labels >= 1 else {
            throw ArchitectureMismatch(
                finding: .contains("a checkpoint whose tensor \(head.debugDescription) has the shape \(shape)"),
                expected: "Expected [labels, channels], the head of \(name)")
        }
        guard labels <= NetworkAssembler.maximumLabelCount else {
            throw ImportError.Problem.exceedsLimit(
                reason: "its head \(head.debugDescription) has \(labels) labels, expected at most "
                    + "\(NetworkAssembler.maximumLabelCount)")
        }
        return labels
    }
}
