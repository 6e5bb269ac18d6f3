internal import CImprintKernels
internal import ImprintCore
package import ImprintImages
package import ImprintNetwork

// The checks that reading and writing a model file share.

/// Checks that the categories fit the labels.
func checkCategories(_ categories: Categories?, _ labels: [String]) throws(ModelFileError.Problem) {
    do throws(CategoriesError) {
        try categories?.check(labels: labels)
    } catch {
        throw .invalidMetadata(key: ModelFileKey.categories, reason: error.reason)
    }
}

/// Checks that the numbers of photos, the metrics and the thresholds of a training record are in their ranges.
func checkTraining(_ training: TrainingRecord?) throws(ModelFileError.Problem) {
    guard let problem = training?.problem else { return }
    throw .invalidMetadata(key: ModelFileKey.training, reason: problem)
}

/// Checks the version and the texts of the details.
func checkDetails(_ details: ModelDetails) throws(ModelFileError.Problem) {
    if let problem = details.problem { throw .invalidMetadata(key: ModelFileKey.details, reason: problem) }
}

/// Checks that the novelty rule fits the network and the labels.
func checkNovelty(
    _ rule: NoveltyRule?, _ network: Network, _ labels: [String], _ head: ModelHead
) throws(ModelFileError.Problem) {
    guard let problem = rule?.problem(network, head, labelCount: labels.count) else { return }
    throw .invalidMetadata(key: NoveltyRule.key, reason: problem)
}

/// Checks that the labels match the network's outputs and the preprocessing its input.
package func checkFit(
    _ network: Network, _ labels: [String], _ preprocessing: Preprocessing, _ head: ModelHead
) throws(ModelFileError.Problem) {
    switch head {
    case .detector(let detector):
        // The same parameters must fit images of any size.
        let larger = TensorShape(
            height: 2 * network.input.height, width: 2 * network.input.width, channels: network.input.channels)
        let atLarger = try? Network(name: network.name, input: larger, nodes: network.nodes)
        guard preprocessing.channels == 3, atLarger.map(ParameterLayout.init) == ParameterLayout(network) else {
            throw .invalidMetadata(
                key: ModelFileKey.detector, reason: "the network does not accept colour images of any size")
        }
        if let problem = detector.problem(maps: network.output.channels, labels: labels)
            ?? detector.strideProblem(network) ?? head.problem(headOf: network, labels: labels)
        {
            throw .invalidMetadata(key: ModelFileKey.detector, reason: problem)
        }
    case .centerPoints(let centerPoints):
        try checkImportedDetector(
            ModelFileKey.centerPoints, preprocessing, problem: centerPoints.problem(network, labels: labels))
    case .anchors(let anchors):
        try checkImportedDetector(
            ModelFileKey.anchors, preprocessing, problem: anchors.problem(network, labelCount: labels.count))
    case .softmax, .sigmoid:
        let outputs: Int
        do {
            outputs = try network.labelCount()
        } catch {
            throw .notAClassifier(error)
        }
        guard labels.count == outputs else { throw .labelCount(found: labels.count, outputs: outputs) }
    }
    var seen = Set<String>()
    for label in labels {
        guard seen.insert(label).inserted else { throw .duplicateLabel(label) }
    }
    if let problem = preprocessing.problem { throw .invalidMetadata(key: ModelFileKey.preprocessing, reason: problem) }
    let image = TensorShape(height: preprocessing.height, width: preprocessing.width, channels: preprocessing.channels)
    guard image == network.input else { throw .inputShape(found: image, expected: network.input) }
}

/// Checks that an imported detector reads colour images and has no other problem.
/// - Parameter key: The metadata key of the detector's head.
private func checkImportedDetector(
    _ key: String, _ preprocessing: Preprocessing, problem: String?
) throws(ModelFileError.Problem) {
    guard preprocessing.channels == 3 else {
        throw .invalidMetadata(
            key: key, reason: "a network for images with \(counted(preprocessing.channels, "channel")), expected 3")
    }
    if let problem { throw .invalidMetadata(key: key, reason: problem) }
}

extension ModelFile {
    /// Checks that labels, network, preprocessing and the rules of a detector match; a model from a file was checked when it was read.
    /// - Throws: `ModelFileError` with the name of the network instead of a path.
    package func checkConsistency() throws(ModelFileError) {
        guard digest == nil else { return }
        do throws(ModelFileError.Problem) {
            try checkFit(network, labels, preprocessing, head)
        } catch {
            throw ModelFileError(path: "the model \(network.name)", problem: error)
        }
    }
}

/// Checks that all values of a parameter tensor are finite.
package func checkFinite(
    _ entry: ParameterLayout.Entry, of parameters: Parameters
) throws(ModelFileError.Problem) {
    let isFinite = parameters.withValues(of: entry) { imprint_all_finite($0.baseAddress, $0.count) }
    guard isFinite != 0 else { throw .notFinite(tensor: entry.name) }
}
