internal import ArgumentParser
internal import Foundation
internal import Imprint
internal import ImprintCore
internal import ImprintImages
internal import ImprintSynthesis

/// A label and its artwork, as "LABEL=FILE" or "LABEL=RECIPE".
struct LabelledArtwork: ExpressibleByArgument {
    let label: String
    /// The path of an image or recipe, or the name of a recipe.
    let source: String

    /// The value as it was typed.
    private let text: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        (label, source) = parts.count == 2 ? (parts[0], parts[1]) : ("", "")
        text = argument
    }

    /// Checks that there are a label and a file.
    func check() throws {
        if isBlank(label) || source.isEmpty {
            throw ValidationError("--artwork is \(visibleName(text)), expected LABEL=FILE, such as Logo=logo.png.")
        }
        try requirePaths([source])
    }

    var defaultValueDescription: String { "\(label)=\(source)" }
}

/// The value of --backgrounds: a folder of photos without logos, or "drawn" for drawn patterns.
struct BackgroundSource: ExpressibleByArgument, CustomStringConvertible {
    /// The value as it was typed.
    let description: String

    init?(argument: String) { description = argument }

    /// Whether the backgrounds are drawn patterns.
    var isDrawn: Bool { description == "drawn" }

    /// Returns the photos; none for drawn patterns.
    /// - Throws: `LocatedError` with an `ImageError` if it is not a folder of photos.
    func files() throws -> [URL] {
        guard !isDrawn else { return [] }
        do {
            return try ImageFolder.images(in: URL(filePath: description))
        } catch {
            throw LocatedError(location: "--backgrounds", error: error)
        }
    }

    /// Returns the help of the option.
    /// - Parameter defaultValue: The backgrounds without the option.
    static func help(default defaultValue: String) -> ArgumentHelp {
        ArgumentHelp(
            "A folder of photos without logos to use as backgrounds, or drawn for drawn patterns. (default: \(defaultValue))",
            valueName: "folder")
    }
}

/// The artwork of logos for compositing.
struct ArtworkOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The label of a logo and its artwork: an image, ideally with transparency or a plain background, an SVG "
                + "drawing, or a recipe in datasets/. "
                + "Repeat the option with the same label for variants of a logo, and with other labels for other logos.",
            valueName: "label=file"))
    var artwork: [LabelledArtwork] = []

    func validate() throws {
        for artwork in artwork { try artwork.check() }
        for label in labels where label.contains("/") || label.hasPrefix(".") {
            throw ValidationError(
                "--artwork \(label)=…: the label contains \"/\" or begins with \".\". Expected the name of a folder.")
        }
        if let label = ImageFolder.reservedLabel(in: labels) {
            throw ValidationError(
                "--artwork \(label)=…: this label is reserved for photos without a logo. Choose another label.")
        }
    }

    /// Checks that backgrounds are given only with artwork.
    func check(_ backgrounds: BackgroundSource?) throws {
        guard let backgrounds else { return }
        try requirePaths([backgrounds.description])
        if artwork.isEmpty { throw ValidationError("--backgrounds needs --artwork LABEL=FILE, which is missing.") }
    }

    /// The labels in the order of the command line, without duplicates.
    var labels: [String] {
        artwork.map(\.label).reduce(into: []) { labels, label in
            if !labels.contains(label) { labels.append(label) }
        }
    }

    /// Loads the artwork of each label.
    func load() throws -> [String: [Artwork]] {
        try artwork.reduce(into: [:]) { artworks, named in
            let artwork = try Artwork.load(named: named.source)
            for note in artwork.notes { Terminal.warn(note) }
            artworks[named.label, default: []].append(artwork)
        }
    }

    /// The command-line arguments that set the same options.
    var arguments: [String] { artwork.flatMap { ["--artwork", "\($0.label)=\($0.source)"] } }

    /// Returns a compositor for each label; all compositors share the backgrounds.
    /// - Parameter backgrounds: The backgrounds; nil for drawn patterns.
    func compositors(
        backgrounds: BackgroundSource?, size: Int, seed: UInt64, workers: Workers
    ) throws -> [(label: String, compositor: Compositor)] {
        warnAboutSimilarLabels(labels, consequence: "Imprint draws them as different logos.")
        let artworks = try load()
        let photos = try (backgrounds?.files() ?? []).map { TrainingPhoto(url: $0, labels: []) }
        var bar = ProgressBar()
        defer { bar.clear() }
        let backdrops = try Backdrops(photos, size: size, seed: seed, workers: workers) { read in
            bar.draw("reading", done: read, of: photos.count)
        }
        bar.clear()
        for image in backdrops.skipped { Terminal.warn("Skipped: \(image.reason)") }
        return labels.map { label in
            let compositor = Compositor(
                artworks: artworks[label] ?? [], backdrops: backdrops, seed: seed,
                label: labels.count > 1 ? label : nil)
            return (label, compositor)
        }
    }
}
