import Foundation
import Imprint
import ImprintImages
import ImprintModel
import ImprintNetwork

/// Returns a small model with these labels.
func makeModel(labels: [String]) throws -> ModelFile {
    let network = try Network.logonet(labels: labels.count, inputSize: 16, width: 0.1)
    return ModelFile(
        network: network, parameters: try Parameters(network, seed: 5), labels: labels,
        preprocessing: Preprocessing(width: 16, height: 16))
}
