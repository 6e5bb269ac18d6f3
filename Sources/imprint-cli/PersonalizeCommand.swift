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
        abstract: "Tune a model to one person's photos: a small file beside the model, which stays as it is.",
        discussion: """
            The file has kilobytes and no photos. Use it with imprint classify or evaluate --personalization; without it the model is what \
            it was. Labels that the model does not know are added.
            """)

    @Argument(help: "The weights file.")
    var model: String

    @Argument(help: "The folder of the person's photos: one sub-folder per label, of one label at least.")
    var data: String

    @Option(help: ArgumentHelp("The file to write.", valueName: "file"))
    var output: String

    @Option(
        name: .customLong("not"),
        help: ArgumentHelp(
            "A photo, or a folder of photos, that does not show the label, which the model took it for; may be given more than once.",
            valueName: "label=path"))
    var corrections: [String] = []

    @Option(
        name: .customLong("continue"),
        help: ArgumentHelp("An earlier personalization of the model, to go on from.", valueName: "file"))
    var earlier: String?

    @Option(
        help:
            "How much the photos that the model was trained on count against these: more forgets less and learns less.")
    var rehearsalWeight = PersonalizationConfiguration().rehearsalWeight

    @Option(help: "How much changing the model costs.")
    var penalty = PersonalizationConfiguration().penalty

    @Option(help: "How many views of each photo are learned from, the photo itself included.")
    var views = PersonalizationConfiguration().views

    @Option(help: "How many blocks of layers before the head change too, by factors of low rank.")
    var blocks = 0

    @Option(help: "The rank of these factors.")
    var rank = PersonalizationConfiguration().rank

    @Option(
        help: ArgumentHelp("End after so many seconds, with what is known then.", valueName: "seconds"))
    var timeLimit: Double?

    @Option(
        help: ArgumentHelp(
            "How much memory features of photos may take; photos for which there is no room are left out. (default: 64MB)",
            valueName: "size"))
    var memory: MemorySize?

    @Option(
        help: ArgumentHelp(
            "Keep features of the photos in this file, so that they are not computed again, and an ended run goes on from there.",
            valueName: "file"))
    var cache: String?

    @Flag(help: "Work on one thread of the lowest priority.")
    var background = false

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([model, data] + [earlier].compactMap { $0 })
        if let timeLimit, !(timeLimit > 0 && timeLimit < 1e9) {
            throw ValidationError("--time-limit is \(timeLimit), expected more than 0 and less than 1e9 seconds.")
        }
        try require(rehearsalWeight, "--rehearsal-weight", in: 0...1_000_000)
        try require(penalty, "--penalty", in: 0...1_000_000)
        try require(views, "--views", in: 1...64)
        try require(rank, "--rank", in: 1...64)
        try require(blocks, "--blocks", in: 0...100)
        if let memory { try require(memory.byteCount(), "--memory in bytes", in: 1024...(1 << 50)) }
        for correction in corrections where Self.readings(correction).isEmpty {
            throw ValidationError("--not is \(correction), expected a label and a path, as in Logo=photo.jpg.")
        }
        try checkOutputs(
            [OutputFile(option: "--output", path: output, kind: .personalization)]
                + [cache].compactMap { $0 }.map { OutputFile(option: "--cache", path: $0, kind: .featureCache) },
            inputs: [("the model", model)])
    }

    func run() throws {
        let base = try ImageClassifier(contentsOf: URL(filePath: model))
        let classifier = try base.personalized(
            with: try earlier.map { try Personalization(contentsOf: URL(filePath: $0)) })
        let target = URL(filePath: output)
        try AtomicFile.checkWritable(target)
        let folder = try ImageFolder(at: URL(filePath: data), minimumClasses: 1)
        let corrections = try corrected(labels: classifier.labels)
        let session = try PersonalizationSession(classifier, configuration: configuration)
        let added = folder.labels.filter { !classifier.labels.contains($0) }
        if !added.isEmpty {
            Terminal.note(
                "New labels: \(shown(added)). The model knows \(TextTable.list(classifier.labels))."
            )
        }
        if classifier.weights.rehearsal == nil {
            Terminal.warn(
                "The model keeps no features of the photos it was trained on, so it may forget; train it anew to give it some."
            )
        }
        let result = try teach(session, folder, corrections)
        let bytes = try session.save(to: target)
        try tell(result, session, bytes: bytes)
    }

    private var configuration: PersonalizationConfiguration {
        get throws {
            var configuration = PersonalizationConfiguration()
            configuration.rehearsalWeight = rehearsalWeight
            configuration.penalty = penalty
            configuration.views = views
            configuration.blocks = blocks
            configuration.rank = rank
            configuration.threads = common.threadCount
            configuration.isBackground = background
            configuration.timeLimit = timeLimit.map { .seconds($0) }
            if let memory { configuration.memoryLimit = try memory.byteCount() }
            return configuration
        }
    }

    /// The labels and paths that a correction may mean: both may have a "=" in them.
    private static func readings(_ correction: String) -> [(label: String, path: String)] {
        correction.indices.filter { correction[$0] == "=" }.map {
            (String(correction[..<$0]), String(correction[correction.index(after: $0)...]))
        }.filter { !$0.label.isEmpty && !$0.path.isEmpty }
    }

    /// The photos of the corrections.
    private func corrected(labels: [String]) throws -> [(photo: URL, isNot: String)] {
        try corrections.flatMap { correction -> [(photo: URL, isNot: String)] in
            let readings = Self.readings(correction)
            guard let (label, path) = readings.first(where: { labels.contains($0.label) }) ?? readings.first else {
                return []
            }
            guard labels.contains(label) else { throw ImprintError.unknownLabel(label, known: labels) }
            let place = URL(filePath: path)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: place.path, isDirectory: &isFolder) else {
                throw ValidationError(
                    "--not: \(path) does not exist, expected a photo or a folder of photos; check the path.")
            }
            let photos = isFolder.boolValue ? try ImageFolder.images(in: place) : [place]
            return photos.map { ($0, label) }
        }
    }

    private func teach(
        _ session: PersonalizationSession, _ folder: ImageFolder, _ corrections: [(photo: URL, isNot: String)]
    ) throws -> PersonalizationResult {
        var bar = ProgressBar()
        defer { bar.clear() }
        let control = PersonalizationControl()
        let interrupt = Interrupt()
        interrupt.begin()
        defer { interrupt.end() }
        do {
            return try session.teach(
                folder, corrections: corrections, cache: cache.map { URL(filePath: $0) }, control: control
            ) { done, total in
                if Interrupt.isRequested { control.cancel() }
                bar.draw("learning", done: done, of: total)
            }
        } catch is CancellationError {
            bar.clear()
            Terminal.note(
                "Ended before all photos were learned from; \(output) is as it was."
                    + (cache.map { " Features that are done are in \($0)." } ?? ""))
            throw ExitCode.failure
        }
    }

    private func tell(_ result: PersonalizationResult, _ session: PersonalizationSession, bytes: Int) throws {
        for image in result.skipped { Terminal.note("Skipped: \(image.reason)") }
        let personalization = session.personalization
        if common.json {
            try Terminal.report(
                FinishedLine(
                    seconds: result.seconds, bytes: bytes, output: output, base: personalization?.base,
                    labels: session.classifier.labels, added: personalization?.addedLabels ?? [],
                    images: result.examples, skipped: result.skipped.map(SkippedLine.init), leftOut: result.leftOut,
                    ending: result.ending.rawValue, accuracyBefore: result.accuracy?.before,
                    accuracyAfter: result.accuracy?.after))
            return
        }
        if result.leftOut > 0 {
            Terminal.warn(
                "\(result.leftOut) photos were left out, for there was no \(result.ending == .timeLimit ? "time" : "memory")."
            )
        }
        let seconds = String(format: "%.1f", result.seconds)
        Terminal.note(
            "Learned from \(result.examples) photos in \(seconds) s. Wrote \(output), \((bytes + 1023) / 1024) KB.")
        if let accuracy = result.accuracy {
            Terminal.note(
                "Of these photos \(Terminal.percent(accuracy.before)) were judged rightly before; learning from four fifths of them, "
                    + "\(Terminal.percent(accuracy.after)) of the rest.")
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
    /// `null` where it was not measured.
    @NullIfMissing var accuracyBefore: Double?
    @NullIfMissing var accuracyAfter: Double?
}
