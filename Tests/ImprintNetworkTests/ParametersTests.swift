import Testing

@testable import ImprintNetwork

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
