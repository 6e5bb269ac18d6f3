internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The metadata that Imprint writes into an exported file, from which it restores the original model.
///
/// The formats cannot express some layers and settings, such as padding that depends on the image size. Without the metadata,
/// the graph becomes a different network that computes the same function.
struct ExportedDescription {
    let network: Network
    let preprocessing: Preprocessing
    let labels: [String]?

    /// Decodes the metadata of a file.
    ///
    /// - Parameter metadata: The file's metadata.
    /// - Returns: nil if Imprint did not write the file, or if its metadata is incomplete.
    init?(_ metadata: [String: String]) {
        func json<Value: Decodable>(_ key: String, as type: Value.Type) -> Value? {
            metadata[key].flatMap { try? JSONDecoder().decode(type, from: Data($0.utf8)) }
        }
        guard let network = json(ModelFileKey.network, as: Network.self),
            let preprocessing = json(ModelFileKey.preprocessing, as: Preprocessing.self), preprocessing.problem == nil,
            TensorShape(height: preprocessing.height, width: preprocessing.width, channels: preprocessing.channels)
                == network.input
        else {
            return nil
        }
        (self.network, self.preprocessing) = (network, preprocessing)
        labels = json(ModelFileKey.labels, as: [String].self)
    }

    /// Throws if a file contains the scan of a logo detector that Imprint exported, which is not a network.
    static func checkNoDetector(_ metadata: [String: String]) throws(ImportError.Problem) {
        guard metadata[ModelFileKey.detector] != nil else { return }
        throw .unsuitableModel(
            found: "a logo detector that Imprint exported", advice: "Use the model file from which it was exported")
    }

    /// Returns the parameters of the original network, taken from the network that was imported from the file's graph.
    ///
    /// - Parameter rule: The input normalization of the graph's network, which may include the preprocessing.
    /// - Returns: nil if parameters are missing, or if the graph computes a different function because it was edited.
    func parameters(
        from graph: Network, _ graphParameters: Parameters, rule: ModelImporter.InputNormalization
    ) throws -> Parameters? {
        let layout = ParameterLayout(network)
        let known = graphParameters.layout
        guard network.input == graph.input, network.output.count == graph.output.count else { return nil }
        // Both networks run once for a comparison. If that would take gigabytes or minutes, Imprint keeps the network of the graph.
        guard Self.isSmall(network), Self.isSmall(graph) else { return nil }
        let (last, graphLast) = (network.nodes.last?.name, graph.nodes.last?.name)
        /// Returns the parameter's name in the graph, in which the name of the output may differ from that of its layer.
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
            // A format without shared parameters repeats the value for every channel.
            graphParameters.withValues(of: source) { found in
                parameters.withValues(of: entry) { values in
                    _ = values.update(fromContentsOf: found[..<entry.parameter.count])
                }
            }
        }
        var normalization = preprocessing
        let original = try prediction(of: network, parameters, normalization)
        normalization.mean = rule.mean
        normalization.scale = rule.scale
        let other = try prediction(of: graph, graphParameters, normalization)
        let largest = other.reduce(0) { max($0, $1.magnitude) }
        let isEqual = zip(original, other).allSatisfy { abs($0 - $1) <= 1e-3 * largest }
        return isEqual ? parameters : nil
    }

    /// The maximum number of elements of one activation.
    private static let maximumActivationCount = 1 << 24
    /// The maximum number of elements that all layers together read and write.
    private static let maximumElementCount = 1 << 30
    /// The maximum number of multiplications, and of elements in the windows of pooling layers.
    private static let maximumOperationCount = 1 << 35

    /// Whether the memory and time of one prediction are within fixed limits, however small the file is that describes the network.
    private static func isSmall(_ network: Network) -> Bool {
        guard ([network.input] + network.shapes).allSatisfy({ $0.count <= maximumActivationCount }) else {
            return false
        }
        var (elements, operations) = (0, 0)
        for (index, node) in network.nodes.enumerated() {
            let (inputs, output) = (network.inputShapes(of: index), network.shapes[index])
            elements += inputs.reduce(output.count) { $0 + $1.count }
            let window = (node.layer as? MaxPool)?.kernelSize ?? (node.layer as? AveragePool)?.kernelSize
            operations += node.layer.multiplications(for: inputs)
            operations += window.map { output.count * $0.height * $0.width } ?? 0
            guard elements <= maximumElementCount, operations <= maximumOperationCount else { return false }
        }
        return true
    }

    /// Returns the output of a network for one noise image.
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
