package import Foundation
internal import ImprintImages

extension BoxAnnotations {
    /// Returns the file or folders that show that a folder of photos has bounding boxes, directly or in one of its sub-folders, such as "boxes.json in
    /// set"; nil for other folders.
    ///
    /// A folder that cannot be read counts as one without boxes.
    package static func sign(in folder: URL) -> String? {
        guard let listing = try? FolderListing(folder) else { return nil }
        if let found = sign(in: folder, listing) { return found }
        for name in listing.folders {
            let inner = folder.appending(path: name)
            guard let files = try? FolderListing(inner), let found = sign(in: inner, files) else { continue }
            return "\(found) in \(name)"
        }
        return nil
    }

    /// The maximum number of JSON files of a folder, and of text files, that are read: programs can write such a file for each photo.
    private static let fileLimit = 100

    private static func sign(in folder: URL, _ listing: FolderListing) -> String? {
        if let found = ImageFolder.signOfBoxes(in: folder) { return found }
        let json = listing.files.filter { $0.lowercased().hasSuffix(".json") }
        if let file = json.prefix(fileLimit).first(where: { hasBoxes(folder.appending(path: $0)) }) { return file }
        // The photos of Darknet and CVAT are below the list of classes, in obj_train_data.
        let list = listing.files.first { folder.appending(path: $0).isClassList }
        let paths = list == nil ? listing.files : (try? filePaths(below: "", in: folder)) ?? []
        return textWithBox(paths, in: folder).map { list ?? $0 }
    }

    /// Returns the first of some paths that is a YOLO text file beside a photo of the same name; nil without such a file.
    private static func textWithBox(_ paths: [String], in folder: URL) -> String? {
        func stem(_ path: String) -> Substring { path.lastIndex(of: ".").map { path[..<$0] } ?? path[...] }
        func pathExtension(_ path: String) -> String { path.dropFirst(stem(path).count + 1).lowercased() }
        let texts = paths.filter { pathExtension($0) == "txt" }
        guard !texts.isEmpty else { return nil }
        let photos = Set(paths.filter { imageExtensions.contains(pathExtension($0)) }.map(stem))
        return texts.lazy.filter { photos.contains(stem($0)) }.prefix(fileLimit)
            .first { hasBox(folder.appending(path: $0)) }
    }

    /// Whether the first line of a text file is a box or polygon of YOLO: a class number and at least four coordinates.
    private static func hasBox(_ text: URL) -> Bool {
        guard let line = (try? annotationText(text))?.split(whereSeparator: \.isNewline).first else { return false }
        let columns = line.split(whereSeparator: \.isWhitespace)
        return columns.count >= 5 && columns.allSatisfy { Double($0) != nil }
    }
}
