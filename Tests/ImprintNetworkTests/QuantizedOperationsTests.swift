import Testing

@testable import ImprintNetwork

/// The quantizations of outputs whose operations only move values.
@Suite struct QuantizedOperationsTests {
    /// Returns the known quantizations of outputs, by the index of the operation.
    private func activations(_ network: Network, _ quantization: Quantization) -> [Int: Quantization.Activation] {
        let operations = OperatorFusion.operations(
            of: network, layout: ParameterLayout(network), quantization: nil,
            options: ExecutionPlan.Options(batchSize: 1))
        return QuantizedOperations.activations(of: operations, in: network, quantization)
    }

    /// Returns the quantization of an input with this number of channels.
    private func quantizedInput(channels: Int) -> Quantization {
        let activation = Quantization.Activation(
            scales: [Float](repeating: 0.5, count: channels), zeroPoints: [UInt8](repeating: 3, count: channels))
        return Quantization(activations: [Network.inputName: activation])
    }

    @Test("A flattened image has a quantization if a dense layer can read it in int8", arguments: [66_311, 66_312])
    func flattened(pixels: Int) throws {
        var builder = NetworkBuilder(name: "flat", input: TensorShape(height: pixels, width: 1, channels: 1))
        builder.add(Flatten())
        let known = activations(try builder.network(), quantizedInput(channels: 1))
        #expect(known.keys.sorted() == (pixels == 66_311 ? [-1, 0] : [-1]))
        if let scales = known[0]?.scales { #expect(scales.count == pixels) }
    }

    @Test("The quantizations of moved values have at most 2²² channels together")
    func total() throws {
        let channels = 1 << 15
        var builder = NetworkBuilder(name: "wide", input: TensorShape(channels: channels))
        let pairs = (0..<100).map { _ in builder.add(Concat(), to: [Network.inputName, Network.inputName]) }
        builder.add(AddLayer(), to: pairs)
        let known = activations(try builder.network(), quantizedInput(channels: channels))
        #expect(known.keys.sorted() == Array(-1..<64))
    }

    @Test("The plan of a small file does not allocate the quantizations of huge outputs")
    func hugeOutputs() throws {
        var builder = NetworkBuilder(name: "huge", input: TensorShape(height: 1 << 14, width: 1 << 14, channels: 1))
        let vectors = (0..<100).map { _ in builder.add(Flatten(), to: [Network.inputName]) }
        builder.add(AddLayer(), to: vectors)
        builder.add(SelectChannels(channels: [0, 1]))
        builder.add(Softmax())
        let network = try builder.network()
        let quantization = quantizedInput(channels: 1)
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = .int8
        let overview = ExecutionPlan.Overview(network, options: options, quantization: quantization)
        #expect(overview.layers.allSatisfy { $0.precision == .float32 })
        #expect(IntegerActivations(quantization, of: network).quantizations.isEmpty)
    }
}
