public import Foundation
internal import Imprint
package import ImprintCore
internal import ImprintImages
public import ImprintModel
internal import ImprintNetwork

/// The configuration of a logo detector's training: the hyperparameters, and settings that the model file does not record.
///
/// Hyperparameters can be set directly: `configuration.seed = 5` is short for `configuration.hyperparameters.seed = 5`.
@dynamicMemberLookup
public struct DetectorConfiguration: Sendable {
    /// The hyperparameters, which the model file records.
    public var hyperparameters = DetectorHyperparameters()
    /// A folder of validation photos, read as `ImageFolder.init(at:logos:)` reads the training photos; nil to split the training photos.
    public var validationFolder: URL?
    /// A pretrained classifier, whose first layers become the backbone of the detector; nil to train all layers from random parameters.
    ///
    /// With few photos of ordinary objects, a backbone gives better results. It needs layers up to a stride of 16 that do not read averages
    /// of the whole image: those of EfficientNet-Lite, MobileNet v1 and v2, ResNet and SqueezeNet, but not squeeze-and-excitation. Its layers
    /// are trained with 0.3 times the learning rate.
    public var base: ModelFile?
    /// The levels of the image pyramid, as in `DetectorHead.levels`; nil for the standard levels.
    package var pyramidLevels: [Int]?
    /// The number of threads, from 1 to 256, or to the number of cores if that is larger; the result does not depend on it.
    public var threads = Processors.coreCount
    /// The processes that train together; nil for a single process.
    ///
    /// The result does not depend on their number.
    package var processes: ProcessGroup?
    /// The precision of the tensors in the model file.
    public var storagePrecision = Safetensors.Precision.float32
    /// The maximum memory for photos, in bytes, at least 0.
    ///
    /// Nil means half of the available memory, at most 512 MB. The result does not depend on it.
    public var memoryLimit: Int?

    /// Creates the default configuration.
    public init() {}

    /// A hyperparameter.
    public subscript<Value>(dynamicMember member: WritableKeyPath<DetectorHyperparameters, Value>) -> Value {
        get { hyperparameters[keyPath: member] }
        set { hyperparameters[keyPath: member] = newValue }
    }
}

extension DetectorConfiguration {
    /// The threads and processes that share the work.
    var workers: Workers { Workers(threads, processes: processes) }

    /// Checks that every value is in its range.
    func check() throws(ImprintError) {
        if let problem = hyperparameters.problem { throw problem.error }
        let problem = RangeCheck.firstFailure(of: [
            .init("threads", threads, in: Processors.threadRange),
            .init("memoryLimit", memoryLimit ?? 0, memoryLimit ?? 0 >= 0, "at least 0"),
        ])
        if let problem { throw problem.error }
    }

    /// Returns the rule that splits the photos.
    func split(logos: [String]) -> DatasetSplitRule {
        // The calibration needs more photos than early stopping.
        var rule = hyperparameters.validation
        if case .automatic = rule { rule = .fraction(0.15) }
        return DatasetSplitRule(
            validation: validationFolder.map { .folder($0, logos: logos) } ?? .split(rule),
            keepsGroupsTogether: hyperparameters.keepsGroupsTogether, seed: hyperparameters.seed, threads: threads)
    }
}
