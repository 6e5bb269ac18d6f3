internal import Foundation
internal import ImprintCore
internal import ImprintModel

/// The files in a folder on the disk.
struct Disk: StoreFiles {
    let folder: URL

    /// Creates the folder if it does not exist.
    init(_ folder: URL) throws {
        self.folder = folder
        // If a power cut loses the name of a folder, its content is lost too, so the names of new folders are flushed.
        var missing: [URL] = []
        var ancestor = folder.standardizedFileURL
        while !FileManager.default.fileExists(atPath: ancestor.path), ancestor.path != "/" {
            missing.append(ancestor)
            ancestor.deleteLastPathComponent()
        }
        try AtomicFile.makeFolder(folder)
        for created in missing {
            try AtomicFile.flushNames(in: created.deletingLastPathComponent().path, shownAs: created.path)
        }
    }

    func path(of name: String) -> String { folder.appending(path: name).path }

    func names() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: folder.path) }

    func size(of name: String) throws -> Int? {
        var status = stat()
        guard lstat(path(of: name), &status) == 0 else {
            if errno == ENOENT { return nil }
            throw FileError.cannotRead(path(of: name), errno: errno)
        }
        return Int(status.st_size)
    }

    func read(_ name: String, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        try RegularFile(path(of: name)).read(body)
    }

    func mapped(_ name: String) throws -> Data {
        do {
            return try Data(contentsOf: folder.appending(path: name), options: .alwaysMapped)
        } catch {
            throw FileError.cannotRead(path: path(of: name), reason: reason(of: error))
        }
    }

    func modelFile(_ name: String) throws -> ModelFile { try ModelFile(contentsOf: folder.appending(path: name)) }

    func append(_ bytes: Data, to name: String) throws {
        let path = path(of: name)
        let descriptor = retryingInterrupts {
            open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o644)
        }
        guard descriptor >= 0 else { throw FileError.cannotWrite(path, errno: errno) }
        defer { close(descriptor) }
        try bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let chunk = UnsafeRawBufferPointer(rebasing: rest)
                let written = retryingInterrupts { write(descriptor, chunk.baseAddress, chunk.count) }
                if written < 0 { throw FileError.cannotWrite(path, errno: errno) }
                rest = rest.dropFirst(written)
            }
        }
    }

    func flush(_ name: String) throws {
        let path = path(of: name)
        let descriptor = retryingInterrupts { open(path, O_RDONLY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileError.cannotWrite(path, errno: errno) }
        defer { close(descriptor) }
        if retryingInterrupts({ fsync(descriptor) }) != 0 { throw FileError.cannotWrite(path, errno: errno) }
    }

    func rename(_ name: String, to other: String) throws {
        if Foundation.rename(path(of: name), path(of: other)) != 0 {
            throw FileError.cannotWrite(path(of: other), errno: errno)
        }
    }

    func remove(_ name: String) throws {
        if unlink(path(of: name)) != 0 && errno != ENOENT { throw FileError.cannotWrite(path(of: name), errno: errno) }
    }

    func flushNames() throws { try AtomicFile.flushNames(in: folder.path, shownAs: folder.path) }

    func lock(_ name: String) throws -> StoreLock? {
        let path = path(of: name)
        let descriptor = retryingInterrupts { open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644) }
        guard descriptor >= 0 else { throw FileError.cannotWrite(path, errno: errno) }
        return try FileLock(closing: descriptor, path)
    }
}

extension FileLock: StoreLock {}
