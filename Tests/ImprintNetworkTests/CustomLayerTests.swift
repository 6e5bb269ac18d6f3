import Testing

@testable import ImprintNetwork

/// A layer with any output and any parameters.
private struct AnyLayer: Layer {
    static let kind = "test.any"
    var output = TensorShape(channels: 2)
    var parameterNames: [String] = []
    var parameterShape = [2]

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { output }

    func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        parameterNames.map {
            ParameterDescription(name: $0, shape: parameterShape, role: .weight, initializer: .constant(1))
        }
    }

    func forward(_ context: LayerContext, batch: Int) {}
    func backward(_ context: LayerContext, batch: Int) {}
}

@Suite("Descriptions of custom layers") struct CustomLayerTests {
    private func network(_ layer: AnyLayer) throws -> Network {
        let nodes = [
            Network.Node(name: "x", layer: layer, inputs: ["input"]),
            Network.Node(name: "last", layer: ReLU(), inputs: ["x"]),
        ]
        return try Network(name: "custom", input: TensorShape(channels: 3), nodes: nodes)
    }

    /// Expects the error for a property of the layer.
    private func expectError(_ layer: AnyLayer, _ property: String, found: String, expected: String) {
        let error = NetworkError.inNode(
            "x", .invalidProperty(layer: "test.any", property: property, found: found, expected: expected))
        #expect(throws: error) { try network(layer) }
    }

    @Test("An output or a parameter without values is an error", arguments: [0, -1, Int.min])
    func sizes(size: Int) {
        let expected = "positive sizes and at most 2147483647 values in total"
        expectError(
            AnyLayer(output: TensorShape(height: 1, width: size, channels: 2)), "output", found: "[1, \(size), 2]",
            expected: expected)
        expectError(
            AnyLayer(parameterNames: ["gain"], parameterShape: [size, -1]), "gain", found: "[\(size), -1]",
            expected: expected)
    }

    @Test("A node without inputs is an error, even if its layer does not reject it")
    func noInputs() {
        let nodes = [
            Network.Node(name: "x", layer: AnyLayer(), inputs: []),
            Network.Node(name: "last", layer: AddLayer(), inputs: ["x", "input"]),
        ]
        let error = NetworkError.inNode(
            "x", .inputCount(layer: "test.any", expected: "at least one input", found: 0))
        #expect(throws: error) {
            try Network(name: "custom", input: TensorShape(channels: 2), nodes: nodes)
        }
    }

    @Test("Parameters of a layer have unique names without full stops, which are the names of stored scales")
    func names() throws {
        expectError(
            AnyLayer(parameterNames: ["gain", "shift", "gain"]), "the name of a parameter", found: "\"gain\"",
            expected: "another name for each parameter")
        for name in ["weight.factor", ".", ""] {
            expectError(
                AnyLayer(parameterNames: ["weight", name]), "the name of a parameter", found: "\"\(name)\"",
                expected: "a name without full stops")
        }
        #expect(try ParameterLayout(network(AnyLayer(parameterNames: ["gain", "shift"]))).count == 4)
    }

    @Test("The frozen nodes of a training plan must be nodes of the network")
    func frozen() throws {
        let network = try network(AnyLayer(parameterNames: ["gain"]))
        func plan(_ frozen: Set<String>, mode: ExecutionPlan.Mode = .training) throws -> ExecutionPlan {
            try ExecutionPlan(
                network, parameters: Parameters(network, seed: 1),
                options: ExecutionPlan.Options(batchSize: 1, mode: mode, frozen: frozen, inputGradient: true))
        }
        let error = NetworkError.invalidProperty(
            layer: "plan", property: "frozen", found: "\"conv1\", \"x.gain\"", expected: "names of nodes of the network"
        )
        #expect(throws: error) { try plan(["x", "x.gain", "conv1"]) }
        #expect(try plan(["x", "last"]).trainableRanges.isEmpty)
        #expect(try plan(["conv1"], mode: .prediction).options.frozen == ["conv1"])
    }
}
