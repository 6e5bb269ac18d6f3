internal import Foundation
internal import ImprintCore
internal import ImprintImages

/// Reads an annotation file up to the size limit, and removes a byte order mark.
func annotationData(_ url: URL) throws(BoxAnnotationsError) -> Data {
    guard let status = FileStatus(url) else {
        throw .unreadable(file: url, reason: "the file does not exist, or you may not read its folder")
    }
    // Reading a device or a pipe may never end.
    if let kind = status.specialKind { throw .unreadable(file: url, reason: "it is \(kind)") }
    guard status.size <= BoxAnnotations.byteLimit else {
        throw .tooLarge(file: url, byteCount: status.size, limit: BoxAnnotations.byteLimit)
    }
    let needed = BoxAnnotations.memoryFactor * status.size
    guard SystemMemory.allows(needed) else {
        throw .tooLargeForMemory(file: url, byteCount: status.size, needed: needed)
    }
    do {
        let text = try Data(contentsOf: url).withoutByteOrderMark
        return text.startIndex == 0 ? text : Data(text)
    } catch {
        throw .unreadable(file: url, reason: reason(of: error))
    }
}

/// Reads an annotation file as text in UTF-8.
func annotationText(_ url: URL) throws(BoxAnnotationsError) -> String {
    let data = try annotationData(url)
    guard let text = String(validating: data, as: UTF8.self), !data.contains(0) else {
        throw .invalidSyntax(file: url, format: "text", reason: "it is not in UTF-8")
    }
    return text
}

/// Returns the relative paths of the files with one of the given extensions, in the order of Unicode scalars.
///
/// The folder may be a link. Hidden files and folders are skipped: macOS adds hidden files with the same extensions to archives, and Jupyter keeps
/// copies of files in .ipynb_checkpoints.
/// - Parameters:
///   - isRecursive: Whether to search the sub-folders, too.
///   - skipsUnreadable: Whether to skip sub-folders that cannot be read.
/// - Throws: `BoxAnnotationsError.unreadable` if a folder cannot be read; `ImageError` if a name is not UTF-8.
func annotationPaths(
    in folder: URL, extensions: Set<String>, isRecursive: Bool = true, skipsUnreadable: Bool = false
) throws -> [String] {
    var paths: [String] = []
    var unreadable: [UnreadableFolder] = []
    do throws(ImageError) {
        paths = try isRecursive ? readableFilePaths(below: "", in: folder, &unreadable) : FolderListing(folder).files
    } catch {
        guard case .unreadable(let file, let reason) = error else { throw error }
        throw BoxAnnotationsError.unreadable(file: file, reason: reason)
    }
    if !skipsUnreadable, let first = unreadable.first {
        throw BoxAnnotationsError.unreadable(file: folder.appending(path: first.path), reason: first.reason)
    }
    return paths.filter { path in
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: ".") else { return false }
        return extensions.contains(name[name.index(after: dot)...].lowercased())
    }
}

/// Finds photos by the names in an annotation file.
struct PhotoFinder {
    /// The folders that names may be relative to, in the order in which they are tried.
    let folders: [URL]

    init(folders: [URL]) { self.folders = folders }

    /// - Parameter photos: The folder of the photos, or nil to look around the annotation file.
    init(annotationFile: URL, photos: URL?) {
        if let photos {
            folders = [photos]
            return
        }
        let folder = annotationFile.absoluteURL.deletingLastPathComponent()
        var folders = [folder, folder.appending(path: "images")]
        if folder.lastPathComponent.lowercased() == "annotations" {
            let parent = folder.deletingLastPathComponent()
            folders += [parent, parent.appending(path: "images")]
        }
        self.folders = folders
    }

    /// Returns the photo with this name, or nil if none of the folders has it.
    func existing(_ name: String) -> URL? {
        candidates(name).first { FileStatus($0)?.isFile == true }
    }

    /// Returns the folder with this name, or nil if none of the folders has it.
    func folder(_ name: String) -> URL? {
        candidates(name).first { FileStatus($0)?.isFolder == true }
    }

    /// Returns the possible locations of a file or folder with this name.
    func candidates(_ name: String) -> [URL] {
        name.hasPrefix("/") ? [URL(filePath: name)] : folders.map { $0.appending(path: name) }
    }

    /// Returns the photo with this name; if it is missing, its first expected location.
    func url(_ name: String) -> URL {
        existing(name) ?? (name.hasPrefix("/") ? URL(filePath: name) : folders[0].appending(path: name))
    }

    /// Whether a name is a valid file name; the operating system would cut it off at a zero byte.
    static func isValid(_ name: String) -> Bool {
        !name.utf8.contains(0) && name.contains { $0 != "/" && !$0.isWhitespace }
    }
}
