internal import ImprintNetwork

/// The kind of a model: how the outputs of its network become classifications.
///
/// Code that depends on the kind asks this type instead of testing for a detector, and types that behave differently for each kind (a
/// predictor, a feature extractor) are chosen by one `switch` over it.
public enum ModelHead: Hashable, Sendable {
    /// The network gives one probability for each label, and they add up to 1.
    case softmax
    /// The network gives an independent probability for each label, so an image may show several.
    case sigmoid
    /// The network gives a heat map for each logo.
    case detector(DetectorHead)

    /// Whether the confidences in all labels add up to 1.
    public var sharesConfidence: Bool { self != .sigmoid }

    /// The rules of a detector, or nil for a classifier of whole images.
    public var detector: DetectorHead? {
        if case .detector(let detector) = self { detector } else { nil }
    }

    /// Whether predictions come with bounding boxes.
    public var locatesObjects: Bool { detector != nil }

    /// Whether personalization may add labels.
    ///
    /// The labels of a detector are those of its logos.
    package var acceptsNewLabels: Bool { detector == nil }

    /// Whether the network sees one image of fixed size.
    ///
    /// Only then can a prediction be averaged with that of the mirrored image, explained by occlusion, augmented for personalization
    /// or exported: a detector looks at each image in many sizes.
    package var seesWholeImage: Bool { detector == nil }
}

extension ModelFile {
    /// The kind of the model.
    public var head: ModelHead {
        if let detector { return .detector(detector) }
        return network.nodes.last?.layer is Sigmoid ? .sigmoid : .softmax
    }
}
