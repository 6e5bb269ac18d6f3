internal import ArgumentParser
internal import Foundation
internal import ImprintCore
internal import ImprintImages
internal import ImprintInterop
internal import ImprintModel

/// A file that a subcommand writes to a path that the user chooses.
struct OutputFile {
    let option: String
    let path: String
    let kind: OutputKind
    /// The option that would write the format of the extension, such as "--to coreml"; nil without such an option.
    var alternative: String?
}

/// Checks, before a subcommand starts, that its outputs do not replace files of the user.
///
/// An output may not replace an input of the subcommand. It may replace another existing file only if Imprint wrote that file as a file
/// of the same kind (`OutputKind.canReplace`). The extension of its name may not belong to another format (`OutputKind.otherFormat`).
///
/// - Parameters:
///   - outputs: The files to write.
///   - inputs: The files that the subcommand reads, each with its role in the message, such as "the model".
/// - Throws: `ValidationError` that names the option and the file.
func checkOutputs(_ outputs: [OutputFile], inputs: [(role: String, path: String)] = []) throws {
    let roles = Dictionary(inputs.map { (resolvedPath($0.path), $0.role) }) { first, _ in first }
    for (index, output) in outputs.enumerated() {
        try requireOutputPath(output.path, output.option)
        let path = resolvedPath(output.path)
        func refusal(_ found: String) -> ValidationError {
            ValidationError("\(output.option): \(output.path): \(found). Choose another name.")
        }
        if output.path.hasSuffix("/") { throw refusal("the path ends in \"/\", expected a file name") }
        if FileStatus(URL(filePath: output.path))?.isFolder == true {
            throw refusal("the path is a folder, expected a file name")
        }
        if let role = roles[path] { throw refusal("the file is \(role), which would be replaced") }
        if let other = outputs[..<index].first(where: { resolvedPath($0.path) == path }) {
            throw refusal("\(other.option) names the same file, expected two files")
        }
        if !output.kind.canReplace(URL(filePath: output.path)) {
            if let reason = readingProblem(output.path) {
                throw refusal("the file exists and cannot be read (\(reason)), so it is not replaced")
            }
            throw refusal(
                "the file exists and is not \(output.kind.withArticle) that Imprint wrote, so it is not replaced")
        }
        if let format = output.kind.otherFormat(ofExtensionIn: output.path) {
            throw ValidationError(
                "\(output.option): \(output.path): the extension is that of \(format), expected \(output.kind.withArticle). "
                    + "Choose a name that ends in .\(output.kind.fileExtensions[0])\(output.alternative.map { ", or \($0)" } ?? "")."
            )
        }
    }
}

/// Returns the reason why a file cannot be read; nil if it can.
private func readingProblem(_ path: String) -> String? {
    do throws(FileError) {
        _ = try RegularFile(path)
        return nil
    } catch {
        guard case .cannotRead(_, let reason) = error else { return nil }
        return reason
    }
}

/// Checks that an output folder is not a file.
func requireNoFile(_ path: String, _ option: String) throws {
    if let status = FileStatus(URL(filePath: path)), !status.isFolder {
        throw ValidationError("\(option): \(path) is a file, expected a folder name. Choose another name.")
    }
}

/// How far a long job came, which decides the existing files that its result replaces.
enum Completion {
    /// The job is complete: its result replaces a file of the same kind that Imprint wrote.
    case complete
    /// The result replaces only an earlier state of the same job, which the closure recognizes; the text describes the job in a warning.
    case ownFilesOnly(job: String, isEarlierState: (URL) -> Bool)

    /// Whether the result replaces a file of its kind that Imprint wrote.
    func replaces(_ file: URL) -> Bool {
        switch self {
        case .complete: true
        case .ownFilesOnly(_, let isEarlierState): isEarlierState(file)
        }
    }
}

/// Returns the path to write a file to after a long job: the chosen path, or a free path beside it.
///
/// The path is beside the chosen one if another file appeared there in the meantime, or if a job that replaces only its own files would replace
/// the result of another one.
func vacantPath(_ path: String, _ kind: OutputKind, completion: Completion = .complete) -> String {
    let url = URL(filePath: path)
    let isForeign = !kind.canReplace(url)
    // An empty file, which `wrote` does not recognize, is free.
    if !isForeign, !kind.wrote(url) || completion.replaces(url) { return path }
    let (stem, suffix) = (url.deletingPathExtension().path, url.pathExtension.isEmpty ? "" : "." + url.pathExtension)
    let candidates = (2...).lazy.map { "\(stem)-\($0)\(suffix)" }
    let vacant =
        candidates.first { candidate in
            guard FileManager.default.fileExists(atPath: candidate) else { return true }
            guard case .ownFilesOnly(_, let isEarlierState) = completion else { return false }
            return isEarlierState(URL(filePath: candidate))
        } ?? path
    if !isForeign, case .ownFilesOnly(let job, _) = completion {
        Terminal.warn(
            "\(path): contains \(kind.withArticle), which \(job) does not replace; writing to \(vacant) instead.")
    } else {
        Terminal.warn(
            "\(path): now contains a file that Imprint did not write as \(kind.withArticle); writing to \(vacant) instead."
        )
    }
    return vacant
}

/// The file with the result of a long job.
struct WrittenResult<Value> {
    /// The path of the file.
    let path: String
    /// The value that the writing closure returned.
    let value: Value
    /// Whether the file could not be written to the chosen path, so that it is in another folder and the exit code is 1.
    var isElsewhere = false
}

/// Writes the result of a long job to the chosen path, or to a free path beside it (`vacantPath`).
///
/// If that fails, for example because the disk is full, it writes the file to a new folder in the temporary folder or in the home folder, and reports
/// the error and the path, so that the work is not lost.
/// - Parameter write: Writes the file; called again for each path.
/// - Throws: The error for the chosen path, if the file cannot be written to the other folders either.
func writeResult<Value>(
    to chosenPath: String, _ kind: OutputKind, completion: Completion = .complete, _ write: (URL) throws -> Value
) throws -> WrittenResult<Value> {
    let path = vacantPath(chosenPath, kind, completion: completion)
    do {
        return WrittenResult(path: path, value: try write(URL(filePath: path)))
    } catch let error as FileError {
        // A file that is not confirmed was written.
        if case .notConfirmed = error { throw error }
        let name = URL(filePath: path).lastPathComponent
        for parent in [FileManager.default.temporaryDirectory, FileManager.default.homeDirectoryForCurrentUser] {
            // A new folder, so that the file replaces no other file, and no link in the folder of all users is followed.
            let folder = parent.appending(path: "imprint-\(UUID().uuidString)", directoryHint: .isDirectory)
            let file = folder.appending(path: name, directoryHint: .notDirectory)
            do {
                try AtomicFile.makeFolder(folder)
                let value = try write(file)
                Terminal.fail(
                    "Error: \("\(error)".sentence) The result is in \(file.path) instead; move it to another folder.")
                return WrittenResult(path: file.path, value: value, isElsewhere: true)
            } catch {
                try? FileManager.default.removeItem(at: folder)
            }
        }
        throw error
    }
}

/// Returns the path with symbolic links resolved, so that two paths to one file are equal.
func resolvedPath(_ path: String) -> String {
    URL(filePath: path).resolvingSymlinksInPath().standardizedFileURL.path
}

/// Checks the path of `--contact-sheet` like any output path, and checks its file name extension.
func checkContactSheet(_ path: String, inputs: [(role: String, path: String)] = []) throws {
    try checkOutputs([OutputFile(option: "--contact-sheet", path: path, kind: .contactSheet)], inputs: inputs)
    let extensions = OutputKind.contactSheet.fileExtensions
    guard extensions.contains(URL(filePath: path).pathExtension.lowercased()) else {
        let names = extensions.map { ".\($0)" }
        throw ValidationError(
            "--contact-sheet: \(path): the image format is not supported, expected a name that ends in "
                + "\(names.dropLast().joined(separator: ", ")) or \(names.last ?? "").")
    }
}

/// Writes an image with a signature, by which Imprint recognizes it later.
func writeImage(_ image: RasterImage, to path: String, signature: ImageSignature) throws {
    let url = URL(filePath: path)
    try AtomicFile.write(try signature.encode(image, for: url), to: url)
}
