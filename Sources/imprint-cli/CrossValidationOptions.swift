internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining

/// The options of cross-validation.
struct CrossValidationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Cross-validation: split the photos into this many folds, with near-duplicates and bursts in one fold, and evaluate each fold with a "
                + "model that is trained on the others.", valueName: "number"))
    var folds: Int?

    @Option(
        help: ArgumentHelp(
            "The seeds of repeated cross-validations, such as 1,2,3: each splits the photos again. (default: --seed)",
            valueName: "list"))
    var seeds: String?

    @Option(
        help: ArgumentHelp(
            "Further groups of photos that stay in one fold: a JSON list of lists of paths, relative to the folder of photos, or as "
                + "in the list or the annotation file.",
            valueName: "file.json"))
    var groups: String?

    @Flag(help: "Evaluate the folds with the average of each photo and its mirror image; not for detectors.")
    var mirror = false

    @Option(
        help: ArgumentHelp(
            "A folder that keeps the model and predictions of each finished fold; if you repeat the command, only the other folds are "
                + "trained.", valueName: "folder"))
    var keep: String?

    @Option(
        help: ArgumentHelp(
            "A CSV file to write, with the fold, the path (relative to the folder of photos or as in the list), the label, the "
                + "prediction and the confidences of each photo.",
            valueName: "file.csv"))
    var predictions: String?

    func validate() throws {
        try requirePaths([groups].compactMap { $0 })
        if let predictions { try requireOutputPath(predictions, "--predictions") }
        if let keep {
            try requireOutputPath(keep, "--keep")
            try requireNoFile(keep, "--keep")
        }
        let dependent = [
            ("--seeds", seeds != nil), ("--groups", groups != nil), ("--mirror", mirror), ("--keep", keep != nil),
            ("--predictions", predictions != nil),
        ].filter(\.1).map(\.0)
        guard let folds else {
            guard dependent.isEmpty else {
                throw ValidationError(
                    "\(dependent.joined(separator: ", ")): there is no cross-validation without folds. Add --folds.")
            }
            return
        }
        try require(folds, "--folds", in: 2...1_000_000)
        _ = try seedList()
    }

    /// Checks that validation photos are a fraction of the photos.
    func checkValidation(_ dataset: DatasetOptions) throws {
        guard folds != nil, let folder = dataset.validationFolder else { return }
        throw ValidationError(
            "--validation is the folder \(folder.path(percentEncoded: false)), whose photos could resemble the test photos of a fold. Expected a "
                + "fraction with --folds, such as --validation 0.1.")
    }

    /// The files that the command writes.
    var outputs: [OutputFile] {
        [predictions].compactMap { $0 }.map {
            OutputFile(option: "--predictions", path: $0, kind: .predictionTable)
        }
    }

    /// The files that the command reads, each with its role.
    var inputs: [(role: String, path: String)] {
        [groups].compactMap { $0 }.map { ("the groups", $0) }
    }

    /// Checks that the folder of finished folds is not inside a folder of photos.
    func checkFolders(photoFolders: [URL?]) throws {
        if let keep { try requireOutside(keep, "--keep", of: photoFolders) }
    }

    /// The options of the library, or nil without --folds.
    func options() throws -> CrossValidation.Options? {
        guard let folds else { return nil }
        var options = CrossValidation.Options()
        options.folds = folds
        options.seeds = try seedList()
        options.groups = try groups.map(Self.readGroups) ?? []
        options.averagesFlipped = mirror
        options.foldsFolder = keep.map { URL(filePath: $0, directoryHint: .notDirectory) }
        return options
    }

    /// The command-line arguments that set the same options, without output files.
    var arguments: [String] {
        option("--folds", folds) + option("--seeds", seeds) + option("--groups", groups) + flag("--mirror", mirror)
    }

    private func seedList() throws -> [UInt64]? {
        guard let seeds else { return nil }
        let numbers = seeds.split(separator: ",", omittingEmptySubsequences: false).map { UInt64($0) }
        let known = numbers.compactMap { $0 }
        guard known.count == numbers.count, Set(known).count == known.count else {
            throw ValidationError(
                "--seeds is \(seeds), expected different whole numbers from 0 to \(UInt64.max), separated by commas.")
        }
        return known
    }

    private static func readGroups(_ path: String) throws -> [[String]] {
        let limit = 256 << 20
        guard let data = try contents(ofFileOrPipe: path, limit: limit) else {
            throw InvalidContent(
                description:
                    "--groups: \(path): it has more than \(limit) bytes, expected a smaller list of lists of paths.")
        }
        guard let groups = try? JSONDecoder().decode([[String]].self, from: data) else {
            let format = BoxFormat(data, of: URL(filePath: path))
            let found =
                format.map { "it has bounding boxes in the \($0.rawValue) format" }
                ?? "it is not a JSON list of lists of paths"
            throw InvalidContent(
                description:
                    "--groups: \(path): \(found), expected [[\"label/1.jpg\", \"label/2.jpg\"], …]."
                    + (format == nil ? "" : " \(annotationsHint)"))
        }
        return groups
    }
}
