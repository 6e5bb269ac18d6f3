internal import Foundation
internal import ImprintImages
internal import ImprintModel
internal import ImprintNetwork

// The fingerprint of a run: the hyperparameters that may not change when it is resumed.
//
// It has one entry for each hyperparameter, encoded as JSON. It excludes those that do not change the training steps, such as the number of
// epochs, the stop rules and the calibration.

/// Returns hyperparameters as JSON by their names in words, such as "label smoothing".
func fingerprint(_ hyperparameters: some Encodable, without excluded: Set<String>) throws -> [String: String] {
    let object = try JSONSerialization.jsonObject(with: Data(json(hyperparameters).utf8))
    var entries: [String: Any] = [:]
    for (name, value) in object as? [String: Any] ?? [:] where !excluded.contains(name) {
        // A struct with several values becomes an entry for each; an enumeration is an object with one key.
        if let parts = value as? [String: Any], parts.count > 1 {
            entries.merge(parts) { $1 }
        } else {
            entries[name] = value
        }
    }
    var values: [String: String] = [:]
    for (name, value) in entries {
        let text = try JSONSerialization.data(withJSONObject: value, options: [.sortedKeys, .fragmentsAllowed])
        values[words(name)] = String(decoding: text, as: UTF8.self).trimmingCharacters(in: ["\""])
    }
    return values
}

/// Converts "labelSmoothing" to "label smoothing".
private func words(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : String($1) }
}

extension ClassifierConfiguration {
    /// Describes the network or the base model for the fingerprint.
    private func start(base: String?) -> String {
        switch start {
        case .network(let name, let width): "\(name), width \(width)"
        case .builtInBase, .base: "base \(base?.prefix(12) ?? "") with \(trains?.rawValue ?? "") trained"
        }
    }

    /// Returns the fingerprint.
    /// - Parameter base: The digest of the base model.
    func fingerprint(base: String?) throws -> [String: String] {
        var excluded: Set = ["epochs", "patience", "timeLimit", "calibrates", "rehearsalImages"]
        if usedFineTuning == nil { excluded.insert("fineTuning") }
        if validationFolder != nil { excluded.insert("validation") }
        var values = try ImprintTraining.fingerprint(hyperparameters, without: excluded)
        values["network"] = start(base: base)
        values["learning rate"] = hyperparameters.learningRate.map { "\($0)" } ?? "auto"
        if validationFolder != nil { values["validation"] = "a folder" }
        return values
    }

    /// Returns the fingerprint of version 1.
    func versionOneFingerprint(base: String?) -> [String: String] {
        let values = hyperparameters
        let validation =
            switch values.validation {
            case _ where validationFolder != nil: "a folder"
            case .automatic: "automatic"
            case .fraction(let fraction): "\(fraction)"
            case .none: "none"
            }
        var settings: [String: String] = [
            "network": start(base: base), "validation": validation, "random split": "\(!values.keepsGroupsTogether)",
            "batch size": "\(values.batchSize)", "learning rate": values.learningRate.map { "\($0)" } ?? "auto",
            "schedule": "\(values.schedule)", "momentum": "\(values.momentum)", "weight decay": "\(values.weightDecay)",
            "gradient clipping": values.gradientClipping.map { "\($0)" } ?? "none",
            "label smoothing": "\(values.labelSmoothing)",
            "class weights": values.labelWeights.rawValue, "average": values.averageDecay.map { "\($0)" } ?? "none",
            "input size": values.inputSize.map { "\($0)" } ?? "usual", "crop and scale": values.cropAndScale.rawValue,
            "augmentation": values.augmentation.names.isEmpty
                ? "none" : values.augmentation.names.joined(separator: ","),
            "seed": "\(values.seed)",
        ]
        if values.poolsMaximum { settings["pooling"] = "mean and maximum" }
        if let fineTuning = usedFineTuning {
            settings["layer decay"] = "\(fineTuning.layerDecay)"
            settings["stage epochs"] = "\(fineTuning.stageEpochs)"
            settings["statistics of norms"] = fineTuning.keepsStatistics ? "kept" : "of the batch"
        }
        return settings
    }
}

extension DetectorConfiguration {
    /// Returns the fingerprint.
    /// - Parameter data: Descriptions of the artwork and the backgrounds.
    func fingerprint(data: [String: String]) throws -> [String: String] {
        var excluded: Set = ["rehearsalImages", "poolSize"]
        if validationFolder != nil { excluded.insert("validation") }
        var values = try ImprintTraining.fingerprint(hyperparameters, without: excluded)
        if validationFolder != nil { values["validation"] = "a folder" }
        return values.merging(data) { $1 }
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
        var values = classifier.versionOneFingerprint(base: nil)
        values["epochs"] = "\(hyperparameters.epochs)"
        return values.merging(data) { $1 }
    }
}
