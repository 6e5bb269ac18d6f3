public import Foundation
internal import Imprint
package import ImprintCore
public import ImprintImages
public import ImprintModel
public import ImprintNetwork

/// The configuration of a classifier's training: the hyperparameters, and settings that the model file does not record.
///
/// Hyperparameters can be set directly: `configuration.epochs = 5` is short for `configuration.hyperparameters.epochs = 5`.
@dynamicMemberLookup
public struct ClassifierConfiguration: Sendable {
    /// The network that training starts from.
    public enum Start: Sendable {
        /// The first usable installed base model in alphabetical order (see `BaseModels`), trained by the automatic recipe; `builtInBase` if none is
        /// installed.
        case automatic
        /// A pretrained base model with a new head, trained by a recipe.
        ///
        /// The recipe sets the hyperparameters that have their default values, except `fixedHyperparameters`; see `RecipeDecision`.
        case pretrained(ModelFile, recipe: ClassifierRecipe = .automatic)
        /// The base model that comes with Imprint, with all layers trainable; see `ModelFile.builtInBase()`.
        case builtInBase
        /// A ready-made network with random parameters; see `Network.readyMadeNames`.
        case network(String, width: Double = 1)
        /// A network of your own with random parameters, and the preprocessing of its photos, which has the size of the network's input.
        ///
        /// If the network does not end in a softmax over the labels, training replaces its head, as for a base model. Register layers of your own
        /// with `LayerRegistry`, so that checkpoints and model files can be read.
        case untrained(Network, preprocessing: Preprocessing)
        /// A trained model: its layers and parameters, with a new head if the labels differ.
        case base(ModelFile, trainableLayers: FineTuning.TrainableLayers = .head)
    }

    /// The hyperparameters, which the model file records.
    public var hyperparameters = ClassifierHyperparameters()
    /// The hyperparameters that a recipe must not set, even if they have their default values.
    ///
    /// A recipe never sets a hyperparameter that differs from its default value. To keep a default value, such as a batch size of 32, insert the
    /// hyperparameter here: `configuration.fixedHyperparameters = [.batchSize]`. Without a recipe, this has no effect.
    public var fixedHyperparameters: Set<RecipeHyperparameter> = []
    /// The network that training starts from.
    public var start = Start.automatic
    /// A folder of validation photos with the same sub-folders, or a list (`LabelList`); nil to split the training photos.
    public var validationFolder: URL?
    /// The number of threads, from 1 to 256, or to the number of cores if that is larger; the result does not depend on it.
    public var threads = Processors.coreCount
    /// The processes that train together; nil for a single process.
    ///
    /// The result does not depend on their number.
    package var processes: ProcessGroup?
    /// The precision of the tensors in the model file.
    public var storagePrecision = Safetensors.Precision.float32
    /// The maximum memory for preprocessed photos, in bytes, at least 0.
    ///
    /// Nil means half of the available memory. The result does not depend on it.
    public var memoryLimit: Int?

    /// Creates the default configuration.
    public init() {}

    /// A hyperparameter.
    public subscript<Value>(dynamicMember member: WritableKeyPath<ClassifierHyperparameters, Value>) -> Value {
        get { hyperparameters[keyPath: member] }
        set { hyperparameters[keyPath: member] = newValue }
    }
}

extension ClassifierConfiguration {
    /// The threads and processes that share the work.
    var workers: Workers { Workers(threads, processes: processes) }

    /// The trainable layers of the base model; nil if training starts from scratch.
    var trainableLayers: FineTuning.TrainableLayers? {
        switch start {
        case .automatic, .builtInBase: .all
        case .pretrained: .head
        case .network, .untrained: nil
        case .base(_, let trainableLayers): trainableLayers
        }
    }

    /// The fine-tuning hyperparameters; nil if only the head is trainable, or if training starts from scratch.
    var usedFineTuning: FineTuning? {
        trainableLayers == nil || trainableLayers == .head ? nil : hyperparameters.fineTuning
    }

    /// Checks that every value is in its range.
    func check() throws(ImprintError) {
        if let problem = hyperparameters.problem { throw problem.error }
        let problem = RangeCheck.firstFailure(of: [
            .init("threads", threads, in: Processors.threadRange),
            .init("memoryLimit", memoryLimit ?? 0, memoryLimit ?? 0 >= 0, "at least 0"),
        ])
        if let problem { throw problem.error }
        try checkStart()
    }

    /// Rejects settings that the start ignores, because the model file would record them.
    private func checkStart() throws(ImprintError) {
        let values = hyperparameters
        let needsBase = "the default, because a new network has no base model"
        func sizeAndScaling(_ expected: String) -> [RangeCheck] {
            [
                .init("inputSize", values.inputSize ?? 0, values.inputSize == nil, expected),
                .init("cropAndScale", values.cropAndScale.rawValue, values.cropAndScale == .centerCrop, expected),
            ]
        }
        let ofBases: [RangeCheck] = [
            .init("poolsMaximum", values.poolsMaximum, !values.poolsMaximum, needsBase),
            .init("fineTuning", values.fineTuning, values.fineTuning == FineTuning(), needsBase),
        ]
        let problem: RangeCheck? =
            switch start {
            case .automatic, .builtInBase, .pretrained, .base:
                .firstFailure(of: sizeAndScaling("the default, because the base model has its own"))
            case .network: .firstFailure(of: ofBases)
            case .untrained:
                .firstFailure(of: sizeAndScaling("the default, because the preprocessing has its own") + ofBases)
            }
        if let problem { throw problem.error }
    }

    /// The rule that splits the photos.
    var split: DatasetSplitRule {
        DatasetSplitRule(
            validation: validationFolder.map { .folder($0, logos: nil) } ?? .split(hyperparameters.validation),
            keepsGroupsTogether: hyperparameters.keepsGroupsTogether, seed: hyperparameters.seed, threads: threads)
    }
}

/// The rule that splits photos into a training set and a validation set.
struct DatasetSplitRule {
    enum Validation {
        /// A fraction of the photos.
        case split(ValidationRule)
        /// A separate folder; `logos` are the labels of a detector's logos, nil for a classifier.
        case folder(URL, logos: [String]?)
        /// Other photos, with the labels of the training photos.
        case source(any TrainingSource)
    }

    var validation: Validation
    /// Whether near-duplicates and bursts stay on one side of the split.
    var keepsGroupsTogether: Bool
    var seed: UInt64
    var threads: Int
}
