internal import ImprintNetwork

/// The kind of a model, which determines how network outputs become observations.
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

    /// Whether personalization may add labels.
    ///
    /// The labels of a detector are those of its logos.
    package var acceptsNewLabels: Bool { detector == nil }

    /// Whether the network receives the whole image in a fixed size.
    ///
    /// Flip test-time augmentation, occlusion saliency, augmentation in personalization, and export require it. A detector scans an image
    /// pyramid instead.
    package var seesWholeImage: Bool { detector == nil }
}

extension ModelFile {
    /// The kind of the model.
    public var head: ModelHead {
        if let detector { return .detector(detector) }
        return network.nodes.last?.layer is Sigmoid ? .sigmoid : .softmax
    }
}
