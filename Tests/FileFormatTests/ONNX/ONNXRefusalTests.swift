import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Valid ONNX graphs: large weights in Constant nodes are accepted, and no valid file is reported as damaged.
@Suite struct ONNXRefusalTests {
    private static func sample(_ make: (inout ONNXSample) -> Void) -> ONNXSample {
        var sample = ONNXSample()
        sample.opset = 13
        make(&sample)
        return sample
    }

    private func read(_ sample: ONNXSample) throws -> ModelFile {
        try importModel(sample.bytes, ending: "onnx").model
    }

    private func problem(of sample: ONNXSample) -> ImportError.Problem? {
        do {
            _ = try read(sample)
            return nil
        } catch {
            return (error as? ImportError)?.problem
        }
    }

    /// More elements than the limit for folded shapes: 1,400 x 3 x 4 x 4.
    private static let weight = ONNXSample.Tensor.floats(
        "w", [1400, 3, 4, 4], (0..<67_200).map { Float($0 % 37 - 18) / 64 })
    private static let factors = ONNXSample.Tensor.floats("f", [1400, 1, 1, 1], (0..<1400).map { Float($0 % 5) - 2 })

    /// Returns a graph with a convolution, whose weights "made" `make` computes.
    private static func convolution(_ make: (inout ONNXSample) -> Void) -> ONNXSample {
        sample {
            make(&$0)
            $0.node("Conv", ["image", "made"])
            $0.node("Flatten")
        }
    }

    @Test("Weights of any size can be Constant nodes, or be computed by constant folding")
    func largeConstants() throws {
        func weights(_ make: (inout ONNXSample) -> Void) throws -> [Float] {
            let model = try read(Self.convolution(make))
            let entry = try #require(model.parameters.layout.entries.first { $0.parameter.name == "weight" })
            return try #require(model.parameters[entry.name])
        }
        let plain = try weights {
            $0.initializers = [Self.weight]
            $0.node("Identity", ["w"], to: "made")
        }
        let constant = try weights { $0.node("Constant", [], [.tensor("value", Self.weight)], to: "made") }
        #expect(constant == plain)
        for inputs in [["w", "half"], ["half", "w"]] {
            let scaled = try weights {
                $0.initializers = [Self.weight, .floats("half", [], [0.5])]
                $0.node("Mul", inputs, to: "made")
            }
            #expect(scaled == plain.map { $0 / 2 })
        }
        let channels = try weights {
            $0.initializers = [Self.weight, Self.factors]
            $0.node("Mul", ["w", "f"], to: "product")
            $0.node("Sub", ["product", "w"], to: "made")
        }
        // The output channels are the fastest axis.
        #expect(channels == plain.indices.map { plain[$0] * (Float($0 % 1400 % 5) - 2) - plain[$0] })
    }

    @Test("A detector is rejected as one, with supported or unsupported operators")
    func detectors() {
        func detector(_ shape: [Int], _ operation: String) -> ONNXSample {
            Self.sample {
                $0.initializers = [.integers("shape", [3], shape)]
                $0.node("Reshape", ["image", "shape"])
                $0.node(operation)
            }
        }
        #expect(problem(of: detector([1, 3, 16], "Sigmoid")) == .notScores([1, 3, 16]))
        #expect(problem(of: detector([1, 1, 48], "Sigmoid")) == nil)
        var unknown = Self.sample { $0.node("NonMaxSuppression", ["image"], to: "boxes") }
        #expect(problem(of: unknown) == .unsupported([.init(operation: "NonMaxSuppression", node: "boxes")]))
        unknown.outputShape = [1, 84, 8400]
        #expect(problem(of: unknown) == .notScores([1, 84, 8400]))
    }

    @Test("A concatenation of boxes along an axis of pixels is not treated as channels")
    func joinedPixels() throws {
        let joined = Self.sample {
            $0.initializers = [.integers("shape", [3], [1, 3, 16])]
            $0.node("Reshape", ["image", "shape"], to: "a")
            $0.node("Concat", ["a", "a"], [.integer("axis", 2)], to: "both")
        }
        guard case .unsupported(let operations)? = problem(of: joined) else {
            Issue.record("expected another error")
            return
        }
        #expect(operations.map(\.operation) == ["Concat"])
    }

    @Test("The name of a graph may be in any encoding")
    func graphName() {
        let latin1 = Self.sample {
            $0.more = [.bytes(2, [0x6D, 0xF6, 0x64])]
            $0.node("Flatten")
        }
        #expect(problem(of: latin1) == nil)
    }

    @Test("A vector of slopes contains one for each channel in opset 6, and one for each column in opset 7")
    func slopes() throws {
        func sample(_ opset: Int) -> ONNXSample {
            Self.sample {
                $0.opset = opset
                $0.initializers = [.floats("slope", [3], [0.25, 0.5, 2])]
                $0.node("PRelu", ["image", "slope"])
                $0.node("GlobalAveragePool")
                $0.node("Flatten")
                $0.node("Sigmoid")
            }
        }
        let found = try read(sample(6)).prediction([Float](repeating: -1, count: 48))
        let expected: [Float] = [-0.25, -0.5, -2].map { 1 / (1 + exp(-$0)) }
        #expect(maximumDifference(found, expected) < 1e-5)
        guard case .unsupported(let operations)? = problem(of: sample(7)) else {
            Issue.record("expected another error")
            return
        }
        #expect(operations.map(\.operation) == ["PRelu"])
    }

    @Test("Errors name the unsupported operator, or the fixed batch size")
    func names() {
        let transposed = Self.sample {
            $0.node("Transpose", nil, [.integers("perm", [0, 3, 1, 2])])
            $0.node("GlobalAveragePool", nil, to: "pool")
        }
        guard case .unsupported(let operations)? = problem(of: transposed) else {
            Issue.record("expected another error")
            return
        }
        #expect(operations.map(\.operation) == ["GlobalAveragePool"])
        #expect(operations.map(\.node) == ["pool"])
        var batch = Self.sample {
            $0.initializers = [.integers("shape", [2], [8, 48])]
            $0.node("Reshape", ["image", "shape"])
        }
        batch.image = [8, 3, 4, 4]
        guard case .unsuitableModel(let found, _, _)? = problem(of: batch) else {
            Issue.record("expected another error")
            return
        }
        #expect(found.contains("batches of 8 images"))
    }
}
