import Foundation
import ImprintNetwork
import TestSupport
import Testing

@testable import ImprintInterop
@testable import ImprintModel

/// The outputs of classifiers that join several tensors.
@Suite struct ModelEndingTests {
    /// Returns a model whose output joins two tensors, made from the means of the channels.
    private func sample(_ make: (inout ONNXSample) -> Void) -> ONNXSample {
        var sample = ONNXSample()
        sample.opset = 13
        sample.node("GlobalAveragePool", ["image"])
        sample.node("Flatten", to: "means")
        make(&sample)
        sample.node("Concat", ["first", "second"], [.integer("axis", 1)])
        return sample
    }

    private func problem(of sample: ONNXSample) -> ImportError.Problem? {
        do {
            _ = try importModel(sample.bytes, ending: "onnx")
            return nil
        } catch {
            return (error as? ImportError)?.problem
        }
    }

    @Test("Joined sigmoids are independent confidences, and the network ends in one sigmoid")
    func joinedSigmoids() throws {
        let imported = try importModel(
            sample {
                $0.node("Sigmoid", ["means"], to: "first")
                $0.node("Relu", ["means"], to: "limited")
                $0.node("Sigmoid", ["limited"], to: "second")
            }.bytes, ending: "onnx")
        let model = imported.model
        #expect(model.head == .sigmoid)
        #expect(imported.notes.contains { $0.contains("each label has an independent confidence") })
        let layers = model.network.nodes.map(\.layer)
        #expect(layers.last is Sigmoid && layers.count(where: { $0 is Sigmoid }) == 1)
        #expect(!layers.contains { $0 is Softmax })
        let means: [Float] = [-1, 0.5, 2]
        let found = try model.prediction((0..<48).map { means[$0 % 3] })
        let expected: [Float] = (means + means.map { max($0, 0) }).map { 1 / (1 + exp(-$0)) }
        #expect(maximumDifference(found, expected) < 1e-5)
    }

    @Test(
        "A softmax or a sigmoid that is joined with other values is an error",
        arguments: [("Softmax", "Softmax"), ("Softmax", "Relu"), ("Softmax", "Sigmoid"), ("Sigmoid", "Relu")])
    func joinedWithOthers(first: String, second: String) {
        let problem = problem(
            of: sample {
                $0.node(first, ["means"], to: "first")
                $0.node(second, ["means"], to: "second")
            })
        guard case .unsuitableModel(let found, _, _)? = problem else {
            Issue.record("\(String(describing: problem))")
            return
        }
        #expect(found == "a model whose output joins the result of a \(first.lowercased()) with other values")
    }

    @Test("A feature map that joins scores and boxes is rejected as a detector") func detector() {
        var sample = ONNXSample()
        sample.node("Sigmoid", ["image"], to: "scores")
        sample.node("Concat", ["scores", "image"], [.integer("axis", 1)])
        #expect(problem(of: sample) == .notScores([1, 6, 4, 4]))
    }
}
