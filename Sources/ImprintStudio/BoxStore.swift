internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining
internal import Synchronization

/// The photos with boxes: a folder with the photos in `images`, and their boxes in `boxes.json` in the COCO format.
///
/// The annotation file lists the photos that training may use: those with boxes, and those that show no object. The folder is created with
/// the first photo. Only one studio at a time uses it.
final class BoxStore: Sendable {
    /// The maximum number of photos.
    static let photoLimit = 2000

    let folder: URL
    private let state = Mutex(State())

    private struct State {
        /// The lock of the folder; nil until the folder exists.
        var lock: FileLock?
        var photos: [BoxPhoto] = []
        /// The number of changes, so that a page can ignore an older response that arrives late.
        var version = 0
        /// The photos of the annotation file that are missing, and its other problems.
        var problems: [String] = []
        /// Whether the next change loses boxes of photos that are missing, so that the file must be copied first.
        var losesBoxes = false
    }

    /// A snapshot of the store.
    struct Content: Sendable {
        let photos: [BoxPhoto]
        let version: Int
        let problems: [String]
    }

    init(folder: URL) { self.folder = folder }

    /// The annotation file.
    var file: URL { folder.appending(path: "boxes.json") }
    private var images: URL { folder.appending(path: "images", directoryHint: .isDirectory) }
    private func url(_ name: String) -> URL { images.appending(path: name, directoryHint: .notDirectory) }

    /// The photos and their boxes.
    /// - Throws: `RequestError` if another studio uses the folder; the errors of `BoxAnnotations.init(contentsOf:photos:recordsProblems:)`.
    var content: Content {
        get throws {
            try state.withLock { state in
                if FileStatus(folder) != nil { try open(&state) }
                return Content(photos: state.photos, version: state.version, problems: state.problems)
            }
        }
    }

    /// Lets another studio use the folder.
    func close() { state.withLock { $0.lock = nil } }

    /// Locks the folder, and reads it if this is not yet done.
    private func open(_ state: inout State) throws {
        guard state.lock == nil else { return }
        guard let lock = try FileLock(folder: folder) else {
            throw RequestError(
                "Another studio is using the photos with boxes in \(folder.path). Stop that studio, or use it instead.",
                .conflict)
        }
        var photos: [String: BoxPhoto] = [:]
        var problems: [String] = []
        var losesBoxes = false
        if FileStatus(file) != nil {
            let annotations = try BoxAnnotations(contentsOf: file)
            let inside = images.standardizedFileURL.path
            let others = annotations.photos.filter {
                $0.url.standardizedFileURL.deletingLastPathComponent().path != inside
            }
            for photo in annotations.photos where !others.contains(photo) {
                let name = photo.url.lastPathComponent
                photos[name] = BoxPhoto(
                    name: name, width: photo.width, height: photo.height,
                    objects: photo.objects.map {
                        BoxPhoto.Object(label: $0.label, box: $0.box, isCrowd: $0.isCrowd ? true : nil)
                    }, isBackground: photo.objects.isEmpty)
            }
            problems =
                annotations.warnings + annotations.skipped.map { "\($0.reason)" }
                + others.map { "\($0.url.path): is not in the folder \(inside)" }
            losesBoxes = !annotations.skipped.isEmpty || !others.isEmpty
        }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: images.path)) ?? []
        where photos[name] == nil && !name.hasPrefix(".") {
            do throws(ImageError) {
                photos[name] = try Self.photo(name, url(name))
            } catch {
                problems.append("\(error)")
            }
        }
        state.photos = photos.values.sorted { precedes($0.name, $1.name) }
        (state.problems, state.losesBoxes, state.lock) = (problems, losesBoxes, lock)
        state.version += 1
    }

    private static func photo(_ name: String, _ url: URL) throws(ImageError) -> BoxPhoto {
        let size = try ImageFile.information(of: url).uprightSize
        return BoxPhoto(name: name, width: size.width, height: size.height)
    }

    /// Adds a photo that the caller has checked to be readable, and returns its name.
    func add(_ photo: Data) throws -> String {
        try state.withLock { state in
            for part in [folder, images] {
                try FileManager.default.createDirectory(
                    at: part, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
            try open(&state)
            guard state.photos.count < Self.photoLimit else {
                throw RequestError("There are already \(Self.photoLimit) photos. Delete some first.", .payloadTooLarge)
            }
            let number = (state.photos.compactMap { Int($0.name.prefix { $0.isNumber }) }.max() ?? 0) &+ 1
            // The extension depends on the format, which is read from a file.
            let partial = url(".\(number).partial")
            defer { try? FileManager.default.removeItem(at: partial) }
            try AtomicFile.write([UInt8](photo), to: partial)
            let name =
                String(format: "%05ld.", number) + (try ImageFile.information(of: partial).format.rawValue.lowercased())
            let added = try Self.photo(name, partial)
            guard FileStatus(url(name)) == nil else {
                throw RequestError("The file \(url(name).path) already exists. Remove it from the folder.", .conflict)
            }
            try FileManager.default.moveItem(at: partial, to: url(name))
            state.photos.append(added)
            state.version += 1
            return name
        }
    }

    /// Applies an edit of the page to a photo, writes the annotation file, and returns the photo and the new number of changes.
    func update(_ name: String, _ edit: BoxPhoto.Edit) throws -> (photo: BoxPhoto, version: Int) {
        try state.withLock { state in
            if FileStatus(folder) != nil { try open(&state) }
            let index = try Self.index(of: name, state)
            var photos = state.photos
            try photos[index].apply(edit)
            try write(photos, &state)
            return (photos[index], state.version)
        }
    }

    /// Deletes a photo and its boxes.
    func remove(_ name: String) throws {
        try state.withLock { state in
            if FileStatus(folder) != nil { try open(&state) }
            var photos = state.photos
            let removed = photos.remove(at: try Self.index(of: name, state))
            if removed.isAnnotated { try write(photos, &state) }
            try removeIfPresent(url(name))
            state.photos = photos
            state.version += 1
        }
    }

    /// Removes a file; another program may have removed it.
    private func removeIfPresent(_ file: URL) throws {
        do {
            try FileManager.default.removeItem(at: file)
        } catch CocoaError.fileNoSuchFile {}
    }

    /// The short side of a thumbnail, in pixels.
    private static let thumbnailSide = 160

    /// Returns the bytes of a photo or of its thumbnail in a format that browsers show, and their media type, on another thread.
    @concurrent
    func image(_ name: String, isThumbnail: Bool) async throws -> (type: String, bytes: Data) {
        _ = try state.withLock { state in
            if FileStatus(folder) != nil { try open(&state) }
            return try Self.index(of: name, state)
        }
        let file = url(name)
        if isThumbnail {
            let image = try ImageFile.decode(
                file, coveringShortSide: ImageFile.shortSideToDecode(covering: Self.thumbnailSide))
            return ("image/jpeg", Data(try ImageFile.encodeJPEG(image.shrunk(toShortSide: Self.thumbnailSide))))
        }
        let format = try ImageFile.information(of: file).format
        guard format == .heic else { return ("image/\(format.rawValue.lowercased())", try Data(contentsOf: file)) }
        return ("image/jpeg", Data(try ImageFile.encodeJPEG(ImageFile.decode(file, coveringShortSide: 1500))))
    }

    private static func index(of name: String, _ state: State) throws -> Int {
        guard let index = state.photos.firstIndex(where: { $0.name == name }) else {
            throw RequestError(
                "There is no photo \(name.debugDescription). It may have been deleted in another tab.", .notFound)
        }
        return index
    }

    /// Writes the annotation file, and then changes the state.
    private func write(_ photos: [BoxPhoto], _ state: inout State) throws {
        if state.losesBoxes {
            // Only this file has the boxes of missing photos.
            let copy = (1...).lazy.map { self.folder.appending(path: "boxes-\($0).json") }.first {
                FileStatus($0) == nil
            }
            if let copy { try FileManager.default.copyItem(at: file, to: copy) }
            state.losesBoxes = false
        }
        let annotations = annotations(of: photos)
        if annotations.photos.isEmpty {
            try removeIfPresent(file)
        } else {
            try AtomicFile.write([UInt8](try annotations.cocoData(relativeTo: folder)), to: file)
        }
        state.photos = photos
        state.version += 1
    }

    /// The annotations that training uses.
    var annotations: BoxAnnotations { get throws { annotations(of: try content.photos) } }

    private func annotations(of photos: [BoxPhoto]) -> BoxAnnotations {
        let annotated = photos.filter(\.isAnnotated).map { photo in
            AnnotatedPhoto(
                url: url(photo.name), width: photo.width, height: photo.height,
                objects: photo.objects.map {
                    AnnotatedPhoto.Object(label: $0.label, box: $0.box, isCrowd: $0.isCrowd ?? false)
                })
        }
        let labels = Set(annotated.flatMap(\.objects).map(\.label)).sorted(by: precedes)
        return BoxAnnotations(uncheckedLabels: labels, photos: annotated)
    }
}
