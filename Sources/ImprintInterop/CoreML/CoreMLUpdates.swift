internal import ImprintModel

/// The training parameters with which Core ML trains a model's last layer on a device.
///
/// Sources: NeuralNetwork.proto, and the rules of UpdatableNeuralNetworkValidator.cpp in coremltools. It requires one
/// cross-entropy loss of a softmax and the label, and only layers with a gradient between the trainable layer and the softmax.
enum CoreMLUpdates {
    /// The first specification version with updatable models.
    static let version = 4

    /// Encodes the message NetworkUpdateParameters.
    ///
    /// - Parameters:
    ///   - layers: The network's layers, one of which is updatable.
    ///   - name: The name of the loss layer.
    ///   - target: The name of the label input.
    /// - Throws: `ExportError.Problem.notUpdatable`.
    static func message(
        of layers: CoreMLLayerWriter, loss name: String, target: String
    ) throws(ExportError.Problem) -> MessageBuilder {
        let input = try checkedSoftmax(layers.layers)
        var entropy = MessageBuilder()
        entropy.add(1, input)
        entropy.add(2, target)
        var loss = MessageBuilder()
        loss.add(1, name)
        loss.add(10, entropy)
        var descent = MessageBuilder()
        descent.add(1, number(0.01, in: 0...1))
        descent.add(2, count(16, in: 1...1024))
        descent.add(3, number(0.9, in: 0...1))
        var optimizer = MessageBuilder()
        optimizer.add(10, descent)
        var shuffles = MessageBuilder()
        shuffles.add(1, true)
        var message = MessageBuilder()
        message.add(1, loss)
        message.add(2, optimizer)
        message.add(3, count(10, in: 1...1000))
        message.add(10, shuffles)
        return message
    }

    /// Checks the layers between the loss and the trainable layer, and returns the name of the softmax.
    private static func checkedSoftmax(_ layers: [CoreMLLayerWriter.Layer]) throws(ExportError.Problem) -> String {
        guard layers.contains(where: \.isUpdatable) else {
            throw .notUpdatable(reason: "it has no dense layer and no convolution")
        }
        guard let softmax = layers.last, softmax.kind == .softmax else {
            throw .notUpdatable(reason: "it does not end in a softmax")
        }
        let byName = Dictionary(uniqueKeysWithValues: layers.map { ($0.name, $0) })
        var name = softmax.inputs[0]
        while let layer = byName[name], !layer.isUpdatable {
            guard hasGradient(layer) else {
                throw .notUpdatable(
                    reason:
                        "\"\(layer.name)\" is between the last dense layer or convolution and the softmax, where only "
                        + "flatten, pooling, batch normalization, ReLU, sigmoid and tanh are allowed")
            }
            name = layer.inputs[0]
        }
        guard byName[name] != nil else {
            throw .notUpdatable(reason: "the softmax does not read the last dense layer or convolution")
        }
        return softmax.name
    }

    private static func hasGradient(_ layer: CoreMLLayerWriter.Layer) -> Bool {
        switch layer.kind {
        case .convolution, .innerProduct, .flatten, .pooling, .batchNormalization: true
        case .activation: [.relu, .sigmoid, .tanh].contains(layer.activation)
        default: false
        }
    }

    /// Encodes the message DoubleParameter.
    private static func number(_ value: Double, in range: ClosedRange<Double>) -> MessageBuilder {
        parameter(value, in: range) { $0.add($1, $2) }
    }

    /// Encodes the message Int64Parameter.
    private static func count(_ value: Int, in range: ClosedRange<Int>) -> MessageBuilder {
        parameter(value, in: range) { $0.add($1, $2) }
    }

    private static func parameter<Value>(
        _ value: Value, in range: ClosedRange<Value>, add: (inout MessageBuilder, Int, Value) -> Void
    ) -> MessageBuilder {
        var (limits, message) = (MessageBuilder(), MessageBuilder())
        add(&limits, 1, range.lowerBound)
        add(&limits, 2, range.upperBound)
        add(&message, 1, value)
        message.add(10, limits)
        return message
    }
}
