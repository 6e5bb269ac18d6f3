internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintModel
internal import ImprintNetwork

struct MergeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "merge",
        abstract: "Average several people's personalizations of a model into a new model.",
        discussion: """
            Each person counts by the number of photos. Labels that people added are added to the model. Only the files of imprint \
            personalize are needed, no photos. With --clip and --noise there is a bound on what the model tells of any one person, which \
            is printed (differential privacy); without them there is none.
            """)

    @Argument(help: "The weights file that all personalizations were made for; it stays as it is.")
    var model: String

    @Argument(help: "The personalizations, one of each person.")
    var personalizations: [String]

    @Option(help: ArgumentHelp("The weights file to write.", valueName: "file"))
    var output: String

    @Option(help: ArgumentHelp("Scale each person's change down to this Euclidean norm.", valueName: "norm"))
    var clip: Double?

    @Option(
        help: ArgumentHelp(
            "Add noise of this many times the norm of --clip to the sum of all changes. Added labels are left out then.",
            valueName: "multiple"))
    var noise: Double?

    @Option(help: "The probability δ for which privacy is reported.")
    var delta = MergeOptions().delta

    @Option(
        help: ArgumentHelp(
            "Compute noise from this number, to repeat an experiment; without it noise is secret, as privacy needs.",
            valueName: "number"), transform: seedNumber)
    var seed: UInt64?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, output] + personalizations)
        do {
            // Ranges first; a missing --clip is reported below.
            try MergeOptions(clip: clip ?? noise.map { _ in 1 }, noise: noise, delta: delta).check()
        } catch {
            throw ValidationError("--\(error).")
        }
        if noise != nil && clip == nil {
            throw ValidationError("--noise is a multiple of the norm of --clip; add --clip.")
        }
        if seed != nil && noise == nil { throw ValidationError("--seed is for noise; add --noise.") }
        var seen = Set<String>()
        for path in personalizations where !seen.insert(resolvedPath(path)).inserted {
            throw ValidationError("\(path) is given twice, expected one personalization of each person; leave one out.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .model)],
            inputs: [("the model", model)] + personalizations.map { ("a file to merge", $0) })
    }

    private var options: MergeOptions { MergeOptions(clip: clip, noise: noise, delta: delta, seed: seed) }

    func run() throws {
        let target = URL(filePath: output)
        try AtomicFile.checkWritable(target)
        let base = try ModelFile(contentsOf: URL(filePath: model))
        let merge = try base.merging(
            personalizations.map { try Personalization(contentsOf: URL(filePath: $0)) }, options: options)
        try merge.weights.write(to: target)
        if common.json {
            try Terminal.report(
                FinishedLine(
                    output: output, users: merge.users, examples: merge.examples, added: merge.addedLabels,
                    leftOut: merge.leftOutLabels, epsilon: merge.privacy?.epsilon, delta: merge.privacy?.delta,
                    clipped: merge.clipped, keepsRehearsal: merge.weights.rehearsal != nil))
        } else {
            tell(merge)
        }
    }

    private func tell(_ merge: Merge) {
        let people = merge.users == 1 ? "1 person" : "\(merge.users) people"
        Terminal.note("Merged the changes of \(people), learned from \(merge.examples) photos. Wrote \(output).")
        if !merge.addedLabels.isEmpty { Terminal.note("New labels: \(shown(merge.addedLabels)).") }
        if let clip {
            Terminal.note("\(merge.clipped) of \(merge.users) changes were longer than \(clip) and scaled down to it.")
        }
        if let privacy = merge.privacy {
            Terminal.note(
                String(
                    format:
                        "Noise of deviation %.3g was added to each number: the model is (ε, δ)-private for each person with "
                        + "ε = %.4g and δ = %g.", privacy.deviation, privacy.epsilon, privacy.delta))
            Terminal.note(
                "That requires that each file is of another person: copies are refused, but two different files of one person cannot be "
                    + "detected.")
            if seed != nil { Terminal.warn("That holds only while nobody knows the number given with --seed.") }
        }
        if !merge.leftOutLabels.isEmpty {
            Terminal.warn(
                "Left out the labels that people added: \(shown(merge.leftOutLabels)). Their names would tell of them."
            )
        }
        if merge.leavesOutRehearsal {
            Terminal.warn(
                "The new model keeps no features of the photos that \(model) was trained on, since layers before the head changed; "
                    + "personalizations of it may forget.")
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
}
