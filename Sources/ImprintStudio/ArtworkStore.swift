internal import Foundation
internal import ImprintImages
internal import ImprintSynthesis
internal import Synchronization

/// The artwork of logos to train a detector on, kept only in memory.
final class ArtworkStore: Sendable {
    /// The maximum number of images of artwork.
    static let limit = 100

    /// The artwork of a logo.
    struct Item: Sendable {
        /// The number that identifies the artwork.
        let id: Int
        let label: String
        /// The name of the file for the user.
        let name: String
        let artwork: Artwork
        /// The logo as training uses it, as a PNG.
        let picture: Data
        /// The warnings about the artwork.
        let notes: [String]
    }

    private struct State {
        var items: [Item] = [] {
            didSet { changes += 1 }
        }
        /// The number of changes of the artwork.
        var changes = 0
        /// The number of images that were ever added.
        var added = 0
    }

    private let state = Mutex(State())
    private let temporaryFolder: URL

    /// - Parameter temporaryFolder: The folder that contains the temporary files.
    init(temporaryFolder: URL) { self.temporaryFolder = temporaryFolder }

    var items: [Item] { state.withLock { $0.items } }

    /// The artwork by label.
    var artwork: [String: [Artwork]] { current.artwork }

    /// The artwork by label, and the number of its changes.
    var current: (artwork: [String: [Artwork]], changes: Int) {
        let (items, changes) = state.withLock { ($0.items, $0.changes) }
        return (Dictionary(grouping: items, by: \.label).mapValues { $0.map(\.artwork) }, changes)
    }

    /// Adds the artwork in an image file or an SVG drawing, on another thread.
    @concurrent
    func add(_ bytes: Data, label: String, name: String) async throws {
        try BoxPhoto.check(label: label)
        let item = try await withPrivateTemporaryFolder(in: temporaryFolder) { folder in
            let file = folder.appending(path: "artwork")
            try bytes.write(to: file)
            // The messages name the file of the user.
            func named(_ message: String) -> String { message.replacingOccurrences(of: file.path, with: name) }
            let artwork: Artwork
            do throws(ArtworkError) {
                artwork = try Artwork(contentsOf: file)
            } catch {
                throw RequestError(named("\(error)"), .unprocessableContent)
            }
            return Item(
                id: 0, label: label, name: name, artwork: artwork,
                picture: try artwork.cutOut.map { Data(try ImageFile.encodePNG($0)) } ?? Data(),
                notes: artwork.notes.map(named))
        }
        try state.withLock { state in
            guard state.items.count < Self.limit else {
                throw RequestError(
                    "There are already \(Self.limit) artwork images. Delete one first.", .payloadTooLarge)
            }
            state.added += 1
            state.items.append(
                Item(
                    id: state.added, label: item.label, name: item.name, artwork: item.artwork, picture: item.picture,
                    notes: item.notes))
        }
    }

    /// Returns the artwork with a number.
    func item(_ id: String) throws -> Item {
        guard let item = items.first(where: { "\($0.id)" == id }) else {
            throw RequestError("There is no such artwork. It may have been deleted in another tab.", .notFound)
        }
        return item
    }

    /// Changes the label of the artwork with a number.
    func rename(_ id: String, to label: String) throws {
        try BoxPhoto.check(label: label)
        let id = try item(id).id
        state.withLock { state in
            state.items = state.items.map { item in
                guard item.id == id else { return item }
                return Item(
                    id: id, label: label, name: item.name, artwork: item.artwork, picture: item.picture,
                    notes: item.notes)
            }
        }
    }

    /// Deletes the artwork with a number.
    func remove(_ id: String) throws {
        let id = try item(id).id
        state.withLock { state in state.items.removeAll { $0.id == id } }
    }
}
