internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintImages
internal import ImprintTraining

/// The data of logos that a personalization adds to a detector.
struct NewLogoOptions: ParsableArguments {
    @OptionGroup var artworkOptions: ArtworkOptions

    @Option(
        help: ArgumentHelp(
            "A folder of photos without the new logos, or drawn for drawn patterns. The photos are negative examples and the backgrounds of "
                + "composites. (default: drawn)", valueName: "folder"))
    var backgrounds: BackgroundSource?

    @Option(
        help: ArgumentHelp(
            "The bounding boxes of all new logos in some photos: a file or folder in COCO, Create ML, YOLO or Pascal VOC format. Boxes "
                + "of logos that the model knows are negative examples.", valueName: "file"))
    var annotations: String?

    /// Whether neither artwork nor boxes are given.
    private var isEmpty: Bool { artworkOptions.artwork.isEmpty && annotations == nil }

    /// Checks that there are either photos, with labels or corrections, or a new logo.
    /// - Parameters:
    ///   - data: The folder of photos.
    ///   - hasCorrections: Whether photos are given to which the model gives a wrong label.
    ///   - photoOptions: The given options that apply only to a folder of photos.
    func check(data: String?, hasCorrections: Bool, photoOptions: [String]) throws {
        try requirePaths([annotations, backgrounds?.description].compactMap { $0 })
        guard !isEmpty else {
            if backgrounds != nil {
                throw ValidationError(
                    "--backgrounds needs --artwork LABEL=FILE or --annotations FILE, which are missing.")
            }
            if data == nil && !hasCorrections {
                throw ValidationError(
                    "There is nothing to learn from, expected a folder of photos, --not LABEL=PATH, --artwork LABEL=FILE or --annotations FILE."
                )
            }
            return
        }
        if hasCorrections {
            throw ValidationError(
                "--not corrects labels that the model has, and is not available with --artwork or --annotations. Name photos without the new "
                    + "logos with --backgrounds, or run the subcommand once for each; --resume adds the second to the first."
            )
        }
        if let data {
            throw ValidationError(
                "personalize learns from a folder of photos or from new logos, found both (\(data)). Leave out one of them; --resume adds "
                    + "the second to the first.")
        }
        if !photoOptions.isEmpty {
            throw ValidationError(
                "\(photoOptions.joined(separator: ", ")): not available with --artwork or --annotations. Leave out one of them."
            )
        }
    }

    /// The files that the output must not replace, with their descriptions.
    var inputs: [(role: String, path: String)] {
        artworkOptions.artwork.map { ("the artwork", $0.source) }
            + (annotations.map { [("the annotations", $0)] } ?? [])
    }

    /// Reads the data.
    func personalizer(_ detector: ImageClassifier, threads: Int) throws -> DetectorPersonalizer {
        let boxes = try annotations.map {
            try BoxAnnotations(contentsOf: URL(filePath: $0), part: .training, threads: threads)
        }
        boxes?.printWarnings()
        var configuration = DetectorPersonalizer.Configuration()
        configuration.threads = threads
        return try DetectorPersonalizer(
            detector, artwork: artworkOptions.load(), annotations: boxes, backgrounds: backgrounds?.files() ?? [],
            configuration: configuration)
    }
}
