/// The part of a network that computes local features, which describe what an image shows around each position.
extension Network {
    /// Returns the part of the network that computes local features at two depths, concatenated along the channel axis.
    ///
    /// Each depth is a cut of the network: all later nodes read only this node and each other. Candidates have a feature map with a
    /// stride of `stride` pixels, and at most 1.5 times as many channels as the narrowest of them. The features are those of the
    /// last candidate and of the middle one: deeper features discriminate better, and shallower ones localize better.
    /// - Returns: The network, and the number of channels of each depth; nil if no node has such a feature map.
    package func localFeatures(stride: Int) throws(NetworkError) -> (network: Network, channels: [Int])? {
        // At other sizes, the maps of strided layers are rounded.
        func multiple(_ length: Int) -> Int { (length + stride - 1) / stride * stride }
        let size = TensorShape(
            height: multiple(input.height), width: multiple(input.width), channels: input.channels)
        guard size == input else {
            return try? Network(name: name, input: size, nodes: nodes).localFeatures(stride: stride)
        }
        let (rows, columns) = (input.height / stride, input.width / stride)
        // The first node that each node and the nodes after it read.
        var firstSources = sources.map { $0.min() ?? -1 }
        for index in nodes.indices.dropLast().reversed() {
            firstSources[index] = min(firstSources[index], firstSources[index + 1])
        }
        var candidates = nodes.indices.dropLast().filter { index in
            let shape = shapes[index]
            return firstSources[index + 1] >= index && shape.height == rows && shape.width == columns
                && shape.pixels > 1
        }
        guard let narrowest = candidates.map({ shapes[$0].channels }).min() else { return nil }
        candidates.removeAll { 2 * shapes[$0].channels > 3 * narrowest }
        let last = candidates[candidates.count - 1]
        let middle = candidates[(candidates.count - 1) / 2]
        let kept = Array(nodes[...last])
        guard middle != last else {
            return (try Network(name: name, input: input, nodes: kept), [shapes[last].channels])
        }
        var joined = "features"
        while kept.contains(where: { $0.name == joined }) { joined += "_" }
        let both = Node(name: joined, layer: Concat(), inputs: [nodes[middle].name, nodes[last].name])
        return (
            try Network(name: name, input: input, nodes: kept + [both]),
            [shapes[middle].channels, shapes[last].channels]
        )
    }
}
