internal import ImprintCore

extension Network {
    /// The layers of a network with their output shapes, parameters and multiply-accumulate operations.
    ///
    /// It corresponds to `torchinfo.summary` for PyTorch and to `Model.summary` of Keras. It lists the layers before operator fusion.
    public struct Summary: Hashable, Sendable, CustomStringConvertible {
        /// One layer of a network.
        public struct Layer: Hashable, Codable, Sendable {
            /// The node's name.
            public let name: String
            /// The kind of layer, such as "convolution".
            public let kind: String
            /// The names of the nodes that it reads; `Network.inputName` stands for the network's input.
            public let inputs: [String]
            /// The output shape for one image.
            public let output: TensorShape
            /// The number of trainable parameters, without the running statistics of batch normalization.
            public let parameterCount: Int
            /// The number of multiply-accumulate operations of a forward pass over one image by the layer's formula.
            ///
            /// It excludes normalizations, activation functions, pooling and sums of layers.
            public let multiplications: Int
        }

        /// The layers, in order of execution.
        public let layers: [Layer]
        /// The number of trainable parameters of the network.
        public let parameterCount: Int
        /// The number of multiply-accumulate operations of all layers for one image, at most `Int.max`.
        public let multiplications: Int

        fileprivate init(_ network: Network) {
            layers = network.nodes.enumerated().map { index, node in
                let inputs = network.inputShapes(of: index)
                return Layer(
                    name: node.name, kind: type(of: node.layer).kind, inputs: node.inputs,
                    output: network.shapes[index],
                    parameterCount: node.layer.parameters(for: inputs)
                        .reduce(0) { $0 + ($1.role == .statistic ? 0 : $1.count) },
                    multiplications: node.layer.multiplications(for: inputs))
            }
            parameterCount = layers.reduce(0) { $0 + $1.parameterCount }
            multiplications = saturatingSum(layers.map(\.multiplications))
        }

        /// A table with one line per layer, and the totals.
        ///
        /// The columns are the name, the kind, the output shape (height x width x channels), the number of trainable parameters and MFLOP: 10⁶
        /// floating-point operations, two for each multiply-accumulate operation. Long names are truncated, and control characters are
        /// escaped.
        public var description: String {
            var rows = [["layer", "kind", "output", "parameters", "MFLOP"]]
            rows += layers.map { layer in
                [
                    // Imported models have long layer names; the table fits into a terminal.
                    TextTable.cut(visible(layer.name), to: 44), layer.kind, layer.output.description,
                    TextTable.orDash(layer.parameterCount, \.description),
                    TextTable.orDash(layer.multiplications, TextTable.megaflops),
                ]
            }
            return """
                \(TextTable.aligned(rows, leading: 3))

                total        \(parameterCount) parameters, \(TextTable.gigaflops(multiplications)) GFLOP per image
                """
        }
    }

    /// Returns the layers of the network with their output shapes, parameters and multiply-accumulate operations.
    ///
    /// Print the summary to see it as a table. The shapes are those for an image of the shape `input`.
    public func summary() -> Summary { Summary(self) }
}

/// Returns the sum of non-negative counts, at most `Int.max`.
///
/// The description of a network may come from an untrusted file, so the sum may overflow.
func saturatingSum(_ counts: [Int]) -> Int {
    counts.reduce(0) { sum, count in
        let (result, overflow) = sum.addingReportingOverflow(count)
        return overflow ? .max : result
    }
}
