public import Foundation
internal import ImprintCore
package import ImprintImages

/// A training source of annotated photos; the labels of a photo are the labels of its objects.
package struct AnnotatedSource: TrainingSource {
    package let name: String
    package let labels: [String]
    package let items: [TrainingPhoto]
    /// The SHA-256 digest of a line with the path, the sizes in pixels and bytes, and the objects for every photo, in hexadecimal.
    package let digest: String
    private let paths: [URL: String]
    private let finder: PhotoFinder

    /// Creates a source.
    package init(_ annotations: BoxAnnotations) {
        let indices = Dictionary(
            annotations.labels.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
        let paths = annotations.relativePaths
        var hash = SHA256()
        for (photo, path) in zip(annotations.photos, paths) {
            let objects = photo.objects.map { object in
                let box = object.box
                return
                    "\t\(object.label)\t\(box.x) \(box.y) \(box.width) \(box.height)\(object.isCrowd ? " crowd" : "")"
            }
            let size = "\(photo.width)x\(photo.height)\t\(FileStatus(photo.url)?.size ?? 0)"
            hash.update("\(path)\t\(size)\(objects.joined())\n".utf8Span.span.bytes)
        }
        name = annotations.name
        labels = annotations.labels
        items = annotations.photos.map { photo in
            TrainingPhoto(
                url: photo.url, labels: photo.objects.filter { !$0.isCrowd }.compactMap { indices[$0.label] })
        }
        digest = hash.hexadecimal
        finder = PhotoFinder(folders: annotations.folders)
        self.paths = Dictionary(zip(annotations.photos.map(\.url), paths), uniquingKeysWith: { first, _ in first })
    }

    package func identifier(of item: TrainingPhoto) -> String { paths[item.url] ?? item.url.displayPath }

    /// Returns a function that finds the indices of photos by their path in the annotation file.
    ///
    /// `identifier(of:)` is relative to the deepest folder of all photos, so it can lack folders that the file names. Files in several folders
    /// may name different photos with the same path.
    func indicesInFile() -> (String) -> [Int] {
        // Bytes, as in `indicesByPath`.
        func bytes(_ location: URL) -> [UInt8] { Array(location.standardizedFileURL.displayPath.utf8) }
        let indices = Dictionary(
            items.enumerated().map { (bytes($1.url), $0) }, uniquingKeysWith: { first, _ in first })
        return { path in
            guard PhotoFinder.isValid(path) else { return [] }
            return Set(finder.candidates(path).compactMap { indices[bytes($0)] }).sorted()
        }
    }
}

extension BoxAnnotations {
    /// Splits the photos into a training set and a validation set.
    /// - Parameter validationFolder: The folder that contains the photos of the validation set, directly or in sub-folders.
    /// - Returns: The annotations of both sets; one of them may have no photos.
    public func split(validationFolder: URL) -> (training: BoxAnnotations, validation: BoxAnnotations) {
        func isValidation(_ photo: URL) -> Bool { photo.isInside(validationFolder) }
        return (selecting { !isValidation($0) }, selecting(isValidation))
    }

    /// Returns the annotations of some of the photos, with the same labels.
    func selecting(_ isIncluded: (URL) -> Bool) -> BoxAnnotations {
        BoxAnnotations(
            uncheckedLabels: labels, photos: photos.filter { isIncluded($0.url) },
            skipped: skipped.filter { isIncluded($0.url) }, name: name,
            problems: problems.filter { isIncluded($0.photo) }, withoutUsableBoxes: withoutUsableBoxes,
            folders: folders)
    }

    /// Returns the annotations of the photos at some locations.
    func selecting(_ photos: [TrainingPhoto]) -> BoxAnnotations {
        selecting(Set(photos.map(\.url)).contains)
    }

    /// Returns the annotations without the photos at some locations, whose symbolic links are resolved.
    func removing(_ locations: Set<URL>) -> BoxAnnotations {
        locations.isEmpty ? self : selecting { !locations.contains($0.resolvingSymlinksInPath()) }
    }

    /// The same photos, without labels that no object has, and without the crowds of these labels.
    package var withoutUnusedLabels: BoxAnnotations {
        let labels = usedLabels
        let photos = photos.map { photo in
            var photo = photo
            photo.objects.removeAll { !labels.contains($0.label) }
            return photo
        }
        return BoxAnnotations(
            uncheckedLabels: labels, photos: photos, warnings: warnings, skipped: skipped, name: name,
            withoutUsableBoxes: withoutUsableBoxes, folders: folders)
    }

    /// The locations of all photos, with their symbolic links resolved, including the photos whose boxes were all dropped.
    var locations: Set<URL> { Self.locations(photos.map(\.url) + withoutUsableBoxes) }

    /// The locations of the photos that show an object, including the photos whose boxes were all dropped.
    var locationsOfObjects: Set<URL> {
        Self.locations(photos.filter { !$0.objects.isEmpty }.map(\.url) + withoutUsableBoxes)
    }

    private static func locations(_ files: [URL]) -> Set<URL> { Set(files.map { $0.resolvingSymlinksInPath() }) }

    /// The paths of the photos, relative to the deepest folder that contains all of them.
    package var relativePaths: [String] {
        let paths = photos.map { $0.url.standardizedFileURL.displayComponents }
        let base = Self.commonFolder(of: paths).count
        return paths.map { $0.dropFirst(base).joined(separator: "/") }
    }

    /// The part of the dataset split that each photo belongs to, according to data.yaml, or else by the names of its folders.
    ///
    /// Training photos and photos in other folders have 0, validation photos 1, test photos 2. All have 0 if there is only one part.
    var parts: [Int] {
        let parts = zip(photos, relativePaths).map { photo, path in
            statedParts[photo.url]
                ?? path.split(separator: "/").dropLast().lazy.compactMap(DatasetPart.init(folder:)).first
        }
        return Set(parts).count == 1 ? parts.map { _ in 0 } : parts.map { ($0 ?? .training).rawValue }
    }
}

extension [URL] {
    /// Returns the files that are not at some locations, whose symbolic links are resolved.
    func removing(_ locations: Set<URL>) -> [URL] {
        locations.isEmpty ? self : filter { !locations.contains($0.resolvingSymlinksInPath()) }
    }
}
