import Foundation
import ImprintNetwork
import TestSupport
import Testing

/// The formula of values that Swift and Python compute identically: uniform values from a hash of the index, scaled and shifted.
struct ReferenceValues: Decodable, Sendable {
    let seed: UInt64
    let scale: Double
    let offset: Double
    var values: [Float]?

    func generate(_ count: Int) -> [Float] {
        (0..<count).map { Float(Self.uniform($0, seed) * scale + offset) }
    }

    static func uniform(_ index: Int, _ seed: UInt64) -> Double {
        var z = UInt64(index + 1) &* 0x9E37_79B9_7F4A_7C15 &+ seed &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        z ^= z >> 31
        return Double(z >> 40) * 0x1p-24 - 0.5
    }
}

/// The contents of layers.json.
struct PyTorchLayers: Decodable {
    struct LayerCase: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let batch: Int
        let frozen: [String]
        let network: Network
        let input: ReferenceValues
        let outputGradient: ReferenceValues
        let parameters: [String: ReferenceValues]
        let output: [Float]
        let inputGradient: [Float]
        let parameterGradients: [String: [Float]]
        let statistics: [String: [Float]]

        var testDescription: String { name }
    }

    struct LossCase: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let labels: [Int]
        let options: SoftmaxCrossEntropy
        let logits: ReferenceValues
        let loss: Float
        let correct: Int
        let gradient: [Float]

        var testDescription: String { name }
    }

    struct SGDCase: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let network: Network
        let options: SGDFixture
        let factors: [Float]
        let parameters: [String: ReferenceValues]
        let gradients: [[String: ReferenceValues]]
        let gradientNorms: [Float]
        let result: [String: [Float]]

        var testDescription: String { name }
    }

    let formula: [ReferenceValues]
    let layers: [LayerCase]
    let losses: [LossCase]
    let sgd: [SGDCase]
}

/// The contents of logonet_steps.json.
struct PyTorchTraining: Decodable {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        let inputSize: Int
        let batch: Int
        let float64: Run

        var testDescription: String { "\(inputSize) px, batch \(batch)" }
    }

    struct Run: Decodable, Sendable {
        let losses: [Double]
        let gradientNorms: [String: Double]
    }

    struct Tensor: Decodable {
        let seed: UInt64
        let shape: [Int]
        let scale: Double
        let offset: Double
    }

    struct Images: Decodable {
        let firstSeed: UInt64
        let scale: Double
        let labelOffset: Double

        /// Returns the images of one step; red is brighter if the label is 1.
        func values(step: Int, labels: [Int], countPerImage: Int) -> [Float] {
            (0..<(labels.count * countPerImage)).map { index in
                let red = index % 3 == 0 ? labelOffset * Double(labels[index / countPerImage]) : 0
                return Float(ReferenceValues.uniform(index, firstSeed + UInt64(step)) * scale + red)
            }
        }
    }

    let network: String
    let options: SGDFixture
    let steps: Int
    let parameters: [String: Tensor]
    let images: Images
    let cases: [Case]
}

/// Reads a fixture that is part of the repository.
func loadFixture<Fixture: Decodable>(_ name: String) -> Fixture {
    let url = packageFolder.appending(path: "Tests/ImprintNetworkTests/Fixtures/\(name)")
    do {
        return try JSONDecoder().decode(Fixture.self, from: Data(contentsOf: url))
    } catch {
        fatalError("\(url.path) cannot be read: \(error). Create it again with the script in its folder.")
    }
}

/// Expects that values differ by at most `tolerance` times the largest expected magnitude.
func expectClose(
    _ actual: some Sequence<Float>, _ expected: [Float], _ name: String, tolerance: Float = 2e-5,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let actual = Array(actual)
    guard actual.count == expected.count else {
        Issue.record("\(name): \(actual.count) values, expected \(expected.count)", sourceLocation: sourceLocation)
        return
    }
    let scale = expected.reduce(Float(1e-3)) { max($0, abs($1)) }
    // NaN fails this comparison.
    guard let index = expected.indices.first(where: { !(abs(actual[$0] - expected[$0]) <= tolerance * scale) }) else {
        return
    }
    Issue.record(
        "\(name)[\(index)] is \(actual[index]), expected \(expected[index]) ± \(tolerance * scale)",
        sourceLocation: sourceLocation)
}

/// The hyperparameters of SGD in a fixture, with its learning rate.
struct SGDFixture: Decodable {
    let sgd: SGD.Options
    let learningRate: Float

    private enum CodingKeys: String, CodingKey { case learningRate }

    init(from decoder: any Decoder) throws {
        sgd = try SGD.Options(from: decoder)
        learningRate = try decoder.container(keyedBy: CodingKeys.self).decode(Float.self, forKey: .learningRate)
    }
}
