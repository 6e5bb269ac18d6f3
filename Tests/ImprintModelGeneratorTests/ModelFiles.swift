import Foundation
import Imprint

/// A small model with any labels.
func makeModel(labels: [String]) throws -> WeightsFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    return WeightsFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: labels,
        preprocessing: Preprocessing(width: 16, height: 16))
}
