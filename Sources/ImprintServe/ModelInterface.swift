internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

/// The inputs and outputs of a model in the Open Inference Protocol, and its metadata.
///
/// The inputs are alternatives: a request has exactly one of them.
struct ModelInterface: Sendable {
    /// An input.
    enum Input: String, CaseIterable {
        /// Encoded pictures, such as JPEG files.
        case image
        /// Pixels of images of any size, which the server scales.
        case pixels
        /// Values of the network's input after preprocessing.
        case values
    }

    /// An output.
    enum Output: String, CaseIterable {
        /// The confidence in each label.
        case confidences
        /// The label with the highest confidence.
        case labels
        /// The number of objects in each image.
        case counts
        /// The boxes of the objects: x, y, width and height as fractions of the upright image.
        case boxes
        /// The confidences of the objects.
        case boxConfidences = "box_confidences"
        /// The labels of the objects.
        case boxLabels = "box_labels"

        /// The datatype, without the classification extension.
        var datatype: Datatype {
            switch self {
            case .confidences, .boxes, .boxConfidences: .fp32
            case .counts: .int32
            case .labels, .boxLabels: .bytes
            }
        }
    }

    let name: String
    let labels: [String]
    let inputs: [Input]
    let outputs: [Output]
    /// The shape of the network's input.
    let inputShape: TensorShape

    init(_ classifier: ImageClassifier, name: String) {
        self.name = name
        labels = classifier.labels
        inputShape = classifier.model.network.input
        inputs = classifier.acceptsValues ? Input.allCases : [.image, .pixels]
        outputs = classifier.locatesObjects ? Output.allCases : [.confidences, .labels]
    }

    func datatype(of input: Input) -> Datatype {
        switch input {
        case .image: .bytes
        case .pixels: .uint8
        case .values: .fp32
        }
    }

    /// The shape of an input; -1 stands for any number.
    func shape(of input: Input) -> [Int] {
        switch input {
        case .image: [-1]
        case .pixels: [-1, -1, -1, 3]
        case .values: [-1, inputShape.height, inputShape.width, inputShape.channels]
        }
    }

    private func shape(of output: Output) -> [Int] {
        switch output {
        case .confidences: [-1, labels.count]
        case .labels, .counts: [-1]
        case .boxes: [-1, -1, 4]
        case .boxConfidences, .boxLabels: [-1, -1]
        }
    }
}

/// The datatype of a tensor.
enum Datatype: String, Encodable {
    case fp32 = "FP32"
    case uint8 = "UINT8"
    case int32 = "INT32"
    case bytes = "BYTES"
}

extension ModelInterface {
    /// The metadata of the model, as the protocol defines it.
    struct Metadata: Encodable {
        struct Tensor: Encodable {
            let name: String
            let datatype: Datatype
            let shape: [Int]
        }

        struct Parameters: Encodable { let labels: [String] }

        let name: String
        let versions = ["1"]
        let platform = "imprint"
        let inputs: [Tensor]
        let outputs: [Tensor]
        let parameters: Parameters
    }

    var metadata: Metadata {
        Metadata(
            name: name,
            inputs: inputs.map {
                Metadata.Tensor(name: $0.rawValue, datatype: datatype(of: $0), shape: shape(of: $0))
            },
            outputs: outputs.map {
                Metadata.Tensor(name: $0.rawValue, datatype: $0.datatype, shape: shape(of: $0))
            },
            parameters: Metadata.Parameters(labels: labels))
    }
}
