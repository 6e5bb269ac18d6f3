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
