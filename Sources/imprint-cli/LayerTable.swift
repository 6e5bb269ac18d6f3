internal import ImprintNetwork

/// A network's layers as lines for people, and what they come to.
enum LayerTable {
    static func text(_ network: Network.Overview) -> String {
        var rows = [["layer", "kind", "output", "parameters", "MFLOP"]]
        rows += network.layers.map { layer in
            [
                // Other programs name layers at length; the table is to fit into a terminal.
                TextTable.cut(visible(layer.name), to: 44), layer.kind, layer.output.description,
                TextTable.orDash(layer.parameterCount, \.description),
                TextTable.orDash(layer.multiplications, TextTable.megaflops),
            ]
        }
        return """
            \(TextTable.aligned(rows, leading: 3))

            total        \(network.parameterCount) parameters, \(TextTable.gigaflops(network.multiplications)) GFLOP for one image
            """
    }

    static func memory(_ memory: Network.PredictionMemory) -> String {
        "\(TextTable.bytes(memory.byteCount)) to predict: parameters \(TextTable.bytes(memory.parameterByteCount)), "
            + "prepared \(TextTable.bytes(memory.transformedWeightsByteCount)), activations \(TextTable.bytes(memory.arenaByteCount))"
    }
}
