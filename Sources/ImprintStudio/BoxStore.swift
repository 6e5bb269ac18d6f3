internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintTraining
internal import Synchronization

/// The photos with boxes: a folder with the photos in `images`, and their boxes in `boxes.json` in the COCO format.
///
/// The annotation file lists the photos that training may use: those with boxes, and those that show no object. The folder is created with
/// the first photo. Only one studio at a time uses it. Other programs may change the annotation file, which is then read again.
final class BoxStore: Sendable {
    /// The maximum number of photos.
    static let photoLimit = 2000

    let folder: URL
    /// The number of threads that read the sizes of the photos.
    private let threads: Int
    private let state = Mutex(State())

    private struct State {
        /// The lock of the folder; nil until the folder exists.
        var lock: FileLock?
        var photos: [BoxPhoto] = []
        /// The number of changes, so that a page can ignore an older response that arrives late.
        var version = 0
        /// The photos of the annotation file that are missing, and its other problems.
        var problems: [String] = []
        /// The state of the annotation file when the store has read or written it; nil if there was none.
        var stamp: FileStamp?
        /// Whether the store has read the annotation file and not yet written it, so that the file may contain more than the photos.
        var mayContainMore = false
        /// Whether the annotation file may have boxes of missing photos, which a new photo of the same name would get.
        var mayListMissingPhotos = false
        /// The highest number of a photo since the start; numbers are not used again, because a page may still show a deleted photo.
        var lastNumber = 0
    }

    /// A snapshot of the store.
    struct Content: Sendable {
        let photos: [BoxPhoto]
        let version: Int
        let problems: [String]
    }

    init(folder: URL, threads: Int) { (self.folder, self.threads) = (folder, threads) }

    /// The annotation file.
    var file: URL { folder.appending(path: "boxes.json") }
    private var images: URL { folder.appending(path: "images", directoryHint: .isDirectory) }
    private func url(_ name: String) -> URL { images.appending(path: name, directoryHint: .notDirectory) }

    /// The photos and their boxes.
    /// - Throws: `RequestError` if another studio uses the folder; the errors of
    ///   `BoxAnnotations.init(contentsOf:photos:part:recordsProblems:threads:)`.
    var content: Content {
        get throws {
            try state.withLock { state in
                try refresh(&state)
                return Content(photos: state.photos, version: state.version, problems: state.problems)
            }
        }
    }

    /// Lets another studio use the folder.
    func close() { state.withLock { $0.lock = nil } }

    /// Locks and reads the folder if this is not yet done.
    private func open(_ state: inout State) throws {
        guard state.lock == nil else { return }
        guard let lock = try FileLock(folder: folder) else {
            throw RequestError(
                "Another studio is using the photos with boxes in \(folder.path). Stop that studio, or use it instead.",
                .conflict)
        }
        try read(&state)
        state.lock = lock
    }

    /// Opens the folder if it exists, and reads it again if another program has changed the annotation file.
    /// - Returns: Whether another program has changed it.
    @discardableResult
    private func refresh(_ state: inout State) throws -> Bool {
        guard FileStatus(folder) != nil else { return false }
        try open(&state)
        // A missing file is no change: the next edit writes all boxes again.
        guard let stamp = FileStamp(file), stamp != state.stamp else { return false }
        try read(&state)
        return true
    }

    /// Opens the folder to change the boxes of a photo.
    /// - Throws: `RequestError` if another program has changed the annotation file.
    private func openToChange(_ state: inout State) throws {
        guard try !refresh(&state) else {
            throw RequestError(
                "Another program has changed \(file.lastPathComponent), so this change is not saved. "
                    + "The boxes of the file are shown now; if they are not, reload the page.", .conflict)
        }
    }

    /// Reads the annotation file, and lists the photos.
    private func read(_ state: inout State) throws {
        // If the file changes while it is read, its stamp is different later.
        let stamp = FileStamp(file)
        var (photos, problems, isComplete) = try annotatedPhotos()
        for name in (try? FileManager.default.contentsOfDirectory(atPath: images.path)) ?? []
        where photos[name] == nil && !name.hasPrefix(".") {
            do throws(ImageError) {
                photos[name] = try Self.photo(name, url(name))
            } catch {
                problems.append("\(error)")
            }
        }
        // A page must not apply edits of the boxes of an earlier file.
        for photo in state.photos { photos[photo.name]?.revision = photo.revision + 1 }
        state.photos = photos.values.sorted { precedes($0.name, $1.name) }
        (state.problems, state.stamp, state.mayContainMore) = (problems, stamp, stamp != nil)
        state.mayListMissingPhotos = !isComplete
        state.lastNumber = max(state.lastNumber, state.photos.map(\.number).max() ?? 0)
        state.version += 1
    }

    /// Returns the photos of the annotation file by name, its problems, and whether these are all photos that it lists.
    private func annotatedPhotos() throws -> (photos: [String: BoxPhoto], problems: [String], isComplete: Bool) {
        guard FileStatus(file) != nil else { return ([:], [], true) }
        let annotations: BoxAnnotations
        do {
            annotations = try BoxAnnotations(contentsOf: file, threads: threads)
        } catch let error as BoxAnnotationsError {
            switch error {
            // The file is valid, but has nothing to show. The first edit or new photo keeps a copy of it.
            case .noPhotos, .noReadablePhotos, .noUsableBoxes: return ([:], ["\(error)"], false)
            default: throw error
            }
        }
        var photos: [String: BoxPhoto] = [:]
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
        let problems =
            annotations.warnings + annotations.skipped.map { "\($0.reason)" }
            + others.map { "\($0.url.path): is not in the folder \(inside)" }
        return (photos, problems, annotations.skipped.isEmpty)
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
            try refresh(&state)
            guard state.photos.count < Self.photoLimit else {
                throw RequestError("There are already \(Self.photoLimit) photos. Delete some first.", .payloadTooLarge)
            }
            if state.mayListMissingPhotos { try write(state.photos, &state) }
            let number = state.lastNumber &+ 1
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
            state.lastNumber = number
            state.version += 1
            return name
        }
    }

    /// Applies an edit of the page to a photo, writes the annotation file, and returns the photo and the new number of changes.
    /// - Throws: `RequestError` if another page or program has changed the boxes.
    func update(_ name: String, _ edit: BoxPhoto.Edit) throws -> (photo: BoxPhoto, version: Int) {
        try state.withLock { state in
            try openToChange(&state)
            let index = try Self.index(of: name, state)
            var photos = state.photos
            try photos[index].apply(edit)
            try write(photos, &state)
            return (photos[index], state.version)
        }
    }

    /// Deletes a photo and its boxes.
    /// - Throws: `RequestError` if another program has changed the annotation file.
    func remove(_ name: String) throws {
        try state.withLock { state in
            try openToChange(&state)
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
        if state.mayContainMore {
            try copyFile(unlessItContainsOnly: state.photos)
            state.mayContainMore = false
        }
        if let data = try data(of: photos) {
            try AtomicFile.write([UInt8](data), to: file)
        } else {
            try removeIfPresent(file)
        }
        (state.stamp, state.mayListMissingPhotos) = (FileStamp(file), false)
        state.photos = photos
        state.version += 1
    }

    /// Copies the annotation file to `boxes-1.json`, or to the next free name, unless writing the photos gives the same bytes.
    ///
    /// Other bytes may have boxes of missing photos, dropped or clipped boxes, or keys that the store does not read.
    private func copyFile(unlessItContainsOnly photos: [BoxPhoto]) throws {
        guard FileStatus(file) != nil else { return }
        let bytes = try Data(contentsOf: file)
        guard try data(of: photos) != bytes else { return }
        var number = 1
        while try !AtomicFile.create(folder.appending(path: "boxes-\(number).json"), { try $0.write([UInt8](bytes)) }) {
            number += 1
        }
    }

    /// Returns the content of the annotation file; nil if it has no photos, so that there is no file.
    private func data(of photos: [BoxPhoto]) throws -> Data? {
        let annotations = annotations(of: photos)
        return annotations.photos.isEmpty ? nil : try annotations.cocoData(relativeTo: folder)
    }

    /// The annotations that training uses.
    var annotations: BoxAnnotations { get throws { annotations(of: try content.photos) } }

    private func annotations(of photos: [BoxPhoto]) -> BoxAnnotations {
        // Equal boxes give equal bytes, also if the photos were added in another order.
        let annotated = photos.filter(\.isAnnotated).sorted { precedes($0.name, $1.name) }.map { photo in
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
