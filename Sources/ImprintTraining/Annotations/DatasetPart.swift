internal import ImprintImages

/// A part of a dataset split: the training, validation or test set.
public enum DatasetPart: Int, Sendable, CaseIterable {
    /// The photos that a model learns from.
    case training
    /// The photos that select and calibrate a model during training.
    case validation
    /// The photos that measure a model after training.
    case test

    /// Recognizes the name of a folder, such as "train", "val2017" or "Test"; nil for other names.
    init?(folder: some StringProtocol) {
        let key = BoxFormat.partKey(ofFolder: folder)
        guard let part = Self.allCases.first(where: { $0.yamlKey == key }) else { return nil }
        self = part
    }

    /// The key of data.yaml in a YOLO data set.
    package var yamlKey: String {
        switch self {
        case .training: "train"
        case .validation: "val"
        case .test: "test"
        }
    }
}
