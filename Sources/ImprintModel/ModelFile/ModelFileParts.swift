public import ImprintImages
public import ImprintNetwork

extension ModelFile {
    /// Creates a classifier or a logo detector from its parts.
    ///
    /// `ImageClassifier` and the methods that write or export a model check that the parts match.
    /// - Parameters:
    ///   - network: The network.
    ///   - parameters: The parameters, in the layout of `network`.
    ///   - labels: One label for each network output, all different; for a logo detector one for each logo and one more.
    ///   - preprocessing: The conversion of an image to the network's input.
    ///   - detector: The rules of a logo detector; nil for a classifier.
    ///   - training: The training record.
    ///   - baseDigest: The digest of the base model.
    ///   - rehearsal: The replay features for personalization.
    ///   - categories: The categories of the labels.
    ///   - storagePrecision: The precision in which `write(to:)` stores the parameters.
    public init(
        network: Network, parameters: Parameters, labels: [String], preprocessing: Preprocessing,
        detector: DetectorHead? = nil, training: TrainingRecord? = nil, baseDigest: String? = nil,
        rehearsal: Rehearsal? = nil, categories: Categories? = nil, storagePrecision: Safetensors.Precision = .float32
    ) {
        self.init(
            network, parameters, labels, preprocessing,
            detector.map { ModelHead.detector($0) } ?? ModelHead(classifier: network),
            training: training, baseDigest: baseDigest, rehearsal: rehearsal, categories: categories,
            storagePrecision: storagePrecision)
    }

    /// Creates a center-point detector from its parts, as the initializer of a classifier.
    /// - Parameters:
    ///   - network: The network.
    ///   - parameters: The parameters, in the layout of `network`.
    ///   - labels: The label of each heat map, all different.
    ///   - preprocessing: The conversion of an image to the network's input.
    ///   - centerPoints: The rules of the detector.
    ///   - categories: The categories of the labels.
    ///   - storagePrecision: The precision in which `write(to:)` stores the parameters.
    public init(
        network: Network, parameters: Parameters, labels: [String], preprocessing: Preprocessing,
        centerPoints: CenterPointHead, categories: Categories? = nil, storagePrecision: Safetensors.Precision = .float32
    ) {
        self.init(
            network, parameters, labels, preprocessing, .centerPoints(centerPoints), categories: categories,
            storagePrecision: storagePrecision)
    }

    /// Creates an anchor-based detector from its parts, as the initializer of a classifier.
    /// - Parameters:
    ///   - network: The network.
    ///   - parameters: The parameters, in the layout of `network`.
    ///   - labels: The label of each probability of an anchor, all different.
    ///   - preprocessing: The conversion of an image to the network's input.
    ///   - anchors: The rules of the detector.
    ///   - categories: The categories of the labels.
    ///   - storagePrecision: The precision in which `write(to:)` stores the parameters.
    public init(
        network: Network, parameters: Parameters, labels: [String], preprocessing: Preprocessing,
        anchors: AnchorHead, categories: Categories? = nil, storagePrecision: Safetensors.Precision = .float32
    ) {
        self.init(
            network, parameters, labels, preprocessing, .anchors(anchors), categories: categories,
            storagePrecision: storagePrecision)
    }
}
