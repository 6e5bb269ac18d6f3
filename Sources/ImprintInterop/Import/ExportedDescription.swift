internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// What Imprint says of a model in a file that it exported, so that the model comes back as it was.
///
/// The formats have no words for some layers and settings, such as a border that follows from the image's size: a graph alone comes back as
/// another network that computes the same.
struct ExportedDescription {
    let network: Network
    let preprocessing: Preprocessing
    let labels: [String]?

    /// - Parameter metadata: What a file says of itself.
    /// - Returns: nil if it is no file of Imprint's, or does not say what it should.
    init?(_ metadata: [String: String]) {
        func json<Value: Decodable>(_ key: String, as type: Value.Type) -> Value? {
            metadata[key].flatMap { try? JSONDecoder().decode(type, from: Data($0.utf8)) }
        }
        guard let network = json(ExportedModel.networkKey, as: Network.self),
            let preprocessing = json("imprint.preprocessing", as: Preprocessing.self), preprocessing.problem == nil,
            TensorShape(height: preprocessing.height, width: preprocessing.width, channels: preprocessing.channels)
                == network.input
        else {
            return nil
        }
        (self.network, self.preprocessing) = (network, preprocessing)
        labels = json("imprint.labels", as: [String].self)
    }

    /// The described network's parameters, taken from the network that was made of the file's graph; nil if they are not all there, or
    /// the graph computes something else by now.
    /// - Parameter rule: How samples become the input of the graph's network, which may have the preprocessing in itself.
    func parameters(
        from graph: Network, _ numbers: Parameters, rule: ModelImporter.SampleRule
    ) throws -> Parameters? {
        let layout = ParameterLayout(network)
        let known = numbers.layout
        guard network.input == graph.input, network.output.count == graph.output.count else { return nil }
        // Both are run once; what would take gigabytes for it is taken as the graph says.
        guard ([network.input] + network.shapes + graph.shapes).allSatisfy({ $0.count <= 1 << 24 }) else { return nil }
        let (last, graphLast) = (network.nodes.last?.name, graph.nodes.last?.name)
        /// The name in the graph, where the result may have another than the layer that gives it.
        func name(of entry: ParameterLayout.Entry) -> String {
            guard known[entry.name] == nil, entry.node == last, let graphLast else { return entry.name }
            return "\(graphLast).\(entry.parameter.name)"
        }
        for entry in layout.entries {
            guard let found = known[name(of: entry)]?.parameter.count, [1, found].contains(entry.parameter.count)
            else {
                return nil
            }
        }
        let parameters = try Parameters(layout)
        for entry in layout.entries {
            guard let source = known[name(of: entry)] else { continue }
            // What all channels share is there once for each of them where the format does not share it.
            numbers.withValues(of: source) { found in
                parameters.withValues(of: entry) { own in
                    _ = own.update(fromContentsOf: found[..<entry.parameter.count])
                }
            }
        }
        var normalization = preprocessing
        let own = try prediction(of: network, parameters, normalization)
        normalization.mean = rule.mean
        normalization.scale = rule.scale
        let other = try prediction(of: graph, numbers, normalization)
        let largest = other.reduce(0) { max($0, $1.magnitude) }
        let isEqual = zip(own, other).allSatisfy { abs($0 - $1) <= 1e-3 * largest }
        return isEqual ? parameters : nil
    }

    /// What a network makes of one image of noise.
    private func prediction(
        of network: Network, _ parameters: Parameters, _ preprocessing: Preprocessing
    ) throws -> [Float] {
        var stream = RandomStream(seed: 1, "image of an imported model")
        let samples = (0..<network.input.count).map { _ in UInt8(stream.uniform(in: 0...255)) }
        let plan = try ExecutionPlan(
            network, parameters: parameters, options: ExecutionPlan.Options(batchSize: 1, mode: .prediction))
        samples.withUnsafeBufferPointer { preprocessing.normalize($0, into: plan.input) }
        plan.forward(count: 1)
        return Array(plan.output.prefix(network.output.count))
    }
}
