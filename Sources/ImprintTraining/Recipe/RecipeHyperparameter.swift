internal import ImprintModel

/// A hyperparameter that a recipe can set.
///
/// A recipe sets the hyperparameters that have their default values, except those in `ClassifierConfiguration.fixedHyperparameters`.
public enum RecipeHyperparameter: String, Sendable, CaseIterable {
    case epochs, batchSize, augmentation, optimizer, learningRate, weightDecay, layerDecay, labelSmoothing,
        gradientClipping,
        emaDecay

    /// The hyperparameters that logistic regression does not use.
    static let unusedByHead = allCases.filter { $0 != .batchSize }

    /// The name in words, such as "learning rate".
    var name: String { HyperparameterText.words(rawValue) }

    /// Sets the hyperparameter to its default value.
    func reset(in values: inout ClassifierHyperparameters) {
        let defaults = ClassifierHyperparameters()
        switch self {
        case .epochs: values.epochs = defaults.epochs
        case .batchSize: values.batchSize = defaults.batchSize
        case .augmentation: values.augmentation = defaults.augmentation
        case .optimizer: values.optimizer = defaults.optimizer
        case .learningRate: values.learningRate = defaults.learningRate
        case .weightDecay: values.weightDecay = defaults.weightDecay
        case .layerDecay: values.fineTuning.layerDecay = defaults.fineTuning.layerDecay
        case .labelSmoothing: values.labelSmoothing = defaults.labelSmoothing
        case .gradientClipping: values.gradientClipping = defaults.gradientClipping
        case .emaDecay: values.emaDecay = defaults.emaDecay
        }
    }

    /// Whether the hyperparameter has its default value.
    func isDefault(in values: ClassifierHyperparameters) -> Bool {
        var others = values
        reset(in: &others)
        return others == values
    }
}

extension ClassifierConfiguration {
    /// The hyperparameters that a recipe must not set: the fixed ones, and those that do not have their default values.
    var givenHyperparameters: Set<RecipeHyperparameter> {
        fixedHyperparameters.union(RecipeHyperparameter.allCases.filter { !$0.isDefault(in: hyperparameters) })
    }
}
