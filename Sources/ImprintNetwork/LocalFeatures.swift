/// The part of a network that computes local features, which describe what an image shows around each position.
extension Network {
    /// Returns the part of the network that computes local features at two depths, concatenated along the channel axis.
    ///
    /// The features are those of the last and of the middle one of the narrow cuts (see `cuts(stride:)`): deeper features discriminate
    /// better, and shallower ones localize better. Narrow cuts have at most 1.5 times as many channels as the narrowest one.
    /// - Returns: The network, and the number of channels of each depth; nil if no node has such a feature map.
    package func localFeatures(stride: Int) throws(NetworkError) -> (network: Network, channels: [Int])? {
        guard let sized = withInput(multipleOf: stride) else { return nil }
        let allCuts = sized.cuts(stride: stride)
        let narrowest = allCuts.map { sized.shapes[$0].channels }.min() ?? 0
        let cuts = allCuts.filter { 2 * sized.shapes[$0].channels <= 3 * narrowest }
        guard let last = cuts.last else { return nil }
        let middle = cuts[(cuts.count - 1) / 2]
        let kept = Array(nodes[...last])
        let channels = [sized.shapes[middle].channels, sized.shapes[last].channels]
        guard middle != last else {
            return (try Network(name: name, input: sized.input, nodes: kept), [channels[1]])
        }
        let joined = kept.unusedName("features")
        let both = Node(name: joined, layer: Concat(), inputs: [nodes[middle].name, nodes[last].name])
        return (try Network(name: name, input: sized.input, nodes: kept + [both]), channels)
    }

    /// Returns the network for the next larger input whose height and width are multiples of `stride`; nil if it does not accept this input.
    ///
    /// At other sizes, the feature maps of strided layers are rounded.
    func withInput(multipleOf stride: Int) -> Network? {
        func multiple(_ length: Int) -> Int { (length + stride - 1) / stride * stride }
        let size = TensorShape(
            height: multiple(input.height), width: multiple(input.width), channels: input.channels)
        return size == input ? self : try? Network(name: name, input: size, nodes: nodes)
    }

    /// Returns the indices of the nodes at which the network can be cut to get feature maps with a stride of `stride` pixels.
    ///
    /// All nodes after a cut read only its node and each other. The size of the input must be a multiple of the stride.
    func cuts(stride: Int) -> [Int] {
        let (rows, columns) = (input.height / stride, input.width / stride)
        // The first node that each node and the nodes after it read.
        var firstSources = sources.map { $0.min() ?? -1 }
        for index in nodes.indices.dropLast().reversed() {
            firstSources[index] = min(firstSources[index], firstSources[index + 1])
        }
        return nodes.indices.dropLast().filter { index in
            let shape = shapes[index]
            return firstSources[index + 1] >= index && shape.height == rows && shape.width == columns
                && shape.pixels > 1
        }
    }
}
