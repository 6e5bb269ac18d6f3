internal import ImprintImages
internal import ImprintModel

// The fingerprint of a run: the hyperparameters that may not change when it is resumed, by name.
//
// It has an entry for each hyperparameter. It excludes those that do not change the training steps, such as the number of epochs, the stop rules
// and the calibration; see `ClassifierHyperparameters.Resumable`.

/// Returns hyperparameters as text, by name; see `HyperparameterText`.
/// - Parameter excluded: The names of properties that may change.
private func entries(of hyperparameters: some Any, without excluded: Set<String>) -> [String: String] {
    let texts = HyperparameterText.list(hyperparameters)
    precondition(excluded.isSubset(of: texts.map(\.property)), "an excluded hyperparameter does not exist")
    return Dictionary(
        uniqueKeysWithValues: texts.filter { !excluded.contains($0.property) }.map { ($0.name, $0.value) })
}

/// Returns the value of a setting without the digests of files, such as "2 photos" for "2 photos (0123456789ab)"; "set" for only a digest.
func withoutDigests(_ value: String) -> String {
    let text = value.replacing(#/ ?\(?\b[0-9a-f]{12}\b\)?/#, with: "")
    return text.isEmpty ? "set" : text
}

/// Returns the name of the files whose digests the value of a setting contains, such as "artwork"; nil if it does not describe files.
func inputFiles(ofSetting name: String, value: String) -> String? {
    switch name {
    case "artwork", "backgrounds", "base model": name
    // The digest of the boxes includes the photos.
    case "boxes": "photos or their boxes"
    case "network": value.hasPrefix("base ") ? "base model" : nil
    default: nil
    }
}

extension ClassifierConfiguration {
    /// Describes the network or the base model for the fingerprint.
    private func startDescription(digest: String?) -> String {
        switch start {
        case .network(let name, let width): "\(name), width \(width)"
        case .untrained(let network, _): "\(network.name) \(digest?.prefix(12) ?? "")"
        case .automatic, .builtInBase, .pretrained, .base:
            "base \(digest?.prefix(12) ?? "") with \(trainableLayers?.rawValue ?? "") trained"
        }
    }

    /// Returns the fingerprint.
    /// - Parameter digest: The digest of the starting point.
    func fingerprint(digest: String?) -> [String: String] {
        var excluded = Set(ClassifierHyperparameters.Resumable.allCases.map(\.rawValue))
        if usedFineTuning == nil { excluded.insert("fineTuning") }
        // Older checkpoints lack these hyperparameters.
        if !hyperparameters.isMultiLabel { excluded.insert("isMultiLabel") }
        if !hyperparameters.usesMixedPrecision { excluded.insert("usesMixedPrecision") }
        var values = entries(of: hyperparameters, without: excluded)
        values["network"] = startDescription(digest: digest)
        if hyperparameters.learningRate == nil { values["learning rate"] = "auto" }
        if validationFolder != nil { values["validation"] = "a folder" }
        return values
    }

    /// Returns the fingerprint of version 1.
    func versionOneFingerprint(digest: String?) -> [String: String] {
        let values = hyperparameters
        let validation =
            switch values.validation {
            case _ where validationFolder != nil: "a folder"
            case .automatic: "automatic"
            case .fraction(let fraction): "\(fraction)"
            case .none: "none"
            }
        var settings: [String: String] = [
            "network": startDescription(digest: digest), "validation": validation,
            "random split": "\(!values.keepsGroupsTogether)",
            "batch size": "\(values.batchSize)", "learning rate": values.learningRate.map { "\($0)" } ?? "auto",
            "schedule": "\(values.schedule)", "momentum": "\(values.momentum)", "weight decay": "\(values.weightDecay)",
            "gradient clipping": values.gradientClipping.map { "\($0)" } ?? "none",
            "label smoothing": "\(values.labelSmoothing)",
            "class weights": values.classWeights.rawValue, "average": values.emaDecay.map { "\($0)" } ?? "none",
            "input size": values.inputSize.map { "\($0)" } ?? "usual", "crop and scale": values.cropAndScale.rawValue,
            "augmentation": "\(values.augmentation)", "seed": "\(values.seed)",
        ]
        if values.poolsMaximum { settings["pooling"] = "mean and maximum" }
        if let fineTuning = usedFineTuning {
            settings["layer decay"] = "\(fineTuning.layerDecay)"
            settings["stage epochs"] = "\(fineTuning.stageEpochs)"
            settings["statistics of norms"] = fineTuning.freezesStatistics ? "kept" : "of the batch"
        }
        return settings
    }
}

extension DetectorConfiguration {
    /// Returns the fingerprint.
    /// - Parameter data: Descriptions of the artwork and the backgrounds.
    func fingerprint(data: [String: String]) -> [String: String] {
        var values = entries(
            of: hyperparameters, without: Set(DetectorHyperparameters.Resumable.allCases.map(\.rawValue)))
        if validationFolder != nil { values["validation"] = "a folder" }
        return values.merging(data) { _, _ in preconditionFailure("a hyperparameter and an input have the same name") }
    }

    /// Returns the fingerprint of version 1, which also recorded the defaults of a classifier.
    func versionOneFingerprint(data: [String: String]) -> [String: String] {
        var classifier = ClassifierConfiguration()
        classifier.start = .network("logonet")
        classifier.validationFolder = validationFolder
        classifier.validation = hyperparameters.validation
        if case .automatic = hyperparameters.validation { classifier.validation = .fraction(0.15) }
        classifier.keepsGroupsTogether = hyperparameters.keepsGroupsTogether
        classifier.seed = hyperparameters.seed
        var values = classifier.versionOneFingerprint(digest: nil)
        values["epochs"] = "\(hyperparameters.epochs)"
        return values.merging(data) { $1 }
    }
}
