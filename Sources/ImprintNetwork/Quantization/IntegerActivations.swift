/// The activations of a quantized network that predictions with `Precision.int8` read as 8-bit integers.
///
/// Nodes have their indices in `Network.nodes`; the network's input is at −1.
package struct IntegerActivations {
    /// The quantization of the input of each layer that computes in int8, by the layer's node.
    package private(set) var inputs: [Int: Quantization.Activation] = [:]
    /// The quantization of each activation that an operation reads as integers, by the node that computes it.
    package private(set) var quantizations: [Int: Quantization.Activation] = [:]
    private var readers: Set<[Int]> = []

    /// Finds the integers in the plan of a network.
    package init(_ quantization: Quantization, of network: Network) {
        var options = ExecutionPlan.Options(batchSize: 1)
        options.precision = .int8
        let layout = ParameterLayout(network)
        let known = Self.quantizations(
            OperatorFusion.operations(of: network, layout: layout, quantization: nil, options: options), quantization,
            network)
        let operations = OperatorFusion.operations(
            of: network, layout: layout, quantization: quantization, options: options)
        for operation in operations where !(operation.kernel is Quantize || operation.kernel is Dequantize) {
            for (index, source) in operation.sources.enumerated() where source >= 0 {
                let producer = operations[source]
                guard producer.isInteger || producer.kernel is Dequantize,
                    let node = producer.nodeIndices.last, let activation = known[node]
                else { continue }
                quantizations[node] = activation
                for reader in operation.nodeIndices { readers.insert([node, reader]) }
                if index == 0, operation.kernel is QuantizedConvolution {
                    inputs[operation.nodeIndices[0]] = activation
                }
            }
        }
    }

    /// Whether a node reads the integers of an activation, or the numbers for which they stand.
    package func isInteger(_ activation: Int, for reader: Int) -> Bool { readers.contains([activation, reader]) }

    /// Returns the quantization of the output of each operation, as far as it is known, by the operation's last node.
    private static func quantizations(
        _ operations: [PlanOperation], _ quantization: Quantization, _ network: Network
    ) -> [Int: Quantization.Activation] {
        var result: [Int: Quantization.Activation] = [:]
        for (index, activation) in QuantizedOperations.activations(of: operations, in: network, quantization) {
            guard let node = index < 0 ? -1 : operations[index].nodeIndices.last else { continue }
            result[node] = activation
        }
        return result
    }
}

extension Quantization.Activation {
    /// The scale and the zero point of all channels; nil if the channels differ.
    package var uniform: (scale: Float, zeroPoint: UInt8)? {
        guard let scale = scales.first, let zeroPoint = zeroPoints.first, scales.allSatisfy({ $0 == scale }),
            zeroPoints.allSatisfy({ $0 == zeroPoint })
        else { return nil }
        return (scale, zeroPoint)
    }
}
