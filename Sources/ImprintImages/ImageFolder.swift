public import Foundation
internal import ImprintCore

/// A folder of labelled images: one sub-folder per class, whose name is the label.
public struct ImageFolder: Sendable {
    /// One labelled image file.
    public struct Item: Sendable, Hashable {
        /// Where the file is.
        public let url: URL
        /// The index of its class in `ImageFolder.labels`.
        public let label: Int

        /// Makes an item of a file and the index of its class.
        public init(url: URL, label: Int) {
            self.url = url
            self.label = label
        }
    }

    /// The folder itself.
    public let url: URL
    /// The names of the classes, in the order of their Unicode scalars.
    public private(set) var labels: [String]
    /// The image files, by label and then by path, in the order of Unicode scalars.
    public let items: [Item]
    /// The files that were left out: those that are no images, and those beside the sub-folders of the classes.
    public let ignored: [URL]
    /// The SHA-256 digest of a line "path, tab, size in bytes" for every item, in hexadecimal; see docs/weights-file.md.
    ///
    /// It tells whether a data set has the files that a model was trained on, without reading them.
    public let digest: String

    /// The path of one of the items, relative to the folder.
    public func path(of item: Item) -> String {
        item.url.pathComponents.dropFirst(url.pathComponents.count).joined(separator: "/")
    }

    /// Finds the images in the sub-folders of `url`.
    ///
    /// Each sub-folder is a class, and the images in its own sub-folders belong to it. A file counts as an image by the
    /// extension of its name or else by its content; whether it can be decoded shows later. Hidden files, and those
    /// that systems leave behind (Thumbs.db, …), do not exist here. Symbolic links to files and to the folders of
    /// classes are followed; links to folders further down are left out, for they could lead in circles.
    ///
    /// - Parameter minimumClasses: How many classes are needed: 2 to train, 1 may do to evaluate.
    /// - Throws: `ImageError` if the folder is missing, a file or empty, holds no class folders or too few, or where
    ///   a class has no images.
    public init(at url: URL, minimumClasses: Int = 2) throws(ImageError) {
        guard let status = FileStatus(url) else { throw .missingFolder(folder: url) }
        guard status.isFolder else { throw .notAFolder(file: url) }
        let root = try FolderListing(url)
        guard !root.folders.isEmpty else {
            let images = root.files.count { isImage(url.appending(path: $0)) }
            throw images == 0 ? .emptyFolder(folder: url) : .noClassFolders(folder: url, images: images)
        }
        guard root.folders.count >= minimumClasses else {
            throw .tooFewClasses(folder: url, found: root.folders, minimum: minimumClasses)
        }
        // Strings are equal where people see the same, so that a model could not tell such labels apart.
        let byName = Dictionary(grouping: root.folders) { $0 }
        if let twins = byName.values.first(where: { $0.count > 1 }) { throw .equalNames(folder: url, names: twins) }
        var items: [Item] = []
        var ignored = root.files.map { url.appending(path: $0) }
        var hash = SHA256()
        for (label, name) in root.folders.enumerated() {
            let countBefore = items.count
            for path in try filePaths(below: name, in: url) {
                let file = url.appending(path: path)
                guard isImage(file) else {
                    ignored.append(file)
                    continue
                }
                items.append(Item(url: file, label: label))
                hash.update("\(path)\t\(FileStatus(file)?.size ?? 0)\n".utf8Span.span.bytes)
            }
            guard items.count > countBefore else { throw .classWithoutImages(folder: url, label: name) }
        }
        self.url = url
        labels = root.folders
        self.items = items
        self.ignored = ignored
        digest = hash.hexadecimal
    }
}

extension ImageFolder {
    /// The same images, and labels that none of them bears; these come last, so that every item keeps the index of its own.
    package func adding(labels new: [String]) -> ImageFolder {
        var folder = self
        folder.labels += new.filter { !labels.contains($0) }
        return folder
    }

    /// The same images, whose classes have other names: one for each of `labels`, in their order.
    package func renaming(labels new: [String]) -> ImageFolder {
        var folder = self
        folder.labels = new
        return folder
    }

    /// The SHA-256 digest of the names and sizes of files, in hexadecimal.
    package static func digest(of files: [URL]) -> String {
        let lines = files.map { "\($0.lastPathComponent)\t\(FileStatus($0)?.size ?? 0)\n" }
        return SHA256.hexadecimal(of: Array(lines.joined().utf8))
    }

    /// All images in a folder and in those below it, whatever they are called, in the order of Unicode scalars.
    ///
    /// Hidden files are left out, and so are links to folders.
    /// - Throws: `ImageError` if the folder is missing, a file, or holds no images.
    public static func images(in folder: URL) throws(ImageError) -> [URL] {
        guard let status = FileStatus(folder) else { throw .missingImages(folder: folder, reason: "it does not exist") }
        guard status.isFolder else { throw .missingImages(folder: folder, reason: "it is a file") }
        let images = try filePaths(below: "", in: folder).map { folder.appending(path: $0) }.filter(isImage)
        guard !images.isEmpty else { throw .missingImages(folder: folder, reason: "it holds none") }
        return images
    }
}

/// The relative paths of all files below the folder `path` of `root` (itself where empty), in the order of Unicode scalars.
func filePaths(below path: String, in root: URL) throws(ImageError) -> [String] {
    var paths: [String] = []
    var pending = [path]
    while let folder = pending.popLast() {
        let listing = try FolderListing(folder.isEmpty ? root : root.appending(path: folder))
        func inside(_ name: String) -> String { folder.isEmpty ? name : "\(folder)/\(name)" }
        paths += listing.files.map(inside)
        pending += listing.folders.map(inside).filter { !isLink(root.appending(path: $0)) }
    }
    return paths.sorted(by: precedes)
}

/// The names of the files and folders directly in a folder, links followed and hidden ones left out, in order.
struct FolderListing {
    var files: [String] = []
    var folders: [String] = []

    init(_ url: URL) throws(ImageError) {
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
    /// The names in a folder, as the file system has them.
    ///
    /// `FileManager` leaves out or changes names that are not UTF-8, which would silently drop a label or photos.
    private static func names(in url: URL) throws(ImageError) -> [String] {
        guard let stream = opendir(url.displayPath) else {
            throw .unreadable(file: url, reason: String(cString: strerror(errno)))
        }
        defer { closedir(stream) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            // Read if it is: an entry is only as long as its name.
            let start = UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
            let bytes = Array(
                UnsafeRawBufferPointer(start: start, count: strlen(start.assumingMemoryBound(to: CChar.self))))
            // Hidden files do not count, whatever they are called.
            if bytes.first == UInt8(ascii: ".") { continue }
            guard let name = String(validating: bytes, as: UTF8.self) else {
                throw .undecodableName(folder: url, name: escaped(bytes))
            }
            names.append(name)
        }
        guard errno == 0 else { throw .unreadable(file: url, reason: String(cString: strerror(errno))) }
        return names
    }

    /// A name whose bytes that are no printable ASCII characters are written as `\xE9`, and a backslash as `\x5C`.
    private static func escaped(_ name: [UInt8]) -> String {
        name.map { byte in
            if (0x20..<0x7F).contains(byte), byte != UInt8(ascii: "\\") { return String(UnicodeScalar(byte)) }
            return (byte < 0x10 ? "\\x0" : "\\x") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}

/// Whether a name is that of a hidden file, or of one that a system leaves behind for itself.
private func isHidden(_ name: String) -> Bool {
    name.hasPrefix(".")
        || ["thumbs.db", "ehthumbs.db", "desktop.ini", "__macosx", "icon\r"].contains(name.lowercased())
}

private func isLink(_ url: URL) -> Bool {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: url.displayPath)) != nil
}

/// Whether a file counts as an image: by the extension of its name, or else by how its content begins.
func isImage(_ url: URL) -> Bool {
    let extensions: Set = [
        "jpg", "jpeg", "jpe", "jfif", "png", "webp", "heic", "heif", "avif", "gif", "bmp", "tif", "tiff",
    ]
    if extensions.contains(url.pathExtension.lowercased()) { return true }
    guard FileStatus(url)?.isFile == true, let file = try? FileHandle(forReadingFrom: url) else { return false }
    defer { try? file.close() }
    guard let head = try? file.read(upToCount: FileKind.prefixLength) else { return false }
    return FileKind([UInt8](head)).isImage
}
