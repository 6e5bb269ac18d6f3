import Foundation
import TestSupport
import Testing

@testable import ImprintCore

@Suite struct FileLockTests {
    @Test("A folder and a file have one owner at a time, and other owners after it") func exclusion() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key")
            try Data().write(to: file)
            // A file that cannot be written can be locked too.
            try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: file.path)
            let locks: [() throws -> FileLock?] = [{ try FileLock(folder: folder) }, { try FileLock(file: file) }]
            for lock in locks {
                var owner = try lock()
                let hasOtherOwner = try lock() != nil
                #expect(!hasOtherOwner)
                withExtendedLifetime(owner) {}
                owner = nil
                let hasNextOwner = try lock() != nil
                #expect(hasNextOwner)
            }
        }
    }

    @Test("A file or folder that does not exist is an error that names it") func missing() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "missing")
            let error = FileError.cannotRead(file.path, errno: ENOENT)
            #expect(throws: error) { _ = try FileLock(folder: file) }
            #expect(throws: error) { _ = try FileLock(file: file) }
        }
    }

    #if os(Linux)
        @Test("A lock that the system refuses is an error and not another owner, unless the lock is optional")
        func refused() throws {
            // The system does not lock a descriptor that only names a file: O_PATH, which Swift does not import.
            func descriptor() -> Int32 { open("/", 0o10000000 | O_CLOEXEC) }
            let error = #expect(throws: FileError.self) { _ = try FileLock(closing: descriptor(), "/data/key.pem") }
            #expect(error?.description.hasPrefix("/data/key.pem: cannot be written (it cannot be locked: ") == true)
            let isLocked = try FileLock(closing: descriptor(), "/data/run", isOptional: true) != nil
            #expect(isLocked)
        }
    #endif
}
