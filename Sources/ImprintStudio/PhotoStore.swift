internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import Synchronization

/// A photo of the panel Photos, with its label.
struct LabelledPhoto: Sendable {
    /// The number that identifies the photo.
    let id: Int
    /// The copy of the photo; it does not move if the label changes.
    let url: URL
    /// The path below the folder of its label, for the user.
    let name: String
    var label: String
}

/// The photos of the panel Photos and their labels: copies in a private temporary folder, until the studio ends.
///
/// Deleted photos stay in the folder, so that the deletion can be undone, and so that an audit or a training that has begun can read them.
final class PhotoStore: Sendable {
    /// The maximum number of photos.
    static let limit = BoxStore.photoLimit
    /// The maximum number of bytes of all photos, including deleted ones.
    static let byteLimit = 8 << 30
    /// The maximum number of changes that can be undone.
    static let undoLimit = 50

    let state = Mutex(State())

    /// A change that can be undone: the photos before it.
    struct Change {
        let sentence: String
        let photos: [LabelledPhoto]
    }

    struct State {
        /// The private folder; nil without photos.
        var folder: PrivateFolder?
        var photos: [LabelledPhoto] = []
        /// The latest changes, oldest first.
        var changes: [Change] = []
        /// The number of changes, so that a page can ignore an older response that arrives late.
        var version = 0
        /// The number of photos that were ever added.
        var added = 0
        /// The number of bytes in the folder.
        var byteCount = 0
        /// The result of the latest audit; nil before the first one.
        var audit: PhotoAudit?
        var auditStatus = AuditStatus()
        /// The validation photos that the trained model labels differently.
        var disagreements: [PhotoAudit.Disagreement] = []
        /// Whether the studio is ending, so that it adds no photos.
        var hasEnded = false
    }

    private let temporaryFolder: URL

    /// - Parameter temporaryFolder: The folder that contains the private folder of the photos.
    init(temporaryFolder: URL) { self.temporaryFolder = temporaryFolder }

    deinit { close() }

    /// Adds a photo that the caller has checked to be readable.
    /// - Parameter name: The path of the file below the folder of its label.
    func add(_ bytes: Data, label: String, name: String) throws -> Int {
        try UserText.checkFolderName(label, "A label", fix: "Rename the folder.")
        try Self.check(name: name)
        return try state.withLock { state in
            guard !state.hasEnded else {
                throw RequestError("The studio is shutting down. Start it again to add photos.", .serviceUnavailable)
            }
            guard state.photos.count < Self.limit else {
                throw RequestError("There are already \(Self.limit) photos. Delete some first.", .payloadTooLarge)
            }
            guard state.byteCount + bytes.count <= Self.byteLimit else {
                throw RequestError(
                    "All photos may take at most \(Self.byteLimit >> 30) GB. Delete all photos, and add fewer.",
                    .payloadTooLarge)
            }
            // Labels with the same characters in another Unicode normalization are equal.
            let label = state.photos.first { $0.label == label }?.label ?? label
            for photo in state.photos where photo.label == label && photo.name == name {
                guard FileStatus(photo.url)?.size != bytes.count || (try? Data(contentsOf: photo.url)) != bytes else {
                    throw RequestError("The photo is already added with the label \"\(label)\".", .conflict)
                }
            }
            let folder = try state.folder ?? PrivateFolder(in: temporaryFolder)
            state.folder = folder
            let (id, name) = (
                state.added + 1, Self.vacant(name, Set(state.photos.filter { $0.label == label }.map(\.name)))
            )
            let url = try Self.write(bytes, "\(label)/\(name)", to: folder.url.appending(path: "\(id)"))
            state.added = id
            state.byteCount += bytes.count
            state.photos.append(LabelledPhoto(id: id, url: url, name: name, label: label))
            state.version += 1
            return id
        }
    }

    /// Returns the name of a file, with a number if another photo of its label has the name.
    private static func vacant(_ name: String, _ used: Set<String>) -> String {
        let file = URL(filePath: name)
        let suffix = file.pathExtension.isEmpty ? "" : ".\(file.pathExtension)"
        var (vacant, number) = (name, 1)
        while used.contains(vacant) {
            number += 1
            vacant = "\(name.dropLast(suffix.count)) (\(number))\(suffix)"
        }
        return vacant
    }

    /// Writes a photo into a new folder of its own, because a deleted photo of the same name keeps its file.
    private static func write(_ bytes: Data, _ path: String, to folder: URL) throws -> URL {
        let url = folder.appending(path: path, directoryHint: .notDirectory)
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try bytes.write(to: url)
        } catch {
            // A full disk leaves a part of the file.
            try? FileManager.default.removeItem(at: folder)
            throw error
        }
        return url
    }

    /// Checks the path of a file below the folder of its label.
    private static func check(name: String) throws {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard name.utf8.count <= 1000,
            parts.allSatisfy({ !$0.isEmpty && !$0.hasPrefix(".") && !$0.contains("\0") && $0.utf8.count <= 200 })
        else {
            throw RequestError(
                "The name of the file is empty, hidden or too long: each part of its path may have 200 bytes. Rename the file."
            )
        }
        try UserText.checkCharacters(name, "The name of a file", fix: "Rename the file.")
    }

    /// Returns the photo with a number.
    func photo(_ id: Int) throws -> LabelledPhoto {
        guard let photo = state.withLock({ $0.photos.first { $0.id == id } }) else { throw Self.missing }
        return photo
    }

    private static let missing = RequestError(
        "There is no such photo. It may have been deleted in another tab.", .notFound)

    /// Changes the label of photos to another label of the photos.
    func relabel(_ ids: Set<Int>, to label: String) throws {
        try state.withLock { state in
            guard let label = state.photos.first(where: { $0.label == label })?.label else {
                throw RequestError("There is no label \"\(label)\". Add photos with this label first.", .notFound)
            }
            let photos = try Self.photos(ids, state).filter { $0.label != label }
            guard !photos.isEmpty else { return }
            state.record("Changed the label of \(Self.text(photos)) to “\(label)”.", photos)
            for index in state.photos.indices where ids.contains(state.photos[index].id) {
                state.photos[index].label = label
            }
        }
    }

    /// Deletes photos.
    func remove(_ ids: Set<Int>) throws {
        try state.withLock { state in
            let photos = try Self.photos(ids, state)
            state.record("Deleted \(Self.text(photos)).", photos)
            state.photos.removeAll { ids.contains($0.id) }
        }
    }

    private static func photos(_ ids: Set<Int>, _ state: State) throws -> [LabelledPhoto] {
        let photos = state.photos.filter { ids.contains($0.id) }
        guard photos.count == ids.count, !ids.isEmpty else { throw missing }
        return photos
    }

    private static func text(_ photos: [LabelledPhoto]) -> String {
        photos.count == 1 ? "“\(photos[0].name)”" : "\(photos.count) photos"
    }

    /// Undoes the latest change.
    func undo() throws {
        try state.withLock { state in
            guard let change = state.changes.last else {
                throw RequestError("There is nothing to undo.", .notFound)
            }
            let ids = Set(change.photos.map(\.id))
            let others = state.photos.filter { !ids.contains($0.id) }
            guard others.count + change.photos.count <= Self.limit else {
                throw RequestError(
                    "The photos do not fit: there may be at most \(Self.limit). Delete newer photos first.",
                    .payloadTooLarge)
            }
            state.changes.removeLast()
            state.photos = others + change.photos
            state.version += 1
        }
    }

    /// Deletes all photos and their folder, which cannot be undone.
    func removeAll() throws {
        try state.withLock { state in
            try state.folder?.remove()
            let (version, added, auditVersion) = (state.version, state.added, state.auditStatus.version)
            state = State()
            (state.version, state.added, state.auditStatus.version) = (version + 1, added, auditVersion + 1)
        }
    }

    /// Deletes the folder, and prevents new photos.
    func close() {
        state.withLock { state in
            state.hasEnded = true
            try? state.folder?.remove()
            (state.folder, state.photos, state.changes) = (nil, [], [])
        }
    }
}

extension PhotoStore.State {
    /// Records a change of photos, so that it can be undone.
    fileprivate mutating func record(_ sentence: String, _ photos: [LabelledPhoto]) {
        changes.append(PhotoStore.Change(sentence: sentence, photos: photos))
        if changes.count > PhotoStore.undoLimit { changes.removeFirst() }
        version += 1
    }

    /// The labels and their photos, as training uses them.
    var source: PhotoSource { PhotoSource(photos) }
}

/// The photos of the panel Photos as training and the audit use them.
///
/// Until a label changes or a deletion is undone, the digest and the order are the same as for a folder with the same files (`ImageFolder`).
struct PhotoSource: TrainingSource {
    let name = "the photos"
    let labels: [String]
    let items: [TrainingPhoto]
    let digest: String
    /// The numbers of the photos.
    let ids: [URL: Int]
    private let paths: [URL: String]

    init(_ photos: [LabelledPhoto]) {
        labels = Set(photos.map(\.label)).sorted(by: precedes)
        let indices = Dictionary(uniqueKeysWithValues: labels.enumerated().map { ($1, $0) })
        // Two photos have the same path if a label was changed or a deletion was undone.
        var used: Set<String> = []
        let located = photos.map { photo in
            let path = "\(photo.label)/\(photo.name)"
            return (photo, used.insert(path).inserted ? path : "\(path) (photo \(photo.id))")
        }.sorted { first, second in
            let labels = (indices[first.0.label] ?? 0, indices[second.0.label] ?? 0)
            return labels.0 == labels.1 ? precedes(first.1, second.1) : labels.0 < labels.1
        }
        items = located.map { photo, _ in TrainingPhoto(url: photo.url, label: indices[photo.label] ?? 0) }
        ids = Dictionary(located.map { ($0.0.url, $0.0.id) }, uniquingKeysWith: { first, _ in first })
        paths = Dictionary(located.map { ($0.0.url, $0.1) }, uniquingKeysWith: { first, _ in first })
        let lines = located.map { photo, path in "\(path)\t\(FileStatus(photo.url)?.size ?? 0)\n" }
        digest = SHA256.hexadecimal(of: Array(lines.joined().utf8))
    }

    func identifier(of item: TrainingPhoto) -> String { paths[item.url] ?? item.url.lastPathComponent }

    /// The reason why the photos are not sufficient for training; nil if they are.
    var shortage: String? {
        switch labels.count {
        case 0: "Add photos of at least two labels."
        case 1: "Training needs at least two labels, and there is only “\(labels[0])”. Add photos of another label."
        default: nil
        }
    }
}
