public import ArgumentParser
internal import Foundation
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

/// The options that classifier and detector training share.
struct DatasetOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The validation set: a folder of photos, or the fraction of the photos to hold out; 0 for none. (default: none for fewer than "
                + "50 photos, 10 % for fewer than 200, else 5 % and at least 50 photos; 15 % for a detector)",
            valueName: "folder-or-fraction")
    )
    var validation: String?

    @Flag(help: "Split the photos at random, even if near-duplicates end up in both the training and validation set.")
    var randomSplit = false

    @Option(
        help: ArgumentHelp(
            "The number of training photos whose features the model file stores for replay, against forgetting in imprint personalize; 0 "
                + "for none.", valueName: "number"))
    var rehearsal = ClassifierHyperparameters().rehearsalImages

    @Option(help: "The random seed; the same seed gives the same model. (default: 0)", transform: seedNumber)
    var seed: UInt64 = ClassifierHyperparameters().seed

    @Option(help: "The precision of the parameters in the model file: float32, or float16 for half the size.")
    var precision = ClassifierConfiguration().storagePrecision

    @Option(
        help: ArgumentHelp(
            "The memory limit for decoded photos, in MB or with a unit, such as 2GB; photos beyond it are read again in every epoch. "
                + "(default: half of the free memory, at most 512 MB for a detector)", valueName: "size"))
    var memory: MemorySize?

    func validate() throws {
        _ = try memory?.byteCount()
        try requirePaths([validation].compactMap { $0 })
        _ = try validationRule()
    }

    /// The command-line arguments that set the same options; options that do not change the result, and defaults, are left out.
    var arguments: [String] {
        option("--validation", validation) + flag("--random-split", randomSplit) + option("--seed", seed)
            + option("--rehearsal", rehearsal, default: ClassifierHyperparameters().rehearsalImages)
            + option("--precision", precision.rawValue, default: ClassifierConfiguration().storagePrecision.rawValue)
    }

    /// The names of the options that are set and apply only to training photos.
    var photoOptions: [String] {
        [
            ("--validation", validation != nil), ("--random-split", randomSplit),
            ("--rehearsal", rehearsal != ClassifierHyperparameters().rehearsalImages),
        ].filter(\.1).map(\.0)
    }

    /// The folder of validation photos; nil for a fraction of the training photos.
    var validationFolder: URL? {
        try? validationRule().folder
    }

    func validationRule() throws -> (rule: ValidationRule, folder: URL?) {
        guard let validation else { return (.automatic, nil) }
        guard let fraction = Double(validation) else { return (.automatic, URL(filePath: validation)) }
        let rule = fraction == 0 ? ValidationRule.none : .fraction(fraction)
        guard rule.isInRange else {
            throw ValidationError(
                "--validation is \(validation), expected a folder or a fraction from 0 to less than 1.")
        }
        return (rule, nil)
    }
}

/// Returns an option and its value as arguments; empty for the default value and for nil.
func option<Value: Equatable>(_ name: String, _ value: Value?, default defaultValue: Value? = nil) -> [String] {
    guard let value, value != defaultValue else { return [] }
    return [name, "\(value)"]
}

/// Returns a flag as an argument; empty if it is not set.
func flag(_ name: String, _ isSet: Bool) -> [String] { isSet ? [name] : [] }

/// The options of settings of the library that have another name, or that are part of a nested setting.
private let optionNames = [
    "augmentation": "--augment", "calibrates": "--no-calibration", "ema-decay": "--average",
    "freezes-statistics": "--batch-statistics", "keeps-groups-together": "--random-split",
    "is-multi-label": "--multi-label", "layer-decay": "--layer-decay", "memory-limit": "--memory",
    "network": "--network, --width, --base, --recipe or --unfreeze",
    "pools-maximum": "--pool-maximum", "rehearsal-images": "--rehearsal", "stage-epochs": "--stage-epochs",
    // Names in the checkpoints of version 1.
    "pooling": "--pool-maximum", "statistics-of-norms": "--batch-statistics",
]

/// Returns the option of a setting of the library, such as "emaDecay" or "fine tuning.layer decay"; nil if the names do not differ.
func optionName(ofSetting setting: String) -> String? {
    let name = setting.split(separator: ".").last.map(String.init) ?? setting
    return optionNames[name.contains(" ") ? name.lowercased().replacing(" ", with: "-") : kebabCase(name)]
}

/// Converts "labelSmoothing" to "label-smoothing".
private func kebabCase(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "-\($1.lowercased())" : "\($1)" }
}

/// Throws an error that names the option of a hyperparameter that is out of range.
func require(_ problem: RangeCheck?) throws {
    guard let problem else { return }
    let option = optionName(ofSetting: problem.name) ?? "--\(kebabCase(problem.name))"
    throw ValidationError("\(option) is \(problem.found), expected \(problem.expected).")
}

extension Safetensors.Precision: ExpressibleByArgument {}
