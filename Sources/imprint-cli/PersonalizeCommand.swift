internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct PersonalizeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "personalize",
        abstract:
            "Personalize a model with a user's photos or logos. The result is a small file; the model is not changed.",
        discussion: """
            The file has a few kilobytes and contains no photos. Use it with imprint classify, detect or evaluate --personalization. Sub-folders \
            with new names add labels to a classifier. A detector learns new logos from artwork or boxes; the heat maps of its other logos do not change.

            Examples:
              imprint personalize mine.imprint my-photos -o me.imprint
              imprint personalize mine.imprint --not Cat=wrong.jpg -o me.imprint
              imprint personalize logos.imprint --artwork Mine=mine.png -o me.imprint
              imprint personalize logos.imprint --annotations boxes.json -o me.imprint
            """)

    @Argument(help: "The model file.")
    var model: String

    @Argument(
        help: ArgumentHelp(
            "The folder of the user's photos: one sub-folder per label, at least one label. Optional with --not; not available with --artwork "
                + "or --annotations."))
    var data: String?

    @OptionGroup var logoOptions: NewLogoOptions

    @Option(name: .shortAndLong, help: ArgumentHelp("The personalization to write.", valueName: "file"))
    var output: String

    @Option(
        name: .customLong("not"),
        help: ArgumentHelp(
            "A photo, or a folder of photos, to which the model gives this label by mistake; may be repeated.",
            valueName: "label=path"))
    var corrections: [String] = []

    @Option(
        name: .customLong("resume"),
        help: ArgumentHelp("An earlier personalization of the model to continue from.", valueName: "file"))
    var earlier: String?

    @OptionGroup var training: HeadTrainingOptions

    @Option(help: "The number of blocks before the head that get a low-rank adapter (LoRA).")
    var blocks = 0

    @Option(help: "The rank of the adapters.")
    var rank = PersonalizationConfiguration().rank

    @Option(help: TimeLimit.help(written: "the personalization so far"))
    var timeLimit: TimeLimit?

    @Option(
        help: ArgumentHelp(
            "The memory limit for the features of photos. Imprint does not use photos that exceed it. (default: 64MB)",
            valueName: "size"))
    var memory: MemorySize?

    @Option(
        help: ArgumentHelp(
            "A cache file for the features of the photos, which later and resumed runs read.",
            valueName: "file"))
    var cache: String?

    @Flag(help: "Use one thread with the lowest priority.")
    var background = false

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model] + [data, earlier].compactMap { $0 })
        try logoOptions.check(data: data, hasCorrections: !corrections.isEmpty, photoOptions: photoOptions)
        try require(configuration.problem)
        try checkBlocks()
        for correction in corrections where Self.readings(correction).isEmpty {
            throw ValidationError("--not is \(correction), expected a label and a path, as in Logo=photo.jpg.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .personalization)]
                + [cache].compactMap { $0 }.map { OutputFile(option: "--cache", path: $0, kind: .featureCache) },
            inputs: [("the model", model)] + logoOptions.inputs)
    }

    /// Checks that training uses the given options of the adapters and of the head.
    private func checkBlocks() throws {
        let defaults = PersonalizationConfiguration()
        if blocks == 0, rank != defaults.rank {
            throw ValidationError("--rank sets the rank of the adapters of --blocks, which is missing. Add --blocks.")
        }
        if blocks > 0, training.penalty != defaults.penalty {
            throw ValidationError(
                "--penalty limits the changes if only the head is trained, and has no effect with --blocks. Leave out one of them."
            )
        }
    }

    func run() throws {
        for file in [output] + [cache].compactMap({ $0 }) { try AtomicFile.checkWritable(URL(filePath: file)) }
        let base = try ImageClassifier(namedModel(model))
        let classifier = try base.personalized(
            with: try earlier.map(namedPersonalization))
        guard data != nil || !corrections.isEmpty else { return try learnLogos(classifier) }
        try training.check(base.model, model)
        let folder = try data.map {
            try ImageFolder(at: URL(filePath: $0), minimumLabels: 1, knownLabels: classifier.labels)
        }
        let corrections = try corrected(labels: classifier.labels)
        let session = try PersonalizationSession(classifier, configuration: configuration)
        let added = (folder?.labels ?? []).filter { !classifier.labels.contains($0) }
        // A detector rejects new labels.
        if !added.isEmpty, classifier.learnsNewLabels {
            Terminal.note(
                "New labels: \(shown(added)). The model knows \(TextTable.list(classifier.labels))."
            )
            warn(about: added, similarTo: classifier)
        }
        if classifier.model.rehearsal == nil {
            Terminal.warn(
                "The model has no features of its training photos to replay, so it may forget; train it again to store some."
            )
        }
        if let cache, let reason = try session.reasonToReplaceCache(at: URL(filePath: cache)) {
            Terminal.warn(
                "--cache: \(cache): \(reason), so this run computes all features again and replaces the file.")
        }
        let result = try teach(session, folder, corrections)
        let file = try writeResult(to: output, .personalization) { try session.save(to: $0) }
        try report(result, session, newLabels: added, bytes: file.value, output: file.path)
        if let error = result.cacheFailure {
            Terminal.fail(
                "Error: \("\(error)".sentence) The personalization is complete, but the next run computes all features again."
            )
            throw ExitCode.failure
        }
        if file.isElsewhere { throw ExitCode.failure }
    }

    private var configuration: PersonalizationConfiguration {
        get throws {
            var configuration = PersonalizationConfiguration()
            training.apply(to: &configuration)
            configuration.blocks = blocks
            configuration.rank = rank
            configuration.threads = common.threadCount
            configuration.isBackground = background
            configuration.timeLimit = try timeLimit?.duration()
            if let memory { configuration.memoryLimit = try memory.byteCount() }
            return configuration
        }
    }

    /// Returns the possible labels and paths of a correction; both may contain "=".
    private static func readings(_ correction: String) -> [(label: String, path: String)] {
        correction.indices.filter { correction[$0] == "=" }.map {
            (String(correction[..<$0]), String(correction[correction.index(after: $0)...]))
        }.filter { !$0.label.isEmpty && !$0.path.isEmpty }
    }

    /// Returns the photos of the corrections.
    private func corrected(labels: [String]) throws -> [(photo: URL, isNot: String)] {
        try corrections.flatMap { correction -> [(photo: URL, isNot: String)] in
            let readings = Self.readings(correction)
            guard let (label, path) = readings.first(where: { labels.contains($0.label) }) ?? readings.first else {
                return []
            }
            guard labels.contains(label) else {
                throw ValidationError("--not: \(ImprintError.unknownLabel(label, known: labels))")
            }
            let url = URL(filePath: path)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
                throw FileError.cannotRead(path, errno: ENOENT)
            }
            let photos = isFolder.boolValue ? try ImageFolder.images(in: url) : [url]
            return photos.map { ($0, label) }
        }
    }

    private func teach(
        _ session: PersonalizationSession, _ folder: ImageFolder?, _ corrections: [(photo: URL, isNot: String)]
    ) throws -> PersonalizationResult {
        try learning { control, onProgress in
            try session.teach(
                folder, corrections: corrections, cache: cache.map { URL(filePath: $0) }, control: control,
                onProgress: onProgress)
        }
    }

    /// Adds the logos of the artwork and the annotations to a detector.
    private func learnLogos(_ detector: ImageClassifier) throws {
        let personalizer = try logoOptions.personalizer(detector, threads: common.threadCount)
        warn(about: personalizer.logos, similarTo: detector)
        let result = try learning(personalizer.run)
        let file = try writeResult(to: output, .personalization) { try result.personalization.write(to: $0) }
        for image in result.skipped { Terminal.warn("Skipped: \(image.reason)") }
        warnAboutUncalibrated(result.uncalibratedLabels, trainsLonger: false)
        let (added, known) = (result.personalization.addedLabels, detector.personalization?.addedLabels ?? [])
        if common.json {
            try Terminal.report(
                FinishedLine(
                    seconds: result.seconds, bytes: file.value, output: file.path,
                    base: result.personalization.baseDigest,
                    labels: detector.model.labels + added, added: added, images: result.exampleCount,
                    skipped: result.skipped.map(SkippedLine.init), leftOut: 0,
                    ending: PersonalizationResult.Ending.completed.rawValue))
        } else {
            let new = added.filter { !known.contains($0) }
            let seconds = String(format: "%.1f", result.seconds)
            Terminal.note(
                "Learned \(shown(new)) in \(seconds) s. Wrote \(file.path), \(TextTable.bytes(file.value)).")
        }
        if file.isElsewhere { throw ExitCode.failure }
    }

    /// Warns about new labels that are probably meant as another new label or as a label of the model, or are misspelt.
    private func warn(about newLabels: [String], similarTo classifier: ImageClassifier) {
        warnAboutSimilarLabels(
            classifier.labels + newLabels, added: newLabels, consequence: "The model learns them as different labels.")
        warnAboutMisspeltLabels(newLabels.filter { !classifier.labels.contains($0) }, known: classifier.labels)
    }

    /// Runs `body` with a progress bar; Ctrl-C cancels it.
    private func learning<Value>(
        _ body: (PersonalizationControl, _ onProgress: (_ done: Int, _ of: Int) -> Void) throws -> Value
    ) throws -> Value {
        var bar = ProgressBar()
        defer { bar.clear() }
        let control = PersonalizationControl()
        let interrupt = Interrupt()
        interrupt.begin()
        defer { interrupt.end() }
        do {
            return try body(control) { done, total in
                if Interrupt.isRequested { control.cancel() }
                bar.draw("learning", done: done, of: total)
            }
        } catch let error where error is CancellationError || error is FileError && Interrupt.isRequested {
            bar.clear()
            // The error of a cache that cannot be written replaces the cancellation.
            let isCancelled = error is CancellationError
            Terminal.note(
                "Stopped before all photos were processed; \(output) was not written."
                    + (cache.map { isCancelled ? " The features computed so far are in \($0)." : "" } ?? ""))
            guard isCancelled else { throw error }
            throw cache == nil ? ExitCode.failure : Interrupt.exitCode
        }
    }

    /// The options that apply only to photos with labels, as they were given.
    private var photoOptions: [String] {
        let defaults = PersonalizationConfiguration()
        return training.changedNames + (blocks == 0 ? [] : ["--blocks"]) + (rank == defaults.rank ? [] : ["--rank"])
            + [timeLimit.map { _ in "--time-limit" }, memory.map { _ in "--memory" }, cache.map { _ in "--cache" }]
            .compactMap { $0 } + flag("--background", background)
    }

    /// Prints the result.
    /// - Parameters:
    ///   - newLabels: The labels that the model did not have before.
    ///   - output: The file that was written.
    private func report(
        _ result: PersonalizationResult, _ session: PersonalizationSession, newLabels: [String], bytes: Int,
        output: String
    ) throws {
        for image in result.skipped { Terminal.warn("Skipped: \(image.reason)") }
        let personalization = session.personalization
        if common.json {
            try Terminal.report(
                FinishedLine(
                    seconds: result.seconds, bytes: bytes, output: output, base: personalization?.baseDigest,
                    labels: session.classifier.labels, added: personalization?.addedLabels ?? [],
                    images: result.exampleCount, skipped: result.skipped.map(SkippedLine.init),
                    leftOut: result.omittedCount,
                    ending: result.ending.rawValue, accuracyBefore: result.accuracy?.before,
                    accuracyAfter: result.accuracy?.after))
            return
        }
        if result.omittedCount > 0 {
            let (limit, option) = result.ending == .timeLimit ? ("time", "--time-limit") : ("memory", "--memory")
            Terminal.warn(
                "Left out \(counted(result.omittedCount, "photo")), because the run reached the \(limit) limit. Raise \(option) to use them."
            )
        }
        let seconds = String(format: "%.1f", result.seconds)
        Terminal.note(
            "Learned from \(counted(result.exampleCount, "photo")) in \(seconds) s. Wrote \(output), \(TextTable.bytes(bytes))."
        )
        if let accuracy = result.accuracy {
            let unknown =
                newLabels.isEmpty
                ? ""
                : " The model did not know \(shown(newLabels)) before, so all photos of \(shown(newLabels)) counted as mistakes."
            // An accuracy of 0 cannot be too high, for example if all photos have new labels.
            let optimistic =
                accuracy.before > 0 && (earlier != nil || accuracy.before >= accuracy.after)
                ? " The accuracy before is too high if the model was trained on these photos." : ""
            Terminal.always(
                "Accuracy on these photos: \(Terminal.percent(accuracy.before)) before, \(Terminal.percent(accuracy.after)) after "
                    + "(5-fold cross-validation).\(unknown)\(optimistic)")
        }
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let seconds: Double
    let bytes: Int
    let output: String
    @NullIfMissing var base: String?
    let labels: [String]
    let added: [String]
    let images: Int
    let skipped: [SkippedLine]
    let leftOut: Int
    let ending: String
    /// `null` if the accuracy was not measured.
    @NullIfMissing var accuracyBefore: Double?
    @NullIfMissing var accuracyAfter: Double?
}
