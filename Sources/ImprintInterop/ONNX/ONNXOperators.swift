internal import ImprintNetwork

/// The conversions of ONNX operators that depend on the image (https://onnx.ai/onnx/operators).
enum ONNXOperators {
    typealias Operator = @Sendable (ONNXModel.Node, inout ONNXImporter) throws -> [SourceActivation]

    /// The conversions by operator type.
    static let all = windows.merging(activations) { $1 }.merging(arithmetic) { $1 }.merging(shapes) { $1 }

    private static func one(
        _ body: @escaping @Sendable (ONNXModel.Node, inout ONNXImporter) throws -> SourceActivation
    ) -> Operator {
        { node, importer in [try body(node, &importer)] }
    }

    private static func layer(_ make: @escaping @Sendable (ONNXModel.Node) -> any Layer) -> Operator {
        one { node, importer in
            try importer.assembler.add(make(node), named: node.name, to: [importer.activation(0, node)])
        }
    }

    /// Returns the conversion to a layer that requires a tensor in NCHW order.
    private static func imageLayer(_ make: @escaping @Sendable (ONNXModel.Node) -> any Layer) -> Operator {
        one { node, importer in
            let x = try importer.assembler.imageTensor(importer.activation(0, node), for: node.name)
            return try importer.assembler.add(make(node), named: node.name, to: [x])
        }
    }

    private static let windows: [String: Operator] = [
        "Conv": one { try $1.convolve($0) },
        "ConvTranspose": one { try $1.convolveTransposed($0) },
        "Gemm": one { try $1.gemm($0) },
        "MatMul": one { try $1.matrixProduct($0) },
        "BatchNormalization": one { try $1.normalize($0) },
        "LayerNormalization": one { try $1.normalizeLayer($0) },
        "MaxPool": one { try $1.pool($0, isMax: true) },
        "AveragePool": one { try $1.pool($0, isMax: false) },
        "GlobalAveragePool": imageLayer { _ in GlobalAveragePool() },
        "GlobalMaxPool": imageLayer { _ in GlobalMaxPool() },
        "LRN": imageLayer { node in
            LocalResponseNormalization(
                size: node.attributes["size"]?.integer ?? 0, alpha: node.attributes["alpha"]?.float ?? 1e-4,
                beta: node.attributes["beta"]?.float ?? 0.75, bias: node.attributes["bias"]?.float ?? 1)
        },
        "Pad": one { try $1.pad($0) },
        "Upsample": one { try $1.upsample($0) },
        "Resize": one { try $1.upsample($0) },
    ]

    private static let activations: [String: Operator] = [
        "Relu": layer { _ in ReLU() },
        "Sigmoid": layer { _ in Sigmoid() },
        "Tanh": layer { _ in Tanh() },
        "Softplus": layer { _ in Softplus() },
        "HardSwish": layer { _ in HardSwish() },
        "Gelu": one { try $1.gelu($0) },
        "Erf": layer { _ in Erf() },
        "LeakyRelu": layer { LeakyReLU(slope: $0.attributes["alpha"]?.float ?? 0.01) },
        "Elu": layer { ELU(alpha: $0.attributes["alpha"]?.float ?? 1) },
        "HardSigmoid": layer {
            HardSigmoid(slope: $0.attributes["alpha"]?.float ?? 0.2, offset: $0.attributes["beta"]?.float ?? 0.5)
        },
        "PRelu": one { try $1.parametricReLU($0) },
        "Clip": one { try $1.clip($0) },
        "Softmax": one { try $1.softmax($0) },
        "LogSoftmax": one { node, importer in
            let result = try importer.softmax(node)
            importer.assembler.recordLogSoftmax(of: result)
            return result
        },
        "Dropout": one { try $1.activation(0, $0) },
        "Identity": one { try $1.activation(0, $0) },
        "Cast": one { try $1.convert($0) },
    ]

    private static let arithmetic: [String: Operator] = [
        "Add": one { try $1.sum($0) },
        "Sum": one { try $1.sum($0) },
        "Mul": one { try $1.product($0) },
        "Sub": one { try $1.difference($0) },
        "Div": one { try $1.quotient($0) },
        "Neg": one { node, importer in
            try importer.assembler.multiply(
                importer.activation(0, node), by: Constant(shape: [], floats: [-1]), named: node.name)
        },
        "Max": one { try $1.maximum($0) },
        "Min": one { try $1.minimum($0) },
    ]

    private static let shapes: [String: Operator] = [
        "Reshape": one { try $1.reshape($0) },
        "Flatten": one { try $1.reshape($0) },
        "Squeeze": one { try $1.reshape($0) },
        "Unsqueeze": one { try $1.reshape($0) },
        "Transpose": one { try $1.transpose($0) },
        "Concat": one { try $1.concatenate($0) },
        "Split": { try $1.split($0) },
        "Slice": one { try $1.slice($0) },
        "Gather": one { try $1.gather($0) },
        "ReduceMean": one { try $1.mean($0) },
    ]
}
