internal import ImprintModel
internal import ImprintNetwork

/// The tensors of a graph in the QDQ format, and the readers of each tensor.
struct ONNXQuantizedTensors {
    /// The scale and zero point of QuantizeLinear or DequantizeLinear, for a whole tensor or along an axis.
    struct Scales: Equatable {
        let scales: [Float]
        let zeroPoints: [Int]
        /// The axis of the scales; nil for a whole tensor.
        let axis: Int?
        /// The element type of the integers; nil if it is not known.
        let type: Int?

        /// The smallest and the largest integer of an element type of 8 or 16 bits; nil for other types.
        static func limits(of type: Int?) -> ClosedRange<Int>? {
            switch type {
            case 2: 0...255
            case 3: -128...127
            case 4: 0...65535
            case 5: -32768...32767
            default: nil
            }
        }

        /// The largest value of a tensor with one scale, if its smallest value is 0; nil for other tensors.
        var maximumAboveZero: Float? {
            guard axis == nil, let limits = Self.limits(of: type), zeroPoints[0] == limits.lowerBound else {
                return nil
            }
            return Float(limits.upperBound - limits.lowerBound) * scales[0]
        }

        /// The scale if it is the same everywhere.
        var uniformScale: Float? { scales.allSatisfy { $0 == scales[0] } ? scales[0] : nil }

        /// Whether DequantizeLinear with one of the scales inverts QuantizeLinear with the other, up to rounding.
        func isInverse(of other: Scales) -> Bool {
            let (one, two) = (broadcast(to: other), other.broadcast(to: self))
            return one.scales == two.scales && one.zeroPoints == two.zeroPoints
        }

        /// Returns as many scales as other scales have, along the same axis.
        func broadcast(to other: Scales) -> Scales {
            guard axis == nil, let axis = other.axis else { return self }
            return Scales(
                scales: Array(repeating: scales[0], count: other.scales.count),
                zeroPoints: Array(repeating: zeroPoints[0], count: other.scales.count), axis: axis, type: type)
        }

        /// Returns the scales of x for the scales of a quotient x / divisors.
        func multiplied(by divisors: [Float]) -> Scales? {
            guard axis == nil || axis == 1 && scales.count == divisors.count else { return nil }
            let scales = divisors.indices.map { divisors[$0] * self.scales[axis == nil ? 0 : $0] }
            guard scales.allSatisfy({ $0.isFinite && $0 > 0 }) else { return nil }
            return Scales(
                scales: scales, zeroPoints: divisors.indices.map { zeroPoints[axis == nil ? 0 : $0] }, axis: 1,
                type: type)
        }

        /// Returns the index of the scale for each element of a tensor.
        func index(of element: Int, in shape: [Int]) -> Int {
            guard let axis else { return 0 }
            return element / shape[(axis + 1)...].reduce(1, *) % scales.count
        }

        /// The quantization of one channel with unsigned integers; nil if the integers do not have 8 bits.
        func activation(_ index: Int) -> (scale: Float, zeroPoint: UInt8)? {
            guard type == 2 || type == 3 else { return nil }
            return UInt8(exactly: zeroPoints[index] + (type == 3 ? 128 : 0)).map { (scales[index], $0) }
        }
    }

    /// Integers of an activation.
    struct Integers {
        let activation: SourceActivation
        let scales: Scales
    }

    /// A constant tensor that is dequantized when a node reads it.
    struct Tensor {
        let tensor: ONNXModel.Tensor
        let scales: Scales

        func constant() throws -> Constant {
            let integers = try tensor.constant(isWeight: true)
            return Constant(shape: integers.shape, floats: scales.dequantized(integers.floats, integers.shape))
        }
    }

    /// The scale of the input of a layer.
    struct LayerInput {
        /// The scales of QuantizeLinear.
        let quantizeScales: Scales
        /// The scales of DequantizeLinear.
        let dequantizeScales: Scales
    }

    /// The outputs of QuantizeLinear, and of pass-through operators that read them.
    var integers: [String: Integers] = [:]
    /// The outputs of DequantizeLinear with a constant input.
    var tensors: [String: Tensor] = [:]
    /// The scales of the outputs of DequantizeLinear with a constant input.
    var weightScales: [String: Scales] = [:]
    /// The outputs of DequantizeLinear that are inputs of layers.
    var layerInputs: [String: LayerInput] = [:]
    /// The quotients of activations and constants along the second axis that only QuantizeLinear reads.
    var quotients: [String: (activation: SourceActivation, divisors: [Float])] = [:]
    /// The initializers for which memory has been allowed.
    var allowed: Set<String> = []
    /// The tensors that have a reader other than the first input of a convolution or dense layer.
    private(set) var otherInputs: Set<String>
    /// The tensors that have a reader other than QuantizeLinear.
    private(set) var unquantized: Set<String>

    static let operators: Set = ["QuantizeLinear", "DequantizeLinear"]
    /// The operators whose output has the quantization of their input, because each of its elements is an element of the input.
    static let passThroughOperators: Set = [
        "MaxPool", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity",
    ]

    init(_ graph: ONNXModel.Graph) {
        otherInputs = Set(graph.outputs.map(\.name))
        unquantized = otherInputs
        for node in graph.nodes {
            let isLayer = ["Conv", "Gemm", "MatMul"].contains(node.operation)
            otherInputs.formUnion(isLayer ? node.inputs.dropFirst() : node.inputs[...])
            unquantized.formUnion(node.operation == "QuantizeLinear" ? node.inputs.dropFirst() : node.inputs[...])
        }
    }
}

extension ONNXQuantizedTensors.Scales {
    /// Returns (integer − zero point) · scale for the integers of a tensor with this shape.
    func dequantized(_ integers: [Float], _ shape: [Int]) -> [Float] {
        let offsets = zeroPoints.map(Float.init)
        guard let axis else { return integers.map { ($0 - offsets[0]) * scales[0] } }
        let inner = shape[(axis + 1)...].reduce(1, *)
        return integers.indices.map { index in
            let channel = index / inner % scales.count
            return (integers[index] - offsets[channel]) * scales[channel]
        }
    }

    /// Returns value / scale + zero point for the values of a tensor with this shape, rounded and limited to the integer type.
    func quantized(_ values: [Float], _ shape: [Int]) -> [Float] {
        let limits = Self.limits(of: type) ?? 0...255
        return values.indices.map { position in
            let channel = index(of: position, in: shape)
            let integer =
                (values[position] / scales[channel]).rounded(.toNearestOrEven) + Float(zeroPoints[channel])
            return min(max(integer, Float(limits.lowerBound)), Float(limits.upperBound))
        }
    }
}
