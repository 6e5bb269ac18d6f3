package import Foundation
internal import ImprintCore

/// The folder `NAME.partial`, in which a base model is downloaded and converted before it is installed.
///
/// After an installation that failed or was killed, it holds at most a download that can be resumed: `download.partial` and its record
/// `download.json`. The next installation removes other files that a killed process left.
package struct BaseStaging: Sendable {
    private static let resumableFiles = ["download.partial", "download.json"]

    private let bases: BaseModels
    private let name: String
    /// The folder.
    package let folder: URL
    /// The new model file.
    package var model: URL { folder.appending(path: "model.imprint") }

    /// Describes the folder of a base model; use it only while the folder of base models is locked.
    package init(_ bases: BaseModels, _ name: String) {
        self.bases = bases
        self.name = name
        folder = bases.folder.appending(path: name + ".partial")
    }

    /// The number of bytes of an interrupted download that can be resumed, or nil if there is none.
    package var resumableByteCount: Int? {
        let sizes = Self.resumableFiles.map { name in
            (try? FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path))?[.size] as? Int
        }
        guard let count = sizes[0], count > 0, sizes[1] != nil else { return nil }
        return count
    }

    /// Creates the folder, and removes leftovers of killed installations, except a resumable download.
    package func prepare() throws {
        try bases.removeLeftovers(of: name)
        try removeTemporaryFiles()
        try AtomicFile.makeFolder(folder)
    }

    /// Removes all files except a download that can be resumed; without one, removes the folder.
    package func removeTemporaryFiles() throws {
        guard resumableByteCount != nil else { return try removeAll() }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        for name in names where !Self.resumableFiles.contains(name) {
            try bases.removeFile(folder.appending(path: name))
        }
    }

    /// Removes the folder.
    package func removeAll() throws { try bases.removeFile(folder) }

    /// Installs the new model file with its record, and removes this folder and the old model file.
    ///
    /// Both files are complete and flushed before the first one is renamed. The rename of the record commits the installation: the new model
    /// file has its own name, so the old record has its old model file until then.
    package func install(_ record: BaseRecord) throws -> InstalledBase {
        let record = record.describing(try FileDigest.sha256(of: model))
        let recordFile = folder.appending(path: "record.json")
        try AtomicFile.write(try record.encoded(), to: recordFile)
        let file = bases.folder.appending(path: record.modelFile)
        for (source, target) in [(model, file), (recordFile, bases.recordFile(name))] {
            guard rename(source.path, target.path) == 0 else {
                let error = FileError.cannotWrite(target.path, errno: errno)
                try? bases.removeLeftovers(of: name)
                throw error
            }
            try AtomicFile.flushNames(in: bases.folder.path, shownAs: bases.folder.path)
        }
        // The base model is installed. If a file cannot be removed, the next installation or removal tries again.
        try? bases.removeLeftovers(of: name)
        try? removeAll()
        return InstalledBase(name: name, file: file, record: record, problem: nil)
    }
}
