import Foundation
import ImprintNetwork
import Testing

@testable import ImprintCore
@testable import ImprintInterop
@testable import ImprintModel

/// Invalid and unsupported ONNX files, which the test writes field by field.
@Suite struct ONNXModelTests {
    private func tensor(_ name: String, _ shape: [Int], type: Int, _ data: WireField...) -> [WireField] {
        [.integers(1, shape), .integer(2, type), .text(8, name)] + data
    }

    private func node(_ kind: String, _ inputs: [String], _ attributes: [WireField] = []) -> WireField {
        .message(1, inputs.map { .text(1, $0) } + [.text(2, "out"), .text(3, "node"), .text(4, kind)] + attributes)
    }

    private func value(_ number: Int, _ name: String, _ shape: [Int]) -> WireField {
        let lengths = shape.map { WireField.message(1, [.integer(1, $0)]) }
        return .message(number, [.text(1, name), .message(2, [.message(1, [.integer(1, 1), .message(2, lengths)])])])
    }

    /// Returns the error of importing a model with a grey image of 2x2 pixels; empty if there is none.
    private func problem(
        of nodes: [WireField], _ initializers: [[WireField]] = [], image: [Int] = [1, 1, 2, 2], opset: Int? = 13
    ) throws -> String {
        let graph: [WireField] =
            nodes + [.text(2, "graph")] + initializers.map { .message(5, $0) } + [
                value(11, "image", image), value(12, "out", [1, 4]),
            ]
        let operators = opset.map { [WireField.message(8, [.integer(2, $0)])] } ?? []
        let bytes = WireField.encode([.integer(1, 8), .message(7, graph)] + operators)
        do {
            _ = try importModel(bytes, ending: "onnx")
            return ""
        } catch {
            return "\(error)"
        }
    }

    @Test("The opset must be supported")
    func opset() throws {
        let nodes = [node("Flatten", ["image"])]
        #expect(try problem(of: nodes) == "")
        for opset in [nil, 5, 999] {
            let text = try problem(of: nodes, opset: opset)
            #expect(text.contains("Expected an opset from 6 to 28"), "\(text)")
        }
    }

    @Test("Inputs that are not images are rejected with the reason")
    func image() throws {
        let nodes = [node("Flatten", ["image"])]
        for (shape, message) in [
            ([1, 4, 2, 2], "images with 4 channels"), ([1, 4], "has 2 axes"),
            ([1, 1, 0, 2], "Set the input size"), ([1, 1, 1 << 20, 2], "expected 1x1 to 16384x16384"),
        ] {
            let text = try problem(of: nodes, image: shape)
            #expect(text.contains(message), "\(text)")
        }
    }

    @Test(
        "Weights that do not match their shape are rejected by name",
        arguments: [
            ([4], 1, WireField.floats(4, [1, 2, 3]), "has 3 elements for the shape [4]"),
            ([4], 1, .bytes(9, [0, 0, 0]), "has 3 bytes for the shape [4], expected 16"),
            ([4], 10, .integers(5, [1, 2, 3, 4, 5]), "more than 4 elements"),
            ([-4], 1, .floats(4, [1]), "the shape [-4]"),
            ([1 << 33, 1 << 33], 1, .floats(4, [1]), "the shape [8589934592, 8589934592]"),
            ([1 << 20], 1, .floats(4, [1]), "has fewer than 1048576 elements"),
            ([4], 8, .text(6, "a"), "the element type 8"),
            ([1 << 17], 3, .bytes(9, [UInt8](repeating: 0, count: 1 << 17)), "131072 integers"),
        ] as [([Int], Int, WireField, String)])
    func weights(shape: [Int], type: Int, data: WireField, message: String) throws {
        let text = try problem(of: [node("Add", ["image", "weight"])], [tensor("weight", shape, type: type, data)])
        #expect(text.contains(#"the tensor "weight""#) || text.contains("elements for the shape"), "\(text)")
        #expect(text.contains(message), "\(text)")
    }

    @Test("Nodes with an undefined or missing input are rejected by name")
    func missing() throws {
        #expect(try problem(of: [node("Relu", ["undefined"])]).contains(#"node reads "undefined""#))
        #expect(try problem(of: [node("Conv", ["image"])]).contains("node (Conv) has no input 2"))
        let foreign = try problem(of: [
            .message(
                1, [.text(1, "image"), .text(2, "out"), .text(3, "node"), .text(4, "Gelu"), .text(7, "com.microsoft")])
        ])
        #expect(foreign.contains(#"com.microsoft.Gelu "node""#), "\(foreign)")
    }

    @Test("Resize is only supported if it repeats pixels")
    func resize() throws {
        func attribute(_ name: String, _ text: String) -> WireField {
            .message(5, [.text(1, name), .text(4, text), .integer(20, 3)])
        }
        let scales = tensor("scales", [4], type: 1, .floats(4, [1, 1, 3, 3]))
        func text(_ attributes: WireField...) throws -> String {
            try problem(of: [node("Resize", ["image", "", "scales"], attributes)], [scales])
        }
        #expect(
            try text().contains("one score for each label"), "the layer is supported, but the output is a feature map")
        #expect(try text(attribute("mode", "linear")).contains("expected nearest"))
        #expect(try text(attribute("coordinate_transformation_mode", "align_corners")).contains("repeat each pixel"))
        #expect(try text(attribute("nearest_mode", "ceil")).contains("repeat each pixel"))
        #expect(
            try text(attribute("coordinate_transformation_mode", "asymmetric")).contains("repeat each pixel"),
            "rounding repeats the first of three pixels only twice")
    }
}

/// Constant folding with extreme shapes.
@Suite struct ConstantArithmeticTests {
    @Test("A product of lengths that overflows is invalid, even if another length is 0")
    func products() {
        #expect(checkedProduct([]) == 1)
        #expect(checkedProduct([3, 0, 4]) == 0)
        #expect(checkedProduct([0, 1 << 40, 1 << 40]) == nil)
        #expect(checkedProduct([2, -1]) == nil)
        let empty = Constant(shape: [0, 1 << 62], floats: [])
        #expect([empty, empty].joined(along: 1, upTo: 1 << 16) == nil)
        #expect(empty.reshaped(to: [0, 1 << 62, 4]) == nil)
    }

    @Test("Transposing permutes the axes")
    func transposed() {
        let x = Constant(shape: [2, 3, 2], integers: Array(0..<12))
        #expect(x.transposed([2, 0, 1])?.shape == [2, 2, 3])
        #expect(x.transposed([2, 0, 1])?.integers == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11])
        #expect(x.transposed(nil)?.integers == [0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11])
        #expect(x.transposed([0, 0, 1]) == nil)
        #expect(Constant(shape: [], floats: [7]).transposed(nil)?.floats == [7])
    }

    @Test("Gathering selects slices along an axis, up to a limit")
    func gathered() {
        let x = Constant(shape: [2, 3], floats: [0, 1, 2, 3, 4, 5])
        #expect(x.gathered([2, -3], along: 1, shape: [2], upTo: 1 << 16)?.floats == [2, 0, 5, 3])
        #expect(x.gathered([1], along: 0, shape: [], upTo: 1 << 16)?.shape == [3])
        #expect(x.gathered([3], along: 1, shape: [1], upTo: 1 << 16) == nil)
        #expect(x.gathered(Array(repeating: 0, count: 1 << 16), along: 1, shape: [1 << 16], upTo: 1 << 16) == nil)
    }
}
