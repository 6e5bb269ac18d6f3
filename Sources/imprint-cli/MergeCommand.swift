internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

struct MergeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Average the personalizations of several users into a new model (federated averaging).",
        discussion: """
            Each user is weighted by their number of photos or, with --noise, equally. The new model gets the labels that users \
            added. Merging needs the files from imprint personalize, but no photos. --clip and --noise limit the information \
            about any single user (differential privacy); the bound is printed. Without them there is no bound.

            Examples:
              imprint merge base.imprint anna.imprint ben.imprint --output next.imprint
              imprint merge base.imprint users/* --output next.imprint --clip 1 --noise 1
            """)

    @Argument(help: "The model file that all personalizations were made for; it is not changed.")
    var model: String

    @Argument(help: "The personalizations, one per user.")
    var personalizations: [String]

    @Option(name: .shortAndLong, help: ArgumentHelp("The model file to write.", valueName: "file"))
    var output: String

    @Option(help: ArgumentHelp("Clip each user's change to this Euclidean norm.", valueName: "norm"))
    var clip: Double?

    @Option(
        help: ArgumentHelp(
            "Add Gaussian noise to the sum of all changes, with a standard deviation of this multiple of --clip. The new model then "
                + "omits added labels.",
            valueName: "multiple"))
    var noise: Double?

    @Option(help: "The probability δ for which privacy is reported.")
    var delta = MergeOptions().delta

    @Option(
        help: ArgumentHelp(
            "The random seed of the noise, for reproducible experiments; privacy requires the default, a secret random seed.",
            valueName: "number"), transform: seedNumber)
    var seed: UInt64?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + personalizations)
        try checkPrivacy(clip: clip, noise: noise, delta: delta)
        if seed != nil && noise == nil {
            throw ValidationError("--seed sets the random seed of the noise. Add --noise.")
        }
        var seen = Set<String>()
        for path in personalizations where !seen.insert(resolvedPath(path)).inserted {
            throw ValidationError("\(path) is given twice, expected one personalization per user. Leave one out.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)],
            inputs: [("the model", model)] + personalizations.map { ("a file to merge", $0) })
    }

    private var options: MergeOptions { MergeOptions(clip: clip, noise: noise, delta: delta, seed: seed) }

    func run() throws {
        let target = URL(filePath: output)
        try AtomicFile.checkWritable(target)
        let base = try namedModel(model)
        let merge = try base.merging(personalizations.map(namedPersonalization), options: options)
        warnAboutSimilarLabels(
            merge.model.labels, added: merge.addedLabels, consequence: "The new model has all of them.")
        try merge.model.write(to: target)
        if common.json {
            try Terminal.report(
                FinishedLine(
                    output: output, users: merge.userCount, examples: merge.exampleCount, added: merge.addedLabels,
                    leftOut: merge.omittedLabels, epsilon: merge.privacy?.epsilon, delta: merge.privacy?.delta,
                    clipped: merge.clippedCount, keepsRehearsal: merge.model.rehearsal != nil,
                    keepsNovelty: merge.model.noveltyRule != nil))
        } else {
            printSummary(of: merge, base)
        }
    }

    private func printSummary(of merge: MergeResult, _ base: ModelFile) {
        Terminal.note(
            "Merged the changes of \(counted(merge.userCount, "user")), learned from \(counted(merge.exampleCount, "photo")). Wrote \(output)."
        )
        if base.parameters.quantization != nil {
            Terminal.note(
                "The new model computes in float32, because merging changes its parameters. Quantize it again.")
        }
        if !merge.addedLabels.isEmpty { Terminal.note("New labels: \(shown(merge.addedLabels)).") }
        if let clip {
            Terminal.note("Clipped \(merge.clippedCount) of \(merge.userCount) changes to the norm \(clip).")
        }
        if let privacy = merge.privacy {
            Terminal.always(
                String(
                    format:
                        "Added Gaussian noise with standard deviation %.3g to each parameter: the model is (ε, δ)-differentially private "
                        + "for each user with ε = %.4g and δ = %g.", privacy.standardDeviation, privacy.epsilon,
                    privacy.delta))
            Terminal.always(
                "This requires that each file is from a different user. Imprint rejects copies, but two different files of one user cannot be "
                    + "detected.")
            if seed != nil { Terminal.warn("This requires that the value of --seed stays secret.") }
        }
        if !merge.omittedLabels.isEmpty {
            Terminal.warn(
                "Left out the labels that users added: \(shown(merge.omittedLabels)). Their names would reveal information about users."
            )
        }
        if merge.omitsRehearsal {
            Terminal.warn(
                "The new model has no replay features of the training photos of \(model), because layers before the head changed. "
                    + "Personalizations of it may forget.")
        }
        if merge.omitsNovelty {
            Terminal.warn(
                "The new model has no novelty rule, because layers before the head changed. It does not reject photos that are unlike the "
                    + "training photos of \(model).")
        }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let output: String
    let users: Int
    let examples: Int
    let added: [String]
    let leftOut: [String]
    /// `null` without noise.
    @NullIfMissing var epsilon: Double?
    @NullIfMissing var delta: Double?
    let clipped: Int
    let keepsRehearsal: Bool
    let keepsNovelty: Bool
}

/// Checks the options that `merge` and `join` have for privacy.
func checkPrivacy(clip: Double?, noise: Double?, delta: Double) throws {
    do {
        // Check the ranges first; the check below reports a missing --clip.
        try MergeOptions(clip: clip ?? noise.map { _ in 1 }, noise: noise, delta: delta).check()
    } catch {
        throw ValidationError("--\(error)")
    }
    if noise != nil && clip == nil {
        throw ValidationError("--noise is a multiple of the norm of --clip. Add --clip.")
    }
    if noise == nil && delta != MergeOptions().delta {
        throw ValidationError(
            "--delta sets the δ for which ε is printed, and there is no ε without noise. Add --noise.")
    }
}
