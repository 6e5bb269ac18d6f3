package import Foundation

/// The state of an output folder before a run writes to it.
///
/// A hidden JSON file, the stamp, contains the settings of the run that created the files of the folder. A later run with the same settings
/// may continue there, and no run overwrites the files of others.
package enum StampedFolder<Stamp: Codable> {
    /// The folder was missing or empty, apart from temporary files of `AtomicFile`; now it has a stamp.
    case new
    /// The folder has the stamp of an earlier run; nil if it cannot be decoded.
    case stamped(Stamp?)
    /// The folder has no stamp, but other entries, such as `entry`.
    case foreign(entry: String)

    /// Creates the folder if it is missing, and its stamp if the folder is empty.
    /// - Parameters:
    ///   - folder: The output folder.
    ///   - stamp: The settings of this run.
    ///   - name: The name of the file with the stamp.
    /// - Throws: `FileError` if the folder cannot be created or read, or if the stamp cannot be written.
    package init(claiming folder: URL, for stamp: Stamp, named name: String) throws {
        try AtomicFile.makeFolder(folder)
        let file = folder.appending(path: name)
        if let data = try? Data(contentsOf: file) {
            self = .stamped(try? JSONDecoder().decode(Stamp.self, from: data))
            return
        }
        // A process that was killed while it wrote the stamp leaves a temporary file.
        if let entry = try entries(of: folder).filter({ !AtomicFile.isTemporary($0) }).min() {
            self = .foreign(entry: entry)
            return
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        let bytes = Array(try encoder.encode(stamp))
        guard try AtomicFile.create(file, { try $0.write(bytes) }) else {
            // Another run has claimed the folder meanwhile.
            self = .stamped(try? JSONDecoder().decode(Stamp.self, from: Data(contentsOf: file)))
            return
        }
        self = .new
    }
}

/// Returns the names of all entries of a folder, including hidden ones; names that are not UTF-8 are escaped.
private func entries(of folder: URL) throws(FileError) -> [String] {
    let path = folder.path
    let descriptor = retryingInterrupts { open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard descriptor >= 0 else { throw .cannotRead(path, errno: errno) }
    let names: [[UInt8]]
    do {
        names = try entryNames(closing: descriptor)
    } catch {
        throw .cannotRead(path, errno: error.code)
    }
    return names.map { String(validating: $0, as: UTF8.self) ?? escapedName($0) }
}
