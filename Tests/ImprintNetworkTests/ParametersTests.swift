import Testing

@testable import ImprintNetwork

/// A layer with large parameters, for their initial values.
private struct Initialized: Layer {
    static let kind = "test.initialized"

    func outputShape(for inputs: [TensorShape]) throws(NetworkError) -> TensorShape { inputs[0] }

    func parameters(for inputs: [TensorShape]) -> [ParameterDescription] {
        let initializers: [(String, ParameterDescription.Initializer)] = [
            ("uniform", .uniform(-1...3)), ("normal", .normal(mean: 2, standardDeviation: 0.5)),
            ("he", .heNormal(fanIn: 8)), ("leCun", .leCunUniform(fanIn: 4)),
        ]
        return initializers.map { ParameterDescription(name: $0, shape: [100, 100], role: .weight, initializer: $1) }
    }

    func forward(_ context: LayerContext, batch: Int) {}
    func backward(_ context: LayerContext, batch: Int) {}
}

@Suite struct ParametersTests {
    private let network: Network
    private let parameters: Parameters

    init() throws {
        network = try Network.named("logonet", labels: 3, width: 0.25)
        parameters = try Parameters(network, seed: 4)
    }

    @Test("A copy has the same values in separate memory")
    func copy() throws {
        let copy = try parameters.copy()
        #expect(copy.layout == parameters.layout)
        for entry in parameters.layout.entries { #expect(copy[entry.name] == parameters[entry.name]) }
        copy["head.bias"] = [1, 2, 3]
        #expect(parameters["head.bias"] == [0, 0, 0])
    }

    @Test("Writing one tensor does not change the others")
    func write() throws {
        let before = try parameters.copy()
        for entry in parameters.layout.entries {
            parameters[entry.name] = [Float](repeating: .infinity, count: entry.parameter.count)
            for other in parameters.layout.entries where other != entry {
                #expect(parameters[other.name] == before[other.name], "\(other.name) after \(entry.name)")
            }
            parameters[entry.name] = before[entry.name]
        }
        #expect(parameters["nothing"] == nil)
    }

    @Test("Setting values by name removes the quantization, which fits only the old values")
    func setValues() throws {
        let before = try parameters.copy()
        parameters.quantization = Quantization()
        try parameters.setValues([1, 2, 3], of: "head.bias")
        #expect(parameters["head.bias"] == [1, 2, 3] && parameters.quantization == nil)
        #expect(parameters["head.weight"] == before["head.weight"])
    }

    @Test(
        "Values for an unknown parameter, or of another number, are an error",
        arguments: [
            ("head.scale", NetworkError.unknownParameter(name: "head.scale"), "no parameter \"head.scale\""),
            (
                "head.weight", NetworkError.parameterCount(name: "head.weight", found: 2, shape: [64, 3]),
                "\"head.weight\" has the shape 64x3: found 2 values, expected 192."
            ),
        ] as [(String, NetworkError, String)])
    func invalidValues(name: String, error: NetworkError, text: String) throws {
        let before = try parameters.copy()
        #expect(throws: error) { try parameters.setValues([1, 2], of: name) }
        #expect(error.description.contains(text))
        #expect(parameters["head.weight"] == before["head.weight"])
    }

    @Test("A plan computes with values that are set after it was compiled")
    func setValuesOfPlan() throws {
        let dense = try DensePlan()
        _ = dense.plan.input.update(from: [1, 1, 1] as [Float])
        dense.plan.forward(count: 1)
        #expect(Array(dense.plan.output) == [16, -20])
        try dense.parameters.setValues([0, 1, 0, 1, 0, 1], of: "dense.weight")
        dense.plan.forward(count: 1)
        #expect(Array(dense.plan.output) == [7, -5])
    }

    @Test("Initializing a tensor again gives its initial values")
    func draw() throws {
        let before = try parameters.copy()
        for name in ["conv2.weight", "head.weight", "norm1.scale"] {
            let entry = try #require(parameters.layout[name])
            parameters[name] = [Float](repeating: 9, count: entry.parameter.count)
            parameters.draw(entry, seed: 4)
            #expect(parameters[name] == before[name])
        }
    }

    @Test(
        "Random initial values have the mean, the variance and the range of their distribution",
        arguments: [
            ("uniform", 1, 16 / 12, -1...3), ("normal", 2, 0.25, -1...5), ("he", 0, 0.25, -3...3),
            ("leCun", 0, 1 / 12, -0.5...0.5),
        ] as [(String, Double, Double, ClosedRange<Float>)])
    func distributions(name: String, mean: Double, variance: Double, range: ClosedRange<Float>) throws {
        var builder = NetworkBuilder(name: "initialized", input: TensorShape(channels: 1))
        builder.add(Initialized(), named: "layer")
        let parameters = try Parameters(builder.network(), seed: 3)
        let values = try #require(parameters["layer.\(name)"])
        let foundMean = values.reduce(0.0) { $0 + Double($1) } / Double(values.count)
        let foundVariance =
            values.reduce(0.0) { $0 + (Double($1) - foundMean) * (Double($1) - foundMean) } / Double(values.count)
        // About four standard errors of 10,000 values.
        #expect(abs(foundMean - mean) < 0.04 * variance.squareRoot())
        #expect(abs(foundVariance / variance - 1) < 0.06)
        #expect(values.allSatisfy { range.contains($0) })
    }

    @Test("Batch norms are initialized as identities, biases with 0, dense weights within 1 / √inputs")
    func initialValues() throws {
        for (name, value) in [
            ("norm1.scale", 1), ("norm1.shift", 0), ("norm1.runningMean", 0), ("norm1.runningVariance", 1),
            ("head.bias", 0),
        ] as [(String, Float)] {
            #expect(parameters[name]?.allSatisfy { $0 == value } == true, "\(name)")
        }
        // The head reads 64 features.
        let weight = try #require(parameters["head.weight"])
        #expect(weight.count == 64 * 3)
        #expect(weight.allSatisfy { abs($0) <= 0.125 })
        #expect(weight.contains { abs($0) > 0.11 })
    }
}
