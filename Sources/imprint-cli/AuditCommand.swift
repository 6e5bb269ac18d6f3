internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintModel
internal import ImprintTraining

struct AuditCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Check photos and their boxes for problems before training.",
        discussion: """
            Examples:
              imprint audit photos
              imprint audit photos --validation test --report audit.html
              imprint audit --annotations boxes.json
            """)

    @Argument(
        help: ArgumentHelp(
            "The photos: a folder with one sub-folder per label, or a CSV or JSON list. With --annotations: the folder of the photos, if "
                + "they are not beside the annotations.", valueName: "data"))
    var data: String?

    @Option(
        help: ArgumentHelp(
            "The bounding boxes of photos: a file or folder in COCO, Create ML, YOLO or Pascal VOC format. (default: photos with "
                + "labels)", valueName: "file"))
    var annotations: String?

    @Option(
        help: ArgumentHelp(
            "A folder or list of validation photos to compare with. With --annotations: a folder with some of the photos, or other "
                + "annotations.",
            valueName: "folder"))
    var validation: String?

    @Option(help: ArgumentHelp("An HTML report of the findings to write.", valueName: "file.html"))
    var report: String?

    @OptionGroup var common: CommonOptions

    func validate() throws {
        try requirePaths([data, annotations, validation].compactMap { $0 })
        if data == nil && annotations == nil {
            throw ValidationError("There are no photos. Name a folder or list of photos, or --annotations FILE.")
        }
        if let report { try checkOutputs([OutputFile(option: "--report", path: report, kind: .auditReport)]) }
    }

    func run() throws {
        let clock = ContinuousClock()
        let start = clock.now
        if let report { try AtomicFile.checkWritable(URL(filePath: report)) }
        let workers = Workers(common.threadCount)
        let audit = try annotations.map { try self.audit(annotations: $0, workers) } ?? self.audit(data ?? "", workers)
        if common.json {
            for finding in audit.findings { try Terminal.emit(FindingLine(finding)) }
            try Terminal.emit(FinishedLine(audit, seconds: (clock.now - start).seconds))
        } else {
            try Terminal.show(text(audit))
        }
        // The findings are not lost if the report cannot be written.
        if let report {
            let title = "Audit of \(annotations ?? data ?? "")"
            let page = AuditReport(audit, title: title, workers: workers)
            let file = try writeResult(to: report, .auditReport) { try page.write(to: $0) }
            if file.isElsewhere { throw ExitCode.failure }
        }
    }

    /// Audits photos with labels.
    private func audit(_ data: String, _ workers: Workers) throws -> Audit {
        let folder = try labelledPhotos(at: URL(filePath: data), minimumLabels: 1)
        let other = try validation.map {
            try labelledPhotos(at: URL(filePath: $0), minimumLabels: 1, knownLabels: folder.labels)
        }
        var bar = ProgressBar()
        defer { bar.clear() }
        let total = folder.items.count + (other?.items.count ?? 0)
        return Audit(folder, validation: other, workers: workers) { bar.draw("reading", done: $0, of: total) }
    }

    /// Audits photos with boxes.
    private func audit(annotations: String, _ workers: Workers) throws -> Audit {
        let folder = data.map { URL(filePath: $0) }
        let split = try AnnotatedSplit(
            URL(filePath: annotations), validation: validation.map { URL(filePath: $0) }, part: nil,
            usesValidationPart: false
        ) { file, photos, part in
            try part == .validation ? other(file, folder) : read(file, photos: photos ?? folder, part: part)
        }
        var bar = ProgressBar()
        defer { bar.clear() }
        let total = split.training.photos.count + (split.validation?.photos.count ?? 0)
        return Audit(split.training, validation: split.validation, workers: workers) {
            bar.draw("reading", done: $0, of: total)
        }
    }

    private func read(_ annotations: URL, photos: URL?, part: DatasetPart?) throws -> BoxAnnotations {
        try BoxAnnotations(
            contentsOf: annotations, photos: photos, part: part, recordsProblems: true, threads: common.threadCount)
    }

    /// Reads the annotations of a validation set.
    ///
    /// Looks for their photos beside the annotations, and then in the folder of the photos.
    private func other(_ annotations: URL, _ folder: URL?) throws -> BoxAnnotations {
        do {
            return try read(annotations, photos: nil, part: .validation)
        } catch let error as BoxAnnotationsError {
            guard case .noReadablePhotos = error, let folder else { throw error }
            return try read(annotations, photos: folder, part: .validation)
        }
    }

    /// The maximum number of findings of a kind in the text output; JSON and the report list all of them.
    private static let findingLimit = 10

    private func text(_ audit: Audit) -> String {
        var lines =
            annotations == nil
            ? [photoCount(audit) + (validation == nil ? " of " : ", of ") + counted(audit.labels.count, "label")]
                + photoCounts(audit) : objectCounts(audit)
        if annotations == nil, let imbalance = audit.imbalance, imbalance >= 2 {
            lines.append(
                String(format: "the largest label has %.1f times as many photos as the smallest", imbalance)
                    + ": a model may favour it; add photos of the small labels")
        }
        if audit.ignored > 0 {
            let verb = audit.ignored == 1 ? "is not an image, or is" : "are not images, or are"
            lines.append("\(counted(audit.ignored, "file")) \(verb) not in the folder of a label")
        }
        if let note = audit.rotationNote { lines.append(note) }
        let profiles = audit.profilesByFrequency
        if !profiles.isEmpty {
            lines.append("colour profiles: " + profiles.map { "\(shown($0.name)) \($0.count)" }.joined(separator: ", "))
        }
        if let random = audit.randomSplit, random.leaked > 0 {
            lines.append(
                "in a random split, \(random.leaked) of \(random.images) validation photos would resemble training photos; "
                    + "training keeps near-duplicates and bursts together")
        }
        for kind in Audit.Finding.Kind.allCases {
            let findings = audit.findings.filter { $0.kind == kind }
            guard !findings.isEmpty else { continue }
            lines += ["", "\(kind.title): \(findings.count)", "  \(kind.advice)"]
            lines += findings.prefix(Self.findingLimit).map { "  - \(visibleName($0.summary(fileLimit: 6)))" }
            if findings.count > Self.findingLimit { lines.append("  and \(findings.count - Self.findingLimit) more") }
        }
        return lines.joined(separator: "\n")
    }

    private func photoCount(_ audit: Audit) -> String {
        guard validation != nil else { return counted(audit.images, "photo") }
        return "\(counted(audit.trainingImages, "photo")) for training and \(audit.validationImages) for validation"
    }

    private func photoCounts(_ audit: Audit) -> [String] {
        let names = audit.labels.map { shown($0.label) }
        let width = names.map(\.count).max() ?? 0
        return zip(names, audit.labels).map { name, label in
            let padding = String(repeating: " ", count: width - name.count)
            let validation = validation == nil ? "" : " for training, \(label.validationImages) for validation"
            return "  \(name)\(padding)  \(label.images)\(validation)"
        }
    }

    private func objectCounts(_ audit: Audit) -> [String] {
        func text(_ values: [Double], _ format: String) -> [String] {
            values.isEmpty ? ["–", "–"] : [values[0], values[2]].map { String(format: format, $0) }
        }
        let cells = audit.objects.map {
            ["\($0.objects)", "\($0.photos)"] + text($0.sizes, "%.0f") + text($0.aspectRatios, "%.2f")
        }
        let total = audit.objects.reduce(0) { $0 + $1.objects }
        let table = LabelTable(audit.objects.map(\.label))
        return [
            photoCount(audit) + (validation == nil ? " with " : "; in the training photos, ") + counted(total, "object")
                + " of " + counted(audit.objects.count, "label"),
            "",
            table.text(["objects", "photos", "min. size", "max. size", "min. w/h", "max. w/h"], cells), "",
            "size: the longer side in the largest scaled copy that a detector scans, in pixels",
        ]
    }

}

private struct FindingLine: Encodable {
    let event = "finding"
    let kind: Audit.Finding.Kind
    let files: [String]
    let reason: String
    /// Only for findings about boxes.
    let boxes: [NormalizedRectangle]?

    init(_ finding: Audit.Finding) {
        boxes = finding.boxes.isEmpty ? nil : finding.boxes
        kind = finding.kind
        files = finding.files.map { $0.path(percentEncoded: false) }
        reason = finding.reason
    }
}

private struct FinishedLine: Encodable {
    let event = "finished"
    let images: Int
    let labels: [Audit.LabelCount]
    /// Only with --annotations.
    let objects: [Audit.LabelObjects]?
    let findings: [String: Int]
    let ignored: Int
    let orientations: [String: Int]
    let profiles: [String: Int]
    @NullIfMissing var imbalance: Double?
    let groups: Int
    let imagesInGroups: Int
    @NullIfMissing var randomSplit: Audit.Leakage?
    let seconds: Double

    init(_ audit: Audit, seconds: Double) {
        images = audit.images
        labels = audit.labels
        objects = audit.objects.isEmpty ? nil : audit.objects
        findings = Dictionary(audit.findings.map { ($0.kind.rawValue, 1) }, uniquingKeysWith: +)
        ignored = audit.ignored
        orientations = Dictionary(uniqueKeysWithValues: audit.orientations.map { ("\($0.key.rawValue)", $0.value) })
        profiles = audit.profiles
        imbalance = audit.imbalance
        groups = audit.groups
        imagesInGroups = audit.imagesInGroups
        randomSplit = audit.randomSplit
        self.seconds = seconds
    }
}
