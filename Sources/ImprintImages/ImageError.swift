public import Foundation
public import ImprintCore

/// An image file or a folder of images that cannot be used.
///
/// The text of each case names the file, the problem, the expected state and the fix.
public enum ImageError: DescribedError, Equatable, Sendable {
    /// The file cannot be opened or read; `reason` comes from the operating system.
    case unreadable(file: URL, reason: String)
    /// The file cannot be written; `reason` comes from the operating system.
    case unwritable(file: URL, reason: String)
    /// The image cannot be encoded in the given format; `reason` comes from the encoder.
    case unencodable(format: String, reason: String)
    /// The file is not an image; `found` describes its content ("text", "an empty file").
    case notAnImage(file: URL, found: String)
    /// The file is an image of an unsupported kind; `found` names it ("GIF", "12 bits per sample").
    case unsupported(file: URL, found: String)
    /// The format is supported, but not by this build or on this machine; `reason` explains why.
    case missingDecoder(file: URL, format: ImageFormat, reason: String)
    /// The image data ends early or is damaged, so that a part of the image is missing; `reason` comes from the decoder.
    case truncated(file: URL, reason: String)
    /// The image claims more pixels than `limit`.
    case tooLarge(file: URL, width: Int, height: Int, limit: Int)
    /// The image cannot be decoded in the available memory; `reason` states how much it needs.
    case outOfMemory(file: URL, reason: String)
    /// The pixels in memory do not match their size or layout.
    case invalidPixels(found: String, expected: String)
    /// The folder does not exist.
    case missingFolder(folder: URL)
    /// The path of the folder names something else; `kind` is "a file", "a pipe", "a socket" or "a device".
    case notAFolder(file: URL, kind: String = "a file")
    /// The folder contains neither sub-folders nor images.
    case emptyFolder(folder: URL)
    /// The folder holds images, `images` of them, but no sub-folders that name their labels.
    case noLabelFolders(folder: URL, images: Int)
    /// The folder holds fewer labels than needed; `found` are these labels.
    case tooFewLabels(folder: URL, found: [String], minimum: Int)
    /// The only sub-folder, `name`, has the sub-folders `labels`, which are probably those of the labels.
    ///
    /// `name` may be the path of a deeper folder, such as "photos/photos", in which each folder is the only one of the folder above it.
    case labelsInSubfolder(folder: URL, name: String, labels: [String])
    /// The names of sub-folders look the same as others and differ only in their Unicode normalization; `names` contains all of them.
    case equalNames(folder: URL, names: [String])
    /// The name of a sub-folder shows nothing: it consists of white space or invisible characters, such as U+200B.
    case blankLabel(folder: URL, name: String)
    /// The sub-folder of a label holds no image.
    case labelWithoutImages(folder: URL, label: String)
    /// The folder is a data set of photos with bounding boxes; `found` names the file or folders that show it.
    case hasBoxes(folder: URL, found: String)
    /// The sub-folders are those of a dataset split rather than of labels.
    ///
    /// `splits` are their names, such as "train" and "val", or paths to the folder of the labels, such as "train/train". `labels` are the names of
    /// the sub-folders that all of them have; there may be none if the folder has no other sub-folders.
    case splitFolders(folder: URL, splits: [String], labels: [String])
    /// The folder of a logo, at `path` relative to the folder of photos, is not directly in it, so its photos would count as photos without a logo.
    case logoInSubfolder(folder: URL, path: String)
    /// The folder contains a name that is not UTF-8; in `name`, other bytes than printable ASCII are written as `\xE9`.
    case undecodableName(folder: URL, name: String)
    /// A folder of photos without labels has no photos; `reason` explains why.
    case missingImages(folder: URL, reason: String)
    /// None of the images of a label can be read; `skipped` lists the images of this label.
    case noReadableImages(label: String, skipped: [SkippedImage])
    /// More than half of the images cannot be read.
    case tooManyUnreadable(images: Int, skipped: [SkippedImage])
    /// A photo that is not a file cannot be loaded; `reason` comes from its source.
    case notLoaded(photo: String, reason: String)
    /// The labels or the photos of a source are inconsistent, such as a label that is not unique; see `TrainingSource`.
    case invalidSource(name: String, found: String, expected: String)
    /// The label of photos without a logo differs from the label of a logo only in case, spaces or invisible characters.
    ///
    /// `source` is the name of the source of the photos, such as the path of a photo folder.
    case similarToLogo(source: String, label: String, logo: String)
    /// No augmentation has this name.
    case unknownAugmentation(name: String, known: [String])
}

extension ImageError {
    /// Returns the error of a file that only another process of a training run cannot read.
    package static func unreadableInAnotherProcess(_ file: URL) -> ImageError {
        .unreadable(file: file, reason: "another process cannot read it")
    }

    /// The error in one or two sentences.
    public var description: String {
        switch self {
        case .unreadable(let file, let reason):
            "\(file.displayPath) cannot be read: \(reason). Check the path and its permissions."
        case .unwritable(let file, let reason):
            "\(file.displayPath) cannot be written: \(reason). Check the folder, its permissions and the free space."
        case .unencodable(let format, let reason):
            "The image cannot be encoded as \(format): \(reason)."
        case .notAnImage(let file, let found):
            "\(file.displayPath): expected an image (\(ImageFormat.list)), found \(found). "
                + "Replace the file, or leave it out."
        case .unsupported(let file, let found):
            "\(file.displayPath): found \(found), which is not supported. "
                + "Convert it to JPEG, PNG or WebP, 8 bits per sample."
        case .missingDecoder(let file, let format, let reason):
            "\(file.displayPath): found \(format.rawValue), which cannot be decoded: \(reason). "
                + "Fix that, or convert the photo to JPEG."
        case .truncated(let file, let reason):
            "\(file.displayPath): the image is cut short or damaged (\(reason)). "
                + "Copy it again from its source, or remove it."
        case .tooLarge(let file, let width, let height, let limit):
            "\(file.displayPath): the image has \(width)x\(height) pixels, expected at most "
                + "\(limit / 1_000_000) million. Scale it down."
        case .outOfMemory(let file, let reason):
            "\(file.displayPath): there is not enough memory to decode the image: \(reason). "
                + "Scale it down, or close other programs."
        case .invalidPixels(let found, let expected):
            "The pixel buffer is invalid: found \(found), expected \(expected). "
                + "Check width, height, layout and bytes per row."
        case .missingFolder(let folder):
            "\(folder.displayPath) does not exist, expected a folder with one sub-folder of photos per label. "
                + "Check the path."
        case .notAFolder(let file, let kind):
            "\(file.displayPath) is \(kind), expected a folder with one sub-folder of photos per label."
        case .emptyFolder(let folder):
            "\(folder.displayPath) contains neither sub-folders nor photos, expected one sub-folder of photos per label."
        case .noLabelFolders(let folder, let images):
            "\(folder.displayPath) contains \(counted(images, "photo")) and no sub-folders. "
                + "Put the photos into one sub-folder per label, named after the label."
        case .tooFewLabels(let folder, let found, let minimum):
            "\(folder.displayPath) has \(counted(found.count, "label sub-folder"))"
                + (found.isEmpty ? "" : " (\(found.joined(separator: ", ")))")
                + ", expected at least \(minimum). Add a sub-folder of photos for each further label."
        case .labelsInSubfolder(let folder, let name, let labels):
            "\(folder.displayPath): found only the sub-folder \(quotedName(name)), which has sub-folders of photos "
                + "(\(Self.firstNames(labels))). Expected one sub-folder of photos per label. If these are the labels, use "
                + "\(folder.appending(path: name).displayPath). If \(quotedName(name)) is a label, move the photos out of "
                + "its sub-folders."
        case .equalNames(let folder, let names):
            "\(folder.displayPath) has \(names.count) sub-folders that look the same, "
                + "\(Self.lookalikes(names)), but consist of different Unicode characters. "
                + "Merge or rename them."
        case .blankLabel(let folder, let name):
            "\(folder.displayPath): the sub-folder \(quotedBlank(name)) has a blank name, expected the name of a label. Rename it."
        case .labelWithoutImages(let folder, let label):
            "\(folder.displayPath): the sub-folder of the label \(quotedName(label)) has no photos. Add some, or remove it."
        case .hasBoxes(let folder, let found):
            "\(folder.displayPath): found \(found) of a data set with bounding boxes, expected one sub-folder of photos per label. "
                + "Use the data set, or the file of boxes of each part, as the annotations of a detector."
        case .splitFolders(let folder, let splits, []):
            "\(folder.displayPath): found only the folders \(listed(splits)) of a dataset split, without a sub-folder of photos that all of "
                + "them have. Expected one sub-folder of photos per label. Sort the photos in each folder into sub-folders by label; if "
                + "\(listed(splits)) are labels, rename the folders."
        case .splitFolders(let folder, let splits, let labels):
            "\(folder.displayPath): found the folders \(listed(splits)) of a dataset split, which have the same sub-folders of photos "
                + "(\(Self.firstNames(labels))). Expected one sub-folder of photos per "
                + "label. Use \(Self.uses(of: splits, in: folder))."
        case .logoInSubfolder(let folder, let path):
            "\(folder.displayPath): found the folder \(quotedName(path)), which has the name of a logo, among the photos without a logo. Expected "
                + "the folder of a logo directly in the folder of photos. Move it there, or use "
                + "\(folder.appending(path: path.split(separator: "/").dropLast().joined(separator: "/")).displayPath) as the folder of "
                + "photos."
        case .undecodableName(let folder, let name):
            "\(folder.displayPath): the folder contains the name \"\(name)\", which is not UTF-8. "
                + "Expected names in UTF-8. Rename it."
        case .missingImages(let folder, let reason):
            "\(folder.displayPath): expected a folder of photos, but \(reason). Check the path."
        case .noReadableImages(let label, let skipped):
            "None of the photos of the label \(quotedName(label)) can be read (\(skipped.count) in all). "
                + Self.examples(skipped)
        case .tooManyUnreadable(let images, let skipped):
            "\(skipped.count) of \(images) photos cannot be read, expected at most half. " + Self.examples(skipped)
        case .notLoaded(let photo, let reason):
            "The photo \(photo.debugDescription) cannot be loaded: \(reason). Check its source, or leave the photo out."
        case .invalidSource(let name, let found, let expected):
            "\(name): found \(found), expected \(expected). Correct the source of the photos."
        case .similarToLogo(let source, let label, let logo):
            Self.similarToLogo(source, quotedLookalikes([label, logo]))
        case .unknownAugmentation("none", let known):
            "\"none\" means no augmentation and cannot be combined with others. Expected only \"none\", or names separated by commas: "
                + "\(known.joined(separator: ", "))."
        case .unknownAugmentation(let name, let known):
            "There is no augmentation \"\(name)\". Expected none, or names separated by commas: "
                + "\(known.joined(separator: ", "))."
        }
    }

    /// Returns the names of the first few groups of equal names, with the scalars that distinguish them.
    private static func lookalikes(_ names: [String]) -> String {
        let limit = 5
        let byName = Dictionary(grouping: zip(names, escapingLookalikes(names))) { $0.0 }
        var seen: Set<String> = []
        let groups = names.filter { seen.insert($0).inserted }.map { name in
            byName[name, default: []].map { "\"\($0.1)\"" }.joined(separator: " and ")
        }
        let rest = groups.count > limit ? ["and \(counted(groups.count - limit, "more group"))"] : []
        return (groups.prefix(limit) + rest).joined(separator: "; ")
    }

    /// Returns the first names of a list, for a message.
    private static func firstNames(_ names: [String]) -> String {
        names.prefix(3).joined(separator: ", ") + (names.count > 3 ? ", …" : "")
    }

    /// Returns the folders of a dataset split with their use, such as "data/train as the training photos".
    private static func uses(of splits: [String], in folder: URL) -> String {
        let uses = [("train", "training"), ("val", "validation"), ("test", "test")]
        return listed(
            uses.compactMap { key, use -> String? in
                guard let name = splits.first(where: { BoxFormat.partKey(ofPath: $0) == key }) else { return nil }
                return "\(folder.appending(path: name).displayPath) as the \(use) photos"
            })
    }

    /// Returns the message about photos whose label resembles a logo; `names` are the label and the logo in quotation marks.
    private static func similarToLogo(_ source: String, _ names: [String]) -> String {
        "\(source): photos with the label \(names[0]) count as photos without the logo \(names[1]), because the labels differ only in "
            + "case, spaces or invisible characters. Expected the label \(names[1]) for photos of the logo. "
            + "Rename the label (in a photo folder, the sub-folder) or the logo."
    }

    /// Returns the first few skipped images, with their reasons.
    private static func examples(_ skipped: [SkippedImage]) -> String {
        skipped.prefix(3).map { "\($0.reason)" }.joined(separator: " ")
            + (skipped.count > 3 ? " And \(skipped.count - 3) more." : "")
    }
}

extension URL {
    /// The path without percent encoding, as a person types it.
    package var displayPath: String { path(percentEncoded: false) }

    /// The components of `displayPath`; the first one of an absolute path is "/".
    ///
    /// Unlike `pathComponents`, it keeps U+FEFF at the start of a component.
    package var displayComponents: [String] {
        let text = displayPath
        let names = text.utf8.split(separator: UInt8(ascii: "/")).map { String(decoding: $0, as: UTF8.self) }
        return text.utf8.first == UInt8(ascii: "/") ? ["/"] + names : names
    }
}
