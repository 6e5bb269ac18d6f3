internal import Foundation

/// Where a Core ML model and its weights lie: a file, or a folder `.mlpackage` with a list of what is in it.
struct CoreMLPackage {
    /// The file with the model.
    let model: URL
    /// The folder that no name in the model may lead out of.
    private let folder: URL
    /// What the model is called where it lies.
    let name: String

    private struct Manifest: Decodable {
        struct Item: Decodable { let path: String }
        let itemInfoEntries: [String: Item]
        let rootModelIdentifier: String
    }

    /// - Throws: `ImportError.Problem` if the list is none, `FileError` if it cannot be read.
    init(_ url: URL) throws {
        name = url.deletingPathExtension().lastPathComponent
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path(percentEncoded: false), isDirectory: &isFolder),
            isFolder.boolValue
        else {
            model = url
            folder = url.deletingLastPathComponent()
            return
        }
        if url.pathExtension == "mlmodelc" {
            throw ImportError.Problem.otherKind(
                found: "a Core ML model that was compiled for Apple's systems",
                advice: "give the .mlmodel or .mlpackage it was made of")
        }
        let list = url.appending(path: "Manifest.json")
        guard FileManager.default.fileExists(atPath: list.path(percentEncoded: false)) else {
            throw ImportError.Problem.otherKind(
                found: "a folder without a Manifest.json", advice: "give a model's file, or an .mlpackage")
        }
        let file = try MappedFile(contentsOf: list)
        guard file.count < 1 << 20,
            let manifest = try? JSONDecoder().decode(Manifest.self, from: Data(file.bytes(0..<file.count))),
            let root = manifest.itemInfoEntries[manifest.rootModelIdentifier]
        else {
            throw ImportError.Problem.malformed(reason: "its Manifest.json does not name the model")
        }
        folder = url.appending(path: "Data")
        model = try Self.file(root.path, from: folder, within: folder)
    }

    /// The file that an operation of the model names as holding its weights.
    func weights(_ name: String) throws -> MappedFile {
        let prefix = "@model_path/"
        guard name.hasPrefix(prefix) else {
            throw ImportError.Problem.malformed(
                reason: "its weights are in \(name.debugDescription), expected a name that begins with \(prefix)")
        }
        let url = try Self.file(
            String(name.dropFirst(prefix.count)), from: model.deletingLastPathComponent(), within: folder)
        return try MappedFile(contentsOf: url)
    }

    /// A file beside the model.
    ///
    /// A name that leads out of the folder, by steps up, from the root or by a link, is refused: a model must not make
    /// its reader open what else is on the machine.
    private static func file(_ name: String, from start: URL, within folder: URL) throws -> URL {
        let folder = folder.resolvingSymlinksInPath().standardizedFileURL
        let url = start.appending(path: name).resolvingSymlinksInPath().standardizedFileURL
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard !name.isEmpty, !name.hasPrefix("/"), !parts.contains(".."), !name.utf8.contains(0), url != folder,
            url.pathComponents.starts(with: folder.pathComponents)
        else {
            throw ImportError.Problem.malformed(
                reason: "it names the file \(name.debugDescription), expected one in its own folder")
        }
        return url
    }
}
