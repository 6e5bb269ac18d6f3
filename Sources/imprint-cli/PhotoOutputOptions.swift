internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// The options of subcommands that show results of photos, besides --json: CSV, sorted copies and annotated copies.
struct PhotoOutputOptions: ParsableArguments {
    @Flag(help: "Print CSV: a header, then a row for each label of a photo.")
    var csv = false

    @Option(
        help: ArgumentHelp(
            "Copy each photo into the sub-folder of DIR with the name of its best label; existing files are not replaced.",
            valueName: "dir"))
    var copyTo: String?

    @Option(
        help: ArgumentHelp(
            "Write a JPEG of each photo, with its result drawn on it, into DIR; short side \(ImageAnnotation.minimumShortSide) to "
                + "\(ImageAnnotation.shortSide) pixels, less for long, narrow photos.",
            valueName: "dir"))
    var annotate: String?

    private var folders: [(option: String, path: String)] {
        [("--copy-to", copyTo), ("--annotate", annotate)].compactMap { option, path in path.map { (option, $0) } }
    }

    func validate() throws {
        for (option, path) in folders { try requireOutputPath(path, option) }
    }

    /// Checks the options, and creates the folders.
    /// - Throws: `ValidationError` if an output folder is in a folder of photos, `FileError` if it cannot be created.
    /// - Parameters:
    ///   - detections: The options of a subcommand that finds objects; nil for other subcommands.
    ///   - labels: The labels that detections can have.
    func open(
        _ format: PhotoFormat, inputs: PhotoInputOptions, common: CommonOptions,
        detections: DetectionOutputOptions? = nil, labels: [String] = []
    ) throws -> PhotoOutput {
        let folders = folders + (detections?.cropTo.map { [("--crop-to", $0)] } ?? [])
        for (index, (option, path)) in folders.enumerated() {
            try check(path, option, inputs)
            if let other = folders[..<index].first(where: { resolvedPath($0.path) == resolvedPath(path) }) {
                throw ValidationError("\(option): \(path) is also the folder of \(other.option), expected two folders.")
            }
        }
        for (_, path) in folders { try AtomicFile.makeFolder(URL(filePath: path)) }
        if let coco = detections?.coco { try AtomicFile.checkWritable(URL(filePath: coco)) }
        return PhotoOutput(
            format, style: common.json ? .json : csv ? .csv : .text,
            copies: copyTo.map { SortedCopies(in: $0, noneName: format.noneText) },
            annotations: annotate.map { AnnotatedCopies(in: $0, format) }, detections: detections?.files(labels: labels)
        )
    }

    /// Checks that --csv and --json are not both given.
    func check(_ common: CommonOptions) throws {
        if csv && common.json { throw ValidationError("Expected --json or --csv, found both. Leave out one of them.") }
    }

    private func check(_ path: String, _ option: String, _ inputs: PhotoInputOptions) throws {
        try requireNoFile(path, option)
        for folder in inputs.folders where URL(filePath: path).isInside(URL(filePath: folder)) {
            throw ValidationError(
                "\(option): \(path) is in the folder of photos \(folder), where the next run would find the copies. "
                    + "Choose another folder.")
        }
    }
}
