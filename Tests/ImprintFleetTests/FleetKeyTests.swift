import Crypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ImprintFleet

@Suite struct FleetKeyTests {
    @Test("A key file is created once, only for its user, with the public key beside it") func creation() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "device.pem")
            let key = try FleetKey(creatingIfMissing: file)
            let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            #expect(try FleetKey(creatingIfMissing: file).publicPEM == key.publicPEM)
            let line = try String(contentsOf: file.appendingPathExtension("pub"), encoding: .utf8)
            #expect(
                line == key.openSSHPublicKey
                    && line.hasPrefix("ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhB"))
        }
    }

    @Test("Tasks that create a key at the same time get the same key", arguments: 0..<20)
    func simultaneousCreation(_: Int) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "imprint-key-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "device.pem")
        // The lock file of a process that was killed.
        try Data().write(to: folder.appending(path: "device.pem.lock"))
        let keys = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<16 { group.addTask { try FleetKey(creatingIfMissing: file).publicPEM } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        let stored = try FleetKey(contentsOf: file)
        #expect(keys == [stored.publicPEM])
        let line = try String(contentsOf: file.appendingPathExtension("pub"), encoding: .utf8)
        #expect(line == stored.openSSHPublicKey)
        #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == [
                "device.pem", "device.pem.pub",
            ])
    }

    @Test("The next write of a key or its state removes the temporary file of a killed process")
    func leftOver() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "device.pem")
            for name in ["device.pem.partial", "device.pem.pub.partial", "device.pem.state.partial"] {
                try Data("left".utf8).write(to: folder.appending(path: name))
            }
            _ = try FleetKey(creatingIfMissing: file)
            #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
            try FleetStateFile(key: file).write(FleetState())
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == [
                    "device.pem", "device.pem.pub", "device.pem.state",
                ])
        }
    }

    @Test("Signatures are ECDSA with SHA-256, on P-256 and P-384") func signatures() throws {
        try withTemporaryFolder { folder in
            let message = FleetConnection.timestamp(Date(timeIntervalSince1970: 1_790_000_000.25))
            #expect(message == "2026-09-21T14:13:20.250+00:00")
            let digest = SHA256.hash(data: Data(message.utf8))
            let p256 = P256.Signing.PrivateKey()
            let file = folder.appending(path: "p256.pem")
            try Data(p256.pemRepresentation.utf8).write(to: file)
            let signature = try FleetKey(contentsOf: file).signature(for: message)
            #expect(
                p256.publicKey.isValidSignature(
                    try P256.Signing.ECDSASignature(derRepresentation: signature), for: digest))
            let key = FleetKey()
            let p384 = try P384.Signing.PublicKey(pemRepresentation: key.publicPEM)
            #expect(
                p384.isValidSignature(
                    try P384.Signing.ECDSASignature(derRepresentation: key.signature(for: message)), for: digest))
        }
    }

    @Test(
        "A file without a usable key is rejected",
        arguments: [
            "", "not a key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            P521.Signing.PrivateKey().pemRepresentation, P384.Signing.PrivateKey().publicKey.pemRepresentation,
            // On secp256k1, whose keys have the length of those on P-256.
            """
            -----BEGIN PRIVATE KEY-----
            MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQg4cDNHUMaa7xNX9G3Pg1n
            9fH2eQZtPxKYeRglN1uNHKyhRANCAATuhiMoEFPwRiuZmQWmGpObWqBbldCLnJtf
            4Fx0NxRtkIP2Im2oecZz1RLR/6SdjcgD7L0OuGA9b89aIRo3spO/
            -----END PRIVATE KEY-----
            """,
            // On brainpoolP384r1, whose keys have the length of those on P-384.
            """
            -----BEGIN PRIVATE KEY-----
            MIG6AgEAMBQGByqGSM49AgEGCSskAwMCCAEBCwSBnjCBmwIBAQQwEy3KvXZqjPJK
            dmj6Vzt/thrAgqjWjXDsirjXvZu2z0dHRnkhc9lF8JIET2ROSiShoWQDYgAEGZkZ
            qiB4RlOgQcppDYwJPsEG9U0gDY4arhFzFFnI/+qKh9Pk9t3qDOlJfubU84N3eegS
            GTsg6T+E4XaIgeZsnmfYVeRbaOjJ4xEaYPwjgJQVJ65nful73HiWrGIQFWCm
            -----END PRIVATE KEY-----
            """,
        ])
    func invalid(content: String) throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            try Data(content.utf8).write(to: file)
            let error = #expect(throws: FleetError.self) { try FleetKey(contentsOf: file) }
            guard case .invalidKey(file.path, _) = error else {
                Issue.record("\(String(describing: error))")
                return
            }
        }
    }

    @Test("A key without the end of its block is an error about the incomplete block") func truncated() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            let lines = P384.Signing.PrivateKey().pemRepresentation.split(separator: "\n")
            try Data(lines.dropLast().joined(separator: "\n").utf8).write(to: file)
            let expected = FleetError.invalidKey(
                path: file.path,
                reason: "the block \"PRIVATE KEY\" is incomplete: it has no END line. Copy the file again")
            #expect(throws: expected) { try FleetKey(contentsOf: file) }
        }
    }

    @Test("A key file that is a device is an error before it is read") func device() throws {
        // Stands for /dev/zero, which would fill the memory if it were read.
        let error = #expect(throws: (any Error).self) { try FleetKey(contentsOf: URL(filePath: "/dev/null")) }
        let text = "\(try #require(error))"
        #expect(text.hasPrefix("/dev/null: cannot be read (it is a device, expected a regular file"))
    }

    @Test("Only one client at a time uses a key") func lock() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            _ = try FleetKey(creatingIfMissing: file)
            let first = try FleetStateFile(key: file)
            #expect(throws: FleetError.keyInUse(path: file.path)) { _ = try FleetStateFile(key: file) }
            var state = FleetState()
            (state.node, state.squaredLoss) = (.max, 3)
            try first.write(state)
            #expect(try first.read() == state)
            let path = file.path + ".state"
            #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
            try Data("{".utf8).write(to: URL(filePath: path))
            #expect(throws: FleetError.damagedState(path: path)) { _ = try first.read() }
        }
    }

    @Test("A state that cannot be read, or is newer, is neither damaged nor a new state")
    func unreadableState() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            _ = try FleetKey(creatingIfMissing: file)
            let state = try FleetStateFile(key: file)
            #expect(try state.read() == FleetState())
            let path = file.path + ".state"
            try Data(#"{"format": 2, "budget": 3}"#.utf8).write(to: URL(filePath: path))
            let newer = FleetError.newerState(path: path, found: 2, newest: 1)
            #expect(throws: newer) { _ = try state.read() }
            #expect(newer.description.contains("needs a newer version of Imprint"))
            // The system cannot follow a link to itself, and a folder cannot be read.
            for destination in [path, folder.path] {
                #expect(unlink(path) == 0)
                try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: destination)
                let error = #expect(throws: (any Error).self) { _ = try state.read() }
                let text = "\(try #require(error))"
                #expect(text.hasPrefix("\(path): cannot be read ("))
            }
            #expect(unlink(path) == 0)
            for content in ["{", #"{"format": 0}"#, #"{"format":1,"server":"","node":1,"squaredLoss":-1}"#] {
                try Data(content.utf8).write(to: URL(filePath: path))
                #expect(throws: FleetError.damagedState(path: path)) { _ = try state.read() }
            }
            // Without the file, the privacy loss of earlier answers is lost, so the message does not advise deleting it.
            let advice = FleetError.damagedState(path: path).description
            #expect(advice.contains("Restore the file from a backup.") && !advice.lowercased().contains("delete"))
        }
    }

    @Test("A client that finds its key in use does not close a file of another thread") func closing() throws {
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "key.pem")
            _ = try FleetKey(creatingIfMissing: file)
            let first = try FleetStateFile(key: file)
            let closed = Mutex(0)
            DispatchQueue.concurrentPerform(iterations: 2) { index in
                for _ in 0..<20_000 {
                    if index == 0 {
                        _ = try? FleetStateFile(key: file)
                    } else if close(open("/dev/null", O_RDONLY | O_CLOEXEC)) != 0 {
                        closed.withLock { $0 += 1 }
                    }
                }
            }
            #expect(closed.withLock { $0 } == 0)
            withExtendedLifetime(first) {}
        }
    }
}
