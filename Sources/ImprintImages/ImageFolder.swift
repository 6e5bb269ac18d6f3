public import Foundation
internal import ImprintCore

/// A folder of labelled images: one sub-folder per class, whose name is the label.
public struct ImageFolder: Sendable {
    /// The folder itself.
    public let url: URL
    /// The names of the classes, in the order of their Unicode scalars.
    public private(set) var labels: [String]
    /// The image files, by label and then by path, in the order of Unicode scalars.
    public let items: [TrainingPhoto]
    /// The ignored files: files that are not images, and files beside the sub-folders of the classes.
    public let ignored: [URL]
    /// The SHA-256 digest of a line "path, tab, size in bytes" for every item, in hexadecimal; see docs/reference/model-file-metadata.md.
    ///
    /// It identifies the files that a model was trained on without reading them.
    public let digest: String

    /// Returns the identifier of one of the items: its path relative to the folder.
    public func identifier(of item: TrainingPhoto) -> String {
        item.url.displayComponents.dropFirst(url.displayComponents.count).joined(separator: "/")
    }

    /// Creates a data set from the images in the sub-folders of `url`.
    ///
    /// Each sub-folder is a label, which includes the images in its own sub-folders. A file counts as an image by the
    /// extension of its name or else by its content; it is not decoded. Hidden files and system files (Thumbs.db, …) are
    /// skipped. Symbolic links to files and to folders of labels are followed; links to deeper folders are skipped because they
    /// could form cycles.
    ///
    /// - Parameters:
    ///   - url: The folder.
    ///   - minimumLabels: The minimum number of labels: 2 for training, 1 is enough for evaluation.
    /// - Throws: `ImageError` if the folder is missing, a file, empty, or a data set with bounding boxes, if it holds too few folders of labels or
    ///   the folders of a dataset split, such as train and val, if its only sub-folder holds such a data set or several folders of images
    ///   instead of images, or if a label is blank or has no images.
    public init(at url: URL, minimumLabels: Int = 2) throws(ImageError) {
        try self.init(at: url, minimumLabels: minimumLabels, knownLabels: [])
    }

    /// Creates a data set from the images in the sub-folders of `url`, as `init(at:minimumLabels:)`.
    /// - Parameter knownLabels: The labels of a model or of other photos; a single sub-folder with such a name is a class, regardless of its content.
    package init(at url: URL, minimumLabels: Int, knownLabels: [String]) throws(ImageError) {
        guard let status = FileStatus(url) else { throw .missingFolder(folder: url) }
        guard status.isFolder else { throw .notAFolder(file: url, kind: status.specialKind ?? "a file") }
        let root = try FolderListing(url)
        if let found = Self.signOfBoxes(root, url) { throw .hasBoxes(folder: url, found: found) }
        guard !root.folders.isEmpty else {
            let images = root.files.count { isImage(url.appending(path: $0)) }
            throw images == 0 ? .emptyFolder(folder: url) : .noLabelFolders(folder: url, images: images)
        }
        if root.folders.count == 1 {
            try Self.checkNesting(
                root.folders[0], in: url, minimumLabels: minimumLabels, knownLabels: knownLabels)
        }
        guard root.folders.count >= minimumLabels else {
            throw .tooFewLabels(folder: url, found: root.folders, minimum: minimumLabels)
        }
        try Self.checkSplits(root.folders, in: url)
        try Self.checkNames(root.folders, in: url)
        var classes: [(label: String, paths: [String])] = []
        for name in root.folders { classes.append((name, try filePaths(below: name, in: url))) }
        try self.init(url, classes, ignored: root.files.map { url.appending(path: $0) })
    }

    /// Creates the data set of a logo detector from the photos in a folder.
    ///
    /// A sub-folder with the name of a logo has the photos that show this logo. All other images, directly in the folder or in other sub-folders at
    /// any depth that are not named after a logo, are background photos, which show none of the logos. Their label is the name of the only other
    /// sub-folder, or else `noLogoLabel`.
    /// - Parameters:
    ///   - url: The folder.
    ///   - logos: The labels of the logos.
    /// - Throws: `ImageError` if the folder is missing, a file or without images, if the sub-folder of a logo has no images or is inside another
    ///   sub-folder, or if the name of another sub-folder at any depth differs from the label of a logo only in case, spaces or invisible characters.
    public init(at url: URL, logos: [String]) throws(ImageError) {
        try self.init(at: url, logos: logos, backgroundLabel: nil)
    }

    /// Creates the data set of a logo detector, as `init(at:logos:)`.
    /// - Parameter backgroundLabel: The label of background photos; nil for the name of the only other sub-folder, or else `noLogoLabel`.
    package init(at url: URL, logos: [String], backgroundLabel: String?) throws(ImageError) {
        guard let status = FileStatus(url) else { throw .missingFolder(folder: url) }
        guard status.isFolder else { throw .notAFolder(file: url, kind: status.specialKind ?? "a file") }
        let root = try FolderListing(url)
        let others = root.folders.filter { !logos.contains($0) }
        try Self.checkNames(root.folders.filter(logos.contains), in: url)
        try checkLabelsWithoutLogo(others, logos: logos, source: url.displayPath)
        var classes: [(label: String, paths: [String])] = []
        for name in root.folders where logos.contains(name) {
            classes.append((name, try filePaths(below: name, in: url)))
        }
        var background = root.files
        for name in others {
            let paths = try filePaths(below: name, in: url)
            try Self.checkSubfolders(paths, logos: logos, in: url)
            background += paths
        }
        if background.contains(where: { isImage(url.appending(path: $0)) }) {
            let label = backgroundLabel ?? (others.count == 1 ? others[0] : Self.noLogoLabel)
            guard !logos.contains(label) else {
                throw .invalidSource(
                    name: url.displayPath, found: "photos without a logo, and the logo \(quotedName(label))",
                    expected: "another label for the logo: this one is for photos without a logo")
            }
            try Self.checkNames([label], in: url)
            try checkLabelsWithoutLogo([label], logos: logos, source: url.displayPath)
            classes.append((label, background.sorted(by: precedes)))
        } else if classes.isEmpty {
            throw .missingImages(folder: url, reason: "it holds none")
        }
        try self.init(url, classes.sorted { precedes($0.label, $1.label) }, ignored: [])
    }

    /// Checks that no name is blank, and that no names are equal strings of different bytes.
    ///
    /// Swift compares strings by canonical equivalence, so their labels would be the same.
    private static func checkNames(_ names: [String], in folder: URL) throws(ImageError) {
        if let name = names.first(where: isBlank) { throw .blankLabel(folder: folder, name: name) }
        let byName = Dictionary(grouping: names) { $0 }
        let twins = names.filter { byName[$0, default: []].count > 1 }
        if !twins.isEmpty { throw .equalNames(folder: folder, names: twins) }
    }

    /// The label of photos without a logo, unless the name of a folder is their label.
    public static let noLogoLabel = "none"

    /// The text that results show instead of a label if an image shows none of the labels.
    package static let rejectionText = "none of these"

    /// Returns the first label that equals a reserved one, or looks like it apart from case; nil if all labels are allowed.
    package static func reservedLabel(
        in labels: [String], reserved: [String] = [ImageFolder.noLogoLabel, ImageFolder.rejectionText]
    ) -> String? {
        for name in reserved {
            if labels.contains(name) { return name }
            if let label = similarLabel(to: name, in: labels, looksEqual: true) { return label }
        }
        return nil
    }

    /// Creates a data set from classes, each with the paths of its files relative to the folder.
    private init(
        _ url: URL, _ classes: [(label: String, paths: [String])], ignored others: [URL]
    ) throws(ImageError) {
        var items: [TrainingPhoto] = []
        var ignored = others
        var hash = SHA256()
        for (label, (name, paths)) in classes.enumerated() {
            let countBefore = items.count
            for path in paths {
                let file = url.appending(path: path)
                guard isImage(file) else {
                    ignored.append(file)
                    continue
                }
                items.append(TrainingPhoto(url: file, label: label))
                hash.update("\(path)\t\(FileStatus(file)?.size ?? 0)\n".utf8Span.span.bytes)
            }
            guard items.count > countBefore else { throw .labelWithoutImages(folder: url, label: name) }
        }
        self.url = url
        labels = classes.map(\.label)
        self.items = items
        self.ignored = ignored
        digest = hash.hexadecimal
    }
}

extension ImageFolder {
    /// Returns the same images with new class names, one for each of `labels`, in their order.
    package func renaming(labels new: [String]) -> ImageFolder {
        var folder = self
        folder.labels = new
        return folder
    }

    /// Returns the SHA-256 digest of the names and sizes of files, in hexadecimal.
    package static func digest(of files: [URL]) -> String {
        let lines = files.map { "\($0.lastPathComponent)\t\(FileStatus($0)?.size ?? 0)\n" }
        return SHA256.hexadecimal(of: Array(lines.joined().utf8))
    }

    /// Returns all images in a folder and its sub-folders, in the order of Unicode scalars of their paths.
    ///
    /// Hidden files and links to folders are skipped.
    /// - Throws: `ImageError` if the folder is missing, a file, or without images.
    public static func images(in folder: URL) throws(ImageError) -> [URL] {
        try imagePaths(in: folder).map { folder.appending(path: $0) }
    }

    /// Returns the paths of all images in a folder and its sub-folders, relative to the folder, as `images(in:)`.
    /// - Parameter followsLink: Whether to follow the link to a folder at a relative path; it must not form cycles.
    package static func imagePaths(
        in folder: URL, followsLink: (String) -> Bool = { _ in false }
    ) throws(ImageError) -> [String] {
        let (paths, unreadable) = try readableImagePaths(in: folder, followsLink: followsLink)
        if let first = unreadable.first {
            throw .unreadable(file: folder.appending(path: first.path), reason: first.reason)
        }
        return paths
    }

    /// Returns the paths of all images in a folder and its readable sub-folders, relative to the folder, as `images(in:)`, and the
    /// sub-folders that cannot be read.
    package static func readableImagePaths(
        in folder: URL, followsLink: (String) -> Bool = { _ in false }
    ) throws(ImageError) -> (paths: [String], unreadable: [UnreadableFolder]) {
        guard let status = FileStatus(folder) else { throw .missingImages(folder: folder, reason: "it does not exist") }
        guard status.isFolder else { throw .missingImages(folder: folder, reason: "it is a file") }
        var unreadable: [UnreadableFolder] = []
        let paths = try readableFilePaths(below: "", in: folder, &unreadable, followsLink: followsLink)
            .filter { isImage(folder.appending(path: $0)) }
        guard !paths.isEmpty || !unreadable.isEmpty else {
            throw .missingImages(folder: folder, reason: "it holds none")
        }
        return (paths, unreadable)
    }
}

/// A sub-folder that cannot be read.
package struct UnreadableFolder: Equatable {
    /// The path, relative to the folder that contains it.
    package let path: String
    /// The reason of the system.
    package let reason: String
}

/// Checks that no label of photos without a logo is similar to a logo: photos of the logo would silently teach the opposite.
/// - Parameters:
///   - labels: The labels of photos without a logo.
///   - logos: The labels of the logos.
///   - source: The name of the source of the photos.
/// - Throws: `ImageError.similarToLogo` if the labels look alike apart from their case.
package func checkLabelsWithoutLogo(_ labels: [String], logos: [String], source: String) throws(ImageError) {
    for label in labels {
        guard let logo = similarLabel(to: label, in: logos, looksEqual: true) else { continue }
        throw .similarToLogo(source: source, label: label, logo: logo)
    }
}

/// Returns the relative paths of all files below the folder `path` of `root`, in the order of Unicode scalars.
///
/// An empty path is `root` itself, which may be a link. Hidden files and folders, and links to deeper folders, are skipped.
/// - Throws: `ImageError` if a folder cannot be read, or if a name is not UTF-8.
package func filePaths(below path: String, in root: URL) throws(ImageError) -> [String] {
    var unreadable: [UnreadableFolder] = []
    let paths = try readableFilePaths(below: path, in: root, &unreadable)
    if let first = unreadable.first { throw .unreadable(file: root.appending(path: first.path), reason: first.reason) }
    return paths
}

/// Returns the relative paths of all files below the folder `path` of `root`, as `filePaths(below:in:)`.
/// - Parameters:
///   - unreadable: Receives the deeper folders that cannot be read.
///   - followsLink: Whether to follow the link to a deeper folder at a path relative to `root`; it must not form cycles.
/// - Throws: `ImageError` if the folder `path` cannot be read, or if a name is not UTF-8.
package func readableFilePaths(
    below path: String, in root: URL, _ unreadable: inout [UnreadableFolder],
    followsLink: (String) -> Bool = { _ in false }
) throws(ImageError) -> [String] {
    var paths: [String] = []
    var pending = [path]
    while let folder = pending.popLast() {
        let listing: FolderListing
        do throws(ImageError) {
            listing = try FolderListing(folder.isEmpty ? root : root.appending(path: folder))
        } catch {
            guard folder != path, case .unreadable(_, let reason) = error else { throw error }
            unreadable.append(UnreadableFolder(path: folder, reason: reason))
            continue
        }
        func inside(_ name: String) -> String { folder.isEmpty ? name : "\(folder)/\(name)" }
        paths += listing.files.map(inside)
        pending += listing.folders.map(inside).filter { !isLink(root.appending(path: $0)) || followsLink($0) }
    }
    return paths.sorted(by: precedes)
}

/// The names of the files and folders directly in a folder, in order; follows links and skips hidden files.
package struct FolderListing {
    package private(set) var files: [String] = []
    package private(set) var folders: [String] = []

    /// Lists a folder.
    /// - Throws: `ImageError` if it cannot be read, or if a name is not UTF-8.
    package init(_ url: URL) throws(ImageError) {
        for name in try Self.names(in: url).sorted(by: precedes) where !isHidden(name) {
            if FileStatus(url.appending(path: name))?.isFolder == true {
                folders.append(name)
            } else {
                files.append(name)
            }
        }
    }
}

extension FolderListing {
    /// Returns the names in a folder, exactly as stored in the file system, except those that start with a dot.
    private static func names(in url: URL) throws(ImageError) -> [String] {
        func unreadable(_ code: Int32) -> ImageError {
            .unreadable(file: url, reason: errorText(code))
        }
        let descriptor = retryingInterrupts { open(url.displayPath, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw unreadable(errno) }
        let entries: [[UInt8]]
        do {
            entries = try entryNames(closing: descriptor)
        } catch {
            throw unreadable(error.code)
        }
        var names: [String] = []
        // Hidden files are skipped even if their names are not UTF-8.
        for bytes in entries where bytes.first != UInt8(ascii: ".") {
            guard let name = String(validating: bytes, as: UTF8.self) else {
                throw .undecodableName(folder: url, name: escapedName(bytes))
            }
            names.append(name)
        }
        return names
    }
}

/// Whether a name belongs to a hidden file or a system file.
private func isHidden(_ name: String) -> Bool {
    name.hasPrefix(".")
        || ["thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "icon\r"].contains(name.lowercased())
}

/// Whether a file or folder is a symbolic link.
func isLink(_ url: URL) -> Bool {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: url.displayPath)) != nil
}

/// The extensions of the names of images, in supported formats and others, in lower case.
package let imageExtensions = Set(
    ImageFormat.allCases.flatMap(\.fileExtensions) + UnsupportedImageFormat.allCases.flatMap(\.fileExtensions))

/// Whether a file counts as an image, by the extension of its name or else by the start of its content.
package func isImage(_ url: URL) -> Bool {
    if imageExtensions.contains(url.pathExtension.lowercased()) { return true }
    return firstBytes(FileKind.prefixLength, of: url).map { FileKind($0).isImage } ?? false
}
