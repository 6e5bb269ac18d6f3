internal import Foundation

/// Returns the location of a file that a model refers to, or nil if the file is not in the model's folder.
///
/// Rejects paths that leave the folder by `..`, an absolute path or a symbolic link. Otherwise, a model could make the importer read other
/// files of the user.
/// - Parameters:
///   - path: The path in the model, relative to `start`.
///   - folder: The model's folder.
func referencedFile(_ path: String, from start: URL, within folder: URL) -> URL? {
    let folder = folder.resolvingSymlinksInPath().standardizedFileURL
    let url = start.appending(path: path).resolvingSymlinksInPath().standardizedFileURL
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard !path.isEmpty, !path.hasPrefix("/"), !parts.contains(".."), !path.utf8.contains(0), url != folder,
        url.pathComponents.starts(with: folder.pathComponents)
    else { return nil }
    return url
}
