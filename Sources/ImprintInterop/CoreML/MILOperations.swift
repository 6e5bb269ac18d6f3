internal import ImprintNetwork

/// The conversions of MIL operations that depend on the image (coremltools' MIL documentation).
enum MILOperations {
    typealias Compute = @Sendable (MILProgram.Operation, inout MILImporter) throws -> [SourceActivation]

    /// The conversions by operation type.
    static let all = windows.merging(activations) { $1 }.merging(tensors) { $1 }

    private static func one(
        _ body: @escaping @Sendable (MILProgram.Operation, inout MILImporter) throws -> SourceActivation
    ) -> Compute {
        { operation, importer in [try body(operation, &importer)] }
    }

    private static func layer(
        _ make: @escaping @Sendable (MILProgram.Operation, MILImporter) throws -> any Layer
    ) -> Compute {
        one { operation, importer in
            try importer.assembler.add(
                make(operation, importer), named: operation.name, to: [importer.activation("x", operation)])
        }
    }

    private static let windows: [String: Compute] = [
        "conv": one { try $1.convolve($0) },
        "batch_norm": one { try $1.normalize($0) },
        "layer_norm": one { try $1.normalizeLayer($0) },
        "linear": one { try $1.linear($0) },
        "matmul": one { try $1.matrixProduct($0) },
        "max_pool": one { try $1.pool($0, isMax: true) },
        "avg_pool": one { try $1.pool($0, isMax: false) },
        "pad": one { try $1.pad($0) },
        "upsample_nearest_neighbor": one { try $1.upsample($0) },
        "local_response_norm": one { try $1.normalizeLocally($0) },
    ]

    private static let activations: [String: Compute] = [
        "relu": layer { _, _ in ReLU() },
        "relu6": layer { _, _ in ReLU6() },
        "sigmoid": layer { _, _ in Sigmoid() },
        "tanh": layer { _, _ in Tanh() },
        "silu": layer { _, _ in Swish() },
        "softplus": layer { _, _ in Softplus() },
        "gelu": one { try $1.gelu($0) },
        "erf": layer { _, _ in Erf() },
        "leaky_relu": layer { LeakyReLU(slope: try $1.float("alpha", $0) ?? 0.01) },
        "elu": layer { ELU(alpha: try $1.float("alpha", $0) ?? 1) },
        "sigmoid_hard": layer {
            HardSigmoid(slope: try $1.float("alpha", $0) ?? 0.2, offset: try $1.float("beta", $0) ?? 0.5)
        },
        "prelu": one { try $1.slopes($0) },
        "clip": one { operation, importer in
            try importer.assembler.clip(
                importer.activation("x", operation), from: importer.float("alpha", operation) ?? -.infinity,
                to: importer.float("beta", operation) ?? .infinity, named: operation.name)
        },
        "clamped_relu": one { operation, importer in
            try importer.assembler.clampedReLU(
                importer.activation("x", operation), slope: importer.float("alpha", operation) ?? 0,
                atMost: importer.float("beta", operation) ?? .infinity, named: operation.name)
        },
        "linear_activation": one { operation, importer in
            try importer.assembler.linear(
                importer.activation("x", operation), importer.float("alpha", operation) ?? 1,
                importer.float("beta", operation) ?? 0, named: operation.name)
        },
        "softmax": one { operation, importer in
            try importer.assembler.softmax(
                importer.activation("x", operation), along: importer.integer("axis", operation) ?? -1,
                named: operation.name)
        },
        "identity": one { try $1.activation("x", $0) },
        "cast": one { try $1.cast($0) },
    ]

    private static let tensors: [String: Compute] = [
        "add": one { try $1.sum($0) },
        "mul": one { try $1.product($0) },
        "sub": one { operation, importer in
            try importer.assembler.difference(
                importer.tensor("x", operation), importer.tensor("y", operation), named: operation.name)
        },
        "real_div": one { operation, importer in
            try importer.assembler.quotient(
                importer.tensor("x", operation), importer.tensor("y", operation), named: operation.name)
        },
        "maximum": one { try $1.limit($0, fromBelow: true) },
        "minimum": one { try $1.limit($0, fromBelow: false) },
        "concat": one { try $1.concatenate($0) },
        "split": { try $1.split($0) },
        "slice_by_index": one { try $1.slice($0) },
        "transpose": one { try $1.transpose($0) },
        "reshape": one { try $1.reshape($0) },
        "flatten2d": one { try $1.flatten($0) },
        "squeeze": one { try $1.squeeze($0) },
        "expand_dims": one { try $1.expand($0) },
        "reduce_mean": one { try $1.reduce($0, .mean) },
        "reduce_sum": one { try $1.reduce($0, .sum) },
        "reduce_max": one { try $1.reduce($0, .maximum) },
    ]
}
