internal import ImprintCore
package import ImprintNetwork

/// The kind of a model, which determines how network outputs become classifications.
///
/// Code that depends on the kind of a model switches over this type instead of testing for a detector, for example to choose a predictor or
/// a feature extractor.
public enum ModelHead: Hashable, Sendable {
    /// The network outputs one probability per label, and they add up to 1.
    case softmax
    /// The network outputs an independent probability per label, so an image may have several labels.
    case sigmoid
    /// The network outputs a heat map per logo.
    case detector(DetectorHead)
    /// The network outputs a heat map per label, and boxes; Imprint can import but not train such a detector.
    case centerPoints(CenterPointHead)
    /// The network outputs probabilities and boxes of anchors; such a detector is imported, and Imprint does not train it.
    case anchors(AnchorHead)

    /// Whether the confidences of all labels add up to 1.
    public var confidencesSumToOne: Bool {
        switch self {
        case .softmax, .detector: true
        case .sigmoid, .centerPoints, .anchors: false
        }
    }

    /// The rules of a logo detector; nil for other models.
    public var detector: DetectorHead? {
        if case .detector(let detector) = self { detector } else { nil }
    }

    // The optimizer of Swift 6.3 crashes if it inlines the two properties into the code of some callers.

    /// The rules of a center-point detector; nil for other models.
    @inline(never)
    public var centerPoints: CenterPointHead? {
        if case .centerPoints(let centerPoints) = self { centerPoints } else { nil }
    }

    /// The rules of an anchor-based detector; nil for other models.
    @inline(never)
    public var anchors: AnchorHead? {
        if case .anchors(let anchors) = self { anchors } else { nil }
    }

    /// Whether predictions come with bounding boxes.
    public var locatesObjects: Bool { !seesWholeImage }

    /// Whether Imprint can fine-tune and personalize the model.
    package var isTrainable: Bool {
        switch self {
        case .softmax, .sigmoid, .detector: true
        case .centerPoints, .anchors: false
        }
    }

    /// Whether whole photos are enough for personalization to add labels.
    ///
    /// A detector also needs the position of a new logo: it learns new logos from artwork or boxes.
    package var learnsLabelsFromPhotos: Bool { seesWholeImage }

    /// Whether the network classifies the whole image in a fixed size.
    ///
    /// Flip test-time augmentation, occlusion saliency, and augmentation in personalization require it. A logo detector scans an image
    /// pyramid instead, and a center-point detector sees images of many sizes. An anchor-based detector has a fixed size, but also boxes.
    package var seesWholeImage: Bool {
        switch self {
        case .softmax, .sigmoid: true
        case .detector, .centerPoints, .anchors: false
        }
    }

    /// The logos of a logo detector, in the order of the network's outputs; empty for other models.
    package var logos: [DetectorHead.Logo] { detector?.logos ?? [] }

    /// Whether the model has a label without an output: the label of images without any logo, whose logit is 0.
    package var hasLabelWithoutOutput: Bool { detector != nil }

    /// Returns the labels of the network's outputs, in order.
    /// - Parameter labels: The labels of the model.
    package func outputLabels(_ labels: [String]) -> [String] {
        switch self {
        case .softmax, .sigmoid, .centerPoints, .anchors: labels
        case .detector(let detector): detector.logos.map(\.label)
        }
    }

    /// Returns the head with the labels that a personalization adds.
    ///
    /// The column of an added logo contains its Platt scaling, so its logits are log-odds.
    /// - Parameter network: The network with the outputs of the added labels.
    func adding(labels: [String], in network: Network) -> ModelHead {
        switch self {
        case .softmax, .sigmoid: return ModelHead(classifier: network)
        case .centerPoints, .anchors: return self
        case .detector(var detector):
            detector.logos += labels.map { DetectorHead.Logo(label: $0) }
            return .detector(detector)
        }
    }

    /// Returns the Platt scaling of each output, slope · logit + offset; slopes are 1 and offsets 0 for a classifier of whole images.
    /// - Parameter outputs: The number of outputs, including the outputs of added labels.
    package func plattScaling(outputs: Int) -> (slopes: [Float], offsets: [Float]) {
        switch self {
        case .softmax, .sigmoid, .centerPoints, .anchors:
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
    /// Returns the problem if the layer at `Network.headIndex` does not have one output per label; nil if it does, or without such a layer.
    ///
    /// Personalizations change the columns of this layer.
    /// - Parameter labels: The labels of the model.
    package func problem(headOf network: Network, labels: [String]) -> String? {
        guard let index = network.headIndex else { return nil }
        let (found, expected) = (network.shapes[index].channels, outputLabels(labels).count)
        guard found != expected else { return nil }
        return "a head with \(counted(found, "output")) for \(counted(expected, detector == nil ? "label" : "logo"))"
    }

    /// Determines the kind of a classifier from its network.
    init(classifier network: Network) {
        self = network.nodes.last?.layer is Sigmoid ? .sigmoid : .softmax
    }
}

extension ModelFile {
    /// The rules of a logo detector; nil for other models.
    public var detector: DetectorHead? { head.detector }

    /// The rules of a center-point detector; nil for other models.
    public var centerPoints: CenterPointHead? { head.centerPoints }

    /// The rules of an anchor-based detector; nil for other models.
    public var anchors: AnchorHead? { head.anchors }

    /// Whether the model was trained as a multi-label model, so it has a threshold for every label.
    ///
    /// An imported network that ends in sigmoids may predict one label per photo.
    package var isMultiLabel: Bool {
        guard head == .sigmoid, case .classifier(let values)? = training?.hyperparameters else { return false }
        return values.isMultiLabel
    }
}
