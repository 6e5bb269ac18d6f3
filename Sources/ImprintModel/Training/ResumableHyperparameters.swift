// The hyperparameters that may change when a run is resumed, because they do not change the training steps. The fingerprint of a checkpoint leaves
// them out, and so does the comparison of training records.

extension ClassifierHyperparameters {
    /// A hyperparameter that may change when a run is resumed; the raw value is the name of the property.
    package enum Resumable: String, CaseIterable, Sendable {
        case epochs, patience, timeLimit, calibrates, rehearsalImages
    }

    /// The hyperparameters with the default value of each one that may change when a run is resumed.
    var withoutResumable: ClassifierHyperparameters {
        var values = self
        let defaults = ClassifierHyperparameters()
        for hyperparameter in Resumable.allCases {
            switch hyperparameter {
            case .epochs: values.epochs = defaults.epochs
            case .patience: values.patience = defaults.patience
            case .timeLimit: values.timeLimit = defaults.timeLimit
            case .calibrates: values.calibrates = defaults.calibrates
            case .rehearsalImages: values.rehearsalImages = defaults.rehearsalImages
            }
        }
        return values
    }
}

extension DetectorHyperparameters {
    /// A hyperparameter that may change when a run is resumed; the raw value is the name of the property.
    package enum Resumable: String, CaseIterable, Sendable {
        case rehearsalImages, poolSize
    }

    /// The hyperparameters with the default value of each one that may change when a run is resumed.
    var withoutResumable: DetectorHyperparameters {
        var values = self
        let defaults = DetectorHyperparameters()
        for hyperparameter in Resumable.allCases {
            switch hyperparameter {
            case .rehearsalImages: values.rehearsalImages = defaults.rehearsalImages
            case .poolSize: values.poolSize = defaults.poolSize
            }
        }
        return values
    }
}

extension TrainingRecord.Hyperparameters {
    /// The hyperparameters with the default value of each one that may change when a run is resumed.
    var withoutResumable: TrainingRecord.Hyperparameters {
        switch self {
        case .classifier(let values): .classifier(values.withoutResumable)
        case .detector(let values): .detector(values.withoutResumable)
        }
    }
}
