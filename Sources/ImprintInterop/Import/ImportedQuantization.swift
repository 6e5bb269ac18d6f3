internal import ImprintNetwork

/// The quantization in a file of another framework, by the names of nodes of the imported network.
struct ImportedQuantization {
    /// A convolution or dense layer whose weights are integers.
    struct Layer {
        /// The scale of each output channel: the layer computes Σ scale · weight · (input − zero point) over integers.
        var scales: [Float]
        /// The scale of the layer's input in the file; nil if its channels have different scales.
        var inputScale: Float?
    }

    /// The quantization of the outputs of nodes; `Network.inputName` is the network's input.
    private(set) var activations: [String: Quantization.Activation] = [:]
    private(set) var layers: [String: Layer] = [:]
    /// All layers with integer weights, also those whose input is not quantized.
    private var integerLayers: Set<String> = []

    /// Adds the quantization of the output of a node; the first one counts.
    mutating func add(_ activation: Quantization.Activation, of node: String) {
        if activations[node] == nil { activations[node] = activation }
    }

    /// Adds a layer with integer weights; nil if its input is not quantized.
    mutating func add(_ layer: Layer?, of node: String) {
        layers[node] = layer
        integerLayers.insert(node)
    }

    /// Copies the layer with a name to the node that replaces it.
    mutating func replace(_ node: String, by other: String) {
        if node != other, integerLayers.contains(node) { add(layers[node], of: other) }
    }

    /// Gives the network's input the quantization of the normalized image, if the graph of the file normalizes the image and the network does not.
    mutating func removeNormalization(of graph: Network, for network: Network) {
        let names = Set(network.nodes.map(\.name))
        var image = Network.inputName
        for node in graph.nodes where node.layer is Affine && node.inputs == [image] && !names.contains(node.name) {
            image = node.name
        }
        guard image != Network.inputName else { return }
        activations[Network.inputName] = activations.removeValue(forKey: image)
    }

    /// Quantizes the layers of a network whose weights are integers, if the quantization of all their inputs is known.
    ///
    /// - Parameter assembler: The assembler of the network, which limits the memory.
    /// - Returns: A note if some layers with integer weights compute in float32.
    func apply(
        to parameters: Parameters, of network: Network, in assembler: inout NetworkAssembler
    ) throws(ImportError.Problem) -> String? {
        let names = network.nodes.filter { $0.layer is Convolution || $0.layer is Dense }.map(\.name)
        let count = integerLayers.intersection(names).count
        let found = try layers.isEmpty ? 0 : quantize(parameters, of: network, in: &assembler)
        return found < count
            ? "\(found) of \(count) layers with 8-bit weights compute in int8, the others in float32." : nil
    }

    /// - Returns: The number of layers that compute in int8.
    private func quantize(
        _ parameters: Parameters, of network: Network, in assembler: inout NetworkAssembler
    ) throws(ImportError.Problem) -> Int {
        let indices = Dictionary(uniqueKeysWithValues: network.nodes.enumerated().map { ($1.name, $0) })
        var result = Quantization(activations: try inputs(of: network, indices, in: &assembler))
        for (name, layer) in layers {
            guard let index = indices[name], let entry = parameters.layout["\(name).weight"] else { continue }
            let groups: Int
            switch network.nodes[index].layer {
            case let convolution as Convolution: groups = convolution.groups
            case is Dense: groups = 1
            default: continue
            }
            guard entry.parameter.shape.last == layer.scales.count else { continue }
            result.weights[name] = Quantization.Weights(
                scales: layer.scales, inputScales: [layer.inputScale ?? 1], isDepthwise: groups > 1)
        }
        let integers = IntegerActivations(result, of: network)
        var weights: [String: Quantization.Weights] = [:]
        for (index, activation) in integers.inputs {
            let name = network.nodes[index].name
            guard var scaled = result.weights[name], let layer = layers[name] else { continue }
            scaled.inputScales = activation.scales
            if let scale = activation.uniform?.scale, let inputScale = layer.inputScale, scale != inputScale {
                scaled.scales = scaled.scales.map { $0 * (scale / inputScale) }
            }
            if snapWeights(of: name, in: parameters, to: scaled) { weights[name] = scaled }
        }
        guard !weights.isEmpty else { return 0 }
        result.weights = weights
        // Without the layers that have other weights, fewer activations are integers.
        let used = IntegerActivations(result, of: network)
        let names = Set(used.quantizations.keys.map { $0 < 0 ? Network.inputName : network.nodes[$0].name })
        result.activations = result.activations.filter { name, _ in
            // These have the quantization of their inputs.
            let layer = indices[name].map { network.nodes[$0].layer }
            return names.contains(name) && !(layer is Flatten || layer is Dropout || layer is Concat)
        }
        parameters.quantization = result
        return used.inputs.count
    }

    /// Replaces weights by the dequantized values of the closest integers.
    /// - Returns: false, without a change, if the weights are not close to these values.
    private func snapWeights(
        of node: String, in parameters: Parameters, to scales: Quantization.Weights
    ) -> Bool {
        guard let entry = parameters.layout["\(node).weight"] else { return false }
        let shape = entry.parameter.shape
        let expected = scales.isDepthwise ? shape[shape.count - 1] : shape[shape.count - 2]
        guard scales.inputScales.count == expected, scales.scales.allSatisfy(\.isFinite) else { return false }
        return parameters.withValues(of: entry) { values in
            var rounded = scales.integers(UnsafeBufferPointer(values)).map(Float.init)
            let outputScales = scales.scales
            let isRounded = rounded.withUnsafeMutableBufferPointer { rounded in
                for index in rounded.indices { rounded[index] *= outputScales[index % outputScales.count] }
                scales.divideByInputScales(rounded)
                // The tolerance is far below half a scale, and far above rounding errors.
                return rounded.indices.allSatisfy { index in
                    abs(rounded[index] - values[index]) <= 1e-3 * max(abs(rounded[index]), abs(values[index]))
                }
            }
            if isRounded { _ = values.update(fromContentsOf: rounded) }
            return isRounded
        }
    }

    /// Returns the quantization of activations.
    ///
    /// An operation that only moves values has the quantization of its input. Where the file only quantizes its output, or nothing else reads its
    /// input, the input gets the quantization of the output.
    private func inputs(
        of network: Network, _ indices: [String: Int], in assembler: inout NetworkAssembler
    ) throws(ImportError.Problem) -> [String: Quantization.Activation] {
        var result = activations
        var readers: [String: Int] = [:]
        for name in network.nodes.flatMap(\.inputs) { readers[name, default: 0] += 1 }
        for (index, node) in network.nodes.enumerated().reversed() {
            switch node.layer {
            case is MaxPool, is Flatten, is Dropout, is Concat: break
            default: continue
            }
            guard index > 0, let output = result[node.name], let (scale, zeroPoint) = output.uniform else { continue }
            for input in node.inputs where result[input] == nil || readers[input] == 1 {
                let channels = indices[input].map { network.shapes[$0].channels } ?? network.input.channels
                guard channels != output.scales.count else {
                    result[input] = output
                    continue
                }
                try assembler.reserve(channels * 8, for: node.name)
                result[input] = Quantization.Activation(
                    scales: Array(repeating: scale, count: channels),
                    zeroPoints: Array(repeating: zeroPoint, count: channels))
            }
        }
        return result
    }
}
