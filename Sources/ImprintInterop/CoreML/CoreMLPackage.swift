internal import Foundation

/// The location of a Core ML model and its weights: a file, or an `.mlpackage` folder with a manifest.
struct CoreMLPackage {
    /// The file with the model.
    let model: URL
    /// The folder that all paths in the model must stay within.
    private let folder: URL
    /// The file name without its extension.
    let name: String

    private struct Manifest: Decodable {
        struct Item: Decodable { let path: String }
        let itemInfoEntries: [String: Item]
        let rootModelIdentifier: String
    }

    /// Locates the model file of a file or package.
    ///
    /// - Throws: `ImportError.Problem` if the manifest is invalid, `FileError` if it is unreadable.
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
            throw ImportError.Problem.unsuitableModel(
                found: "a compiled Core ML model",
                advice: "Import the original .mlmodel or .mlpackage")
        }
        let list = url.appending(path: "Manifest.json")
        guard FileManager.default.fileExists(atPath: list.path(percentEncoded: false)) else {
            throw ImportError.Problem.unsuitableModel(
                found: "a folder without a Manifest.json", advice: "Expected a model file or an .mlpackage")
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

    /// Returns the weight file with a path from the model.
    func weights(_ name: String) throws -> MappedFile {
        let prefix = "@model_path/"
        guard name.hasPrefix(prefix) else {
            throw ImportError.Problem.malformed(
                reason: "its weights are in \(name.debugDescription), expected a path that starts with \(prefix)")
        }
        let url = try Self.file(
            String(name.dropFirst(prefix.count)), from: model.deletingLastPathComponent(), within: folder)
        return try MappedFile(contentsOf: url)
    }

    /// Returns a file in the model's folder.
    private static func file(_ name: String, from start: URL, within folder: URL) throws -> URL {
        guard let url = referencedFile(name, from: start, within: folder) else {
            throw ImportError.Problem.malformed(
                reason: "it refers to the file \(name.debugDescription), expected a file in the model's folder")
        }
        return url
    }
}
