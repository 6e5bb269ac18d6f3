internal import ImprintNetwork

/// The conversions of Core ML layers (NeuralNetwork.proto, https://github.com/apple/coremltools).
enum CoreMLLayers {
    typealias Operation = @Sendable (CoreMLModel.Layer, CoreMLRecord, inout CoreMLGraph) throws -> [SourceTensor]

    /// The conversions by the field number of the layer type.
    static let all = windows.merging(activations) { $1 }.merging(arithmetic) { $1 }.merging(shapes) { $1 }
        .merging(tensors) { $1 }

    private static func one(
        _ body: @escaping @Sendable (CoreMLModel.Layer, CoreMLRecord, inout CoreMLGraph) throws -> SourceActivation
    ) -> Operation {
        { layer, record, graph in [.activation(try body(layer, record, &graph))] }
    }

    private static let windows: [Int: Operation] = [
        100: one { try $2.convolve($0, $1) },
        120: one { try $2.pool($0, $1) },
        140: one { try $2.innerProduct($0, $1) },
        160: one { try $2.normalize($0, $1) },
        180: one { try $2.normalizeLocally($0, $1) },
        200: one { try $2.pad($0, $1) },
        210: one { try $2.upsample($0, $1) },
        1045: one { try $2.matrixProduct($0, $1) },
        1155: one { try $2.padAll($0, $1) },
    ]

    private static let activations: [Int: Operation] = [
        130: one { try $2.activate($0, $1) },
        175: one { layer, _, graph in
            let x = try graph.activation(layer)
            return try graph.assembler.softmax(x, along: -min(3, x.axes.count), named: layer.name)
        },
        220: one { try $2.compute($0, $1) },
        600: one { layer, _, graph in try graph.activation(layer) },
        660: one { try $2.clip($0, $1) },
        760: one { layer, _, graph in
            try graph.assembler.add(Tanh(), named: layer.name, to: [graph.activation(layer)])
        },
        950: one { layer, record, graph in
            try graph.assembler.softmax(graph.activation(layer), along: record.integer(1), named: layer.name)
        },
        1460: one { try $2.clampedReLU($0, $1) },
    ]

    private static let arithmetic: [Int: Operation] = [
        230: one { try $2.sum($0, $1.float(1)) },
        231: one { try $2.product($0, $1.float(1)) },
        240: one { layer, _, graph in try graph.average(layer) },
        245: one { try $2.scale($0, $1) },
        250: one { try $2.bias($0, $1) },
        260: one { layer, _, graph in try graph.maximum(layer) },
        870: one { layer, _, graph in try graph.minimum(layer) },
        875: one { layer, _, graph in try graph.maximum(layer) },
        880: one { layer, _, graph in try graph.sum(layer) },
        890: one { layer, _, graph in try graph.quotient(layer) },
        900: one { layer, _, graph in try graph.product(layer) },
        905: one { layer, _, graph in try graph.difference(layer) },
        290: { [.constant(try $2.constant($0, $1))] },
        1070: { [.constant(try $2.constant($0, $1))] },
    ]

    private static let shapes: [Int: Operation] = [
        300: one { try $2.reshape($0, $1) },
        301: one { try $2.flatten($0, $1) },
        310: one { try $2.transpose($0, $1, hasSequence: true) },
        985: one { try $2.transpose($0, $1, hasSequence: false) },
        1120: one { try $2.squeeze($0, $1) },
        1125: one { try $2.expand($0, $1) },
        1130: one { try $2.flattenTo2D($0, $1) },
        1140: one { try $2.reshapeToRank($0, $1) },
        1150: one { try $2.reshapeToRank($0, $1) },
    ]

    private static let tensors: [Int: Operation] = [
        280: one { try $2.reduce($0, $1) },
        1260: one { try $2.reduce($0, $1, .maximum) },
        1270: one { try $2.reduce($0, $1, .sum) },
        1280: one { try $2.reduce($0, $1, .mean) },
        320: one { layer, record, graph in
            guard try !record.bool(100) else { throw graph.unsupported(layer, "of sequences, expected channels") }
            return try graph.concatenate(layer, along: -3)
        },
        980: one { layer, record, graph in
            guard try !record.bool(2) else { throw graph.unsupported(layer, "with interleaved inputs") }
            return try graph.concatenate(layer, along: record.integer(1))
        },
        330: { layer, record, graph in
            try graph.split(layer, along: -3, lengths: [], count: record.integer(1)).map(SourceTensor.activation)
        },
        350: one { try $2.slice($0, $1) },
        975: { layer, record, graph in
            try graph.split(
                layer, along: record.integer(1), lengths: record.integers(3), count: record.integer(2)
            ).map(SourceTensor.activation)
        },
    ]
}
