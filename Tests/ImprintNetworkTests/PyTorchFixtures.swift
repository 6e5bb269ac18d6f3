import Foundation
import ImprintNetwork
import TestSupport
import Testing

/// Numbers that this side and Python's compute alike: uniform ones from a hash of their place, scaled and shifted.
struct ReferenceNumbers: Decodable, Sendable {
    let seed: UInt64
    let scale: Double
    let offset: Double
    var values: [Float]?

    func numbers(_ count: Int) -> [Float] {
        (0..<count).map { Float(Self.uniform($0, seed) * scale + offset) }
    }

    static func uniform(_ place: Int, _ seed: UInt64) -> Double {
        var z = UInt64(place + 1) &* 0x9E37_79B9_7F4A_7C15 &+ seed &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        z ^= z >> 31
        return Double(z >> 40) * 0x1p-24 - 0.5
    }
}

/// layers.json.
struct PyTorchLayers: Decodable {
    struct LayerCase: Decodable, Sendable, CustomTestStringConvertible {
        let name: String
        let batch: Int
        let frozen: [String]
        let network: Network
        let input: ReferenceNumbers
        let outputGradient: ReferenceNumbers
        let parameters: [String: ReferenceNumbers]
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
        let logits: ReferenceNumbers
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
        let parameters: [String: ReferenceNumbers]
        let gradients: [[String: ReferenceNumbers]]
        let gradientNorms: [Float]
        let result: [String: [Float]]

        var testDescription: String { name }
    }

    let formula: [ReferenceNumbers]
    let layers: [LayerCase]
    let losses: [LossCase]
    let sgd: [SGDCase]
}

/// logonet_steps.json.
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

        /// The images of one step: red is brighter where the label is 1.
        func values(step: Int, labels: [Int], countPerImage: Int) -> [Float] {
            (0..<(labels.count * countPerImage)).map { place in
                let red = place % 3 == 0 ? labelOffset * Double(labels[place / countPerImage]) : 0
                return Float(ReferenceNumbers.uniform(place, firstSeed + UInt64(step)) * scale + red)
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
        fatalError("\(url.path) cannot be read: \(error); make it again with the script beside it")
    }
}

/// Checks that no number is further from what is expected than `tolerance` times the largest of them.
func expectClose(
    _ actual: some Sequence<Float>, _ expected: [Float], _ what: String, tolerance: Float = 2e-5,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    let actual = Array(actual)
    guard actual.count == expected.count else {
        Issue.record("\(what): \(actual.count) numbers, expected \(expected.count)", sourceLocation: sourceLocation)
        return
    }
    let scale = expected.reduce(Float(1e-3)) { max($0, abs($1)) }
    // Written so that NaN fails.
    guard let place = expected.indices.first(where: { !(abs(actual[$0] - expected[$0]) <= tolerance * scale) }) else {
        return
    }
    Issue.record(
        "\(what)[\(place)] is \(actual[place]), expected \(expected[place]) ± \(tolerance * scale)",
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
