internal import ImprintModel

/// What tells Core ML how a device trains a model's last layer.
///
/// Source: NeuralNetwork.proto, and what UpdatableNeuralNetworkValidator.cpp of coremltools demands: one loss, cross-entropy, of a
/// softmax's result and the label; from there back to the layer that is trained nothing but kinds with a gradient.
enum CoreMLUpdates {
    /// The first version of the specification that has it.
    static let version = 4

    /// The message NetworkUpdateParameters.
    /// - Parameters:
    ///   - layers: The network's layers, of which one is marked.
    ///   - loss: A name for the loss.
    ///   - target: The name of the label that it is compared with.
    /// - Throws: `ExportError.Problem.notUpdatable`.
    static func message(
        of layers: CoreMLLayerWriter, loss name: String, target: String
    ) throws(ExportError.Problem) -> WrittenMessage {
        let input = try checkedSoftmax(layers.layers)
        var entropy = WrittenMessage()
        entropy.add(1, input)
        entropy.add(2, target)
        var loss = WrittenMessage()
        loss.add(1, name)
        loss.add(10, entropy)
        var descent = WrittenMessage()
        descent.add(1, number(0.01, in: 0...1))
        descent.add(2, count(16, in: 1...1024))
        descent.add(3, number(0.9, in: 0...1))
        var optimizer = WrittenMessage()
        optimizer.add(10, descent)
        var shuffles = WrittenMessage()
        shuffles.add(1, true)
        var message = WrittenMessage()
        message.add(1, loss)
        message.add(2, optimizer)
        message.add(3, count(10, in: 1...1000))
        message.add(10, shuffles)
        return message
    }

    /// Checks the way from the loss to the layer that is trained; gives the name of the softmax's result.
    private static func checkedSoftmax(_ layers: [CoreMLLayerWriter.Layer]) throws(ExportError.Problem) -> String {
        guard layers.contains(where: \.isUpdatable) else {
            throw .notUpdatable(reason: "there is no dense layer and no convolution")
        }
        guard let softmax = layers.last, softmax.kind == .softmax else {
            throw .notUpdatable(reason: "the network does not end in a softmax")
        }
        let byName = Dictionary(uniqueKeysWithValues: layers.map { ($0.name, $0) })
        var name = softmax.inputs[0]
        while let layer = byName[name], !layer.isUpdatable {
            guard hasGradient(layer) else {
                throw .notUpdatable(
                    reason:
                        "\"\(layer.name)\" stands between the last dense layer or convolution and the softmax, where only "
                        + "flatten, pools, batch normalisation, ReLU, sigmoid and tanh may be")
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

    /// The message DoubleParameter.
    private static func number(_ value: Double, in range: ClosedRange<Double>) -> WrittenMessage {
        parameter(value, in: range) { $0.add($1, $2) }
    }

    /// The message Int64Parameter.
    private static func count(_ value: Int, in range: ClosedRange<Int>) -> WrittenMessage {
        parameter(value, in: range) { $0.add($1, $2) }
    }

    private static func parameter<Value>(
        _ value: Value, in range: ClosedRange<Value>, add: (inout WrittenMessage, Int, Value) -> Void
    ) -> WrittenMessage {
        var (limits, message) = (WrittenMessage(), WrittenMessage())
        add(&limits, 1, range.lowerBound)
        add(&limits, 2, range.upperBound)
        add(&message, 1, value)
        message.add(10, limits)
        return message
    }
}
