internal import ImprintNetwork

/// Formats the layers of a network, and their totals, as a table.
enum LayerTable {
    static func text(_ network: Network.Overview) -> String {
        var rows = [["layer", "kind", "output", "parameters", "MFLOP"]]
        rows += network.layers.map { layer in
            [
                // Imported models have long layer names; the table fits into a terminal.
                TextTable.cut(visible(layer.name), to: 44), layer.kind, layer.output.description,
                TextTable.orDash(layer.parameterCount, \.description),
                TextTable.orDash(layer.multiplications, TextTable.megaflops),
            ]
        }
        return """
            \(TextTable.aligned(rows, leading: 3))

            total        \(network.parameterCount) parameters, \(TextTable.gigaflops(network.multiplications)) GFLOP per image
            """
    }

    static func memory(_ memory: Network.PredictionMemory) -> String {
        "\(TextTable.bytes(memory.byteCount)) to predict: parameters \(TextTable.bytes(memory.parameterByteCount)), "
            + "packed weights \(TextTable.bytes(memory.transformedWeightsByteCount)), activations "
            + TextTable.bytes(memory.arenaByteCount)
    }
}
