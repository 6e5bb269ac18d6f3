internal import ImprintNetwork

/// The kind of a model, which determines how network outputs become classifications.
///
/// Code that depends on the kind asks this type instead of testing for a detector, and types that behave differently for each kind (a
/// predictor, a feature extractor) are chosen by one `switch` over it.
public enum ModelHead: Hashable, Sendable {
    /// The network outputs one probability per label, and they add up to 1.
    case softmax
    /// The network outputs an independent probability per label, so an image may have several labels.
    case sigmoid
    /// The network outputs a heat map per logo.
    case detector(DetectorHead)

    /// Whether the confidences of all labels add up to 1.
    public var confidencesSumToOne: Bool { self != .sigmoid }

    /// The rules of a detector; nil for a classifier of whole images.
    public var detector: DetectorHead? {
        if case .detector(let detector) = self { detector } else { nil }
    }

    /// Whether predictions come with bounding boxes.
    public var locatesObjects: Bool { detector != nil }

    /// Whether whole photos are enough for personalization to add labels.
    ///
    /// A detector must also know where a new logo is: it learns new logos from artwork or boxes.
    package var learnsLabelsFromPhotos: Bool { detector == nil }

    /// Whether the network receives the whole image in a fixed size.
    ///
    /// Flip test-time augmentation, occlusion saliency, augmentation in personalization, and export require it. A detector scans an image
    /// pyramid instead.
    package var seesWholeImage: Bool { detector == nil }

    /// The logos of a detector, in the order of the network's outputs; empty for a classifier of whole images.
    package var logos: [DetectorHead.Logo] { detector?.logos ?? [] }

    /// Whether the model has a label without an output: that of images without any logo, whose logit is 0.
    package var hasLabelWithoutOutput: Bool { detector != nil }

    /// Returns the labels of the network's outputs, in order.
    /// - Parameter labels: The labels of the model.
    package func outputLabels(_ labels: [String]) -> [String] {
        switch self {
        case .softmax, .sigmoid: labels
        case .detector(let detector): detector.logos.map(\.label)
        }
    }

    /// Returns the head with the labels that a personalization adds.
    ///
    /// The column of an added logo contains its Platt scaling, so its logits are log-odds.
    func adding(labels: [String]) -> ModelHead {
        guard case .detector(var detector) = self else { return self }
        detector.logos += labels.map { DetectorHead.Logo(label: $0) }
        return .detector(detector)
    }

    /// Returns the Platt scaling of each output, slope · logit + offset; that of a classifier of whole images changes nothing.
    /// - Parameter outputs: The number of outputs, with those of added labels.
    package func plattScaling(outputs: Int) -> (slopes: [Float], offsets: [Float]) {
        switch self {
        case .softmax, .sigmoid:
            ([Float](repeating: 1, count: outputs), [Float](repeating: 0, count: outputs))
        case .detector(let detector):
            (
                detector.logos.map(\.slope) + [Float](repeating: 1, count: outputs - detector.logos.count),
                detector.logos.map(\.offset) + [Float](repeating: 0, count: outputs - detector.logos.count)
            )
        }
    }
}

extension ModelHead {
    /// Determines the kind of a model.
    /// - Parameters:
    ///   - network: The network.
    ///   - detector: The rules of a detector; nil for a classifier of whole images.
    init(_ network: Network, _ detector: DetectorHead?) {
        if let detector {
            self = .detector(detector)
        } else {
            self = network.nodes.last?.layer is Sigmoid ? .sigmoid : .softmax
        }
    }
}

extension ModelFile {
    /// The kind of the model.
    public var head: ModelHead { ModelHead(network, detector) }
}
