import Foundation
import Imprint
import ImprintCore
import ImprintModel
import ImprintTraining

/// Synthetic predictions, including ones for which some metrics are undefined.
enum Predictions: String, CaseIterable, Sendable {
    case twoLabels, ties, withoutImagesOfALabel, oneLabelOnly, oneImage, allWrong, allRight, certain, random

    private var shape: (images: Int, labels: Int) {
        switch self {
        case .twoLabels: (60, 2)
        case .ties: (80, 3)
        case .withoutImagesOfALabel: (40, 3)
        case .oneLabelOnly: (15, 2)
        case .oneImage: (1, 2)
        case .allWrong, .allRight: (30, 3)
        case .certain: (20, 2)
        case .random: (2000, 7)
        }
    }

    var labels: [String] { (0..<shape.labels).map { "label \($0)" } }

    /// The true label and the network's logits of each image.
    var images: [(label: Int, logits: [Float])] {
        (0..<shape.images).map { image in
            var stream = RandomStream(seed: 7, "predictions \(rawValue)", image)
            var label = stream.index(below: shape.labels)
            var logits = (0..<shape.labels).map { _ in 2 * stream.normal() }
            switch self {
            case .twoLabels, .random: logits[label] += 1
            case .ties: logits = logits.map { min(max($0.rounded(), -1), 1) }
            case .withoutImagesOfALabel: label = label == 1 ? 2 : label
            case .oneLabelOnly: label = 1
            case .oneImage: break
            case .allWrong: logits[label] = -10
            case .allRight: logits[label] = 10
            case .certain: logits = logits.map { 300 * $0.rounded() }
            }
            return (label, logits)
        }
    }

    /// The evaluation of a network with these logits.
    var evaluation: Evaluation {
        let uncalibrated = Calibration(temperature: 1, errorBefore: 0, errorAfter: 0, images: 0)
        return Evaluation(
            labels: labels,
            results: images.enumerated().map { index, image in
                Evaluation.Result(
                    url: URL(filePath: "/\(index).png"), label: image.label,
                    confidences: uncalibrated.confidences(image.logits))
            }, skipped: [])
    }
}
