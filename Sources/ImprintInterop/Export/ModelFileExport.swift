internal import Foundation
internal import ImprintCore
internal import ImprintModel

extension ModelFile {
    /// Checks the model, encodes it as a protobuf message and writes that atomically to `url`.
    ///
    /// - Throws: `ExportError`, `ModelFileError` or `FileError`.
    func writeExport(to url: URL, _ make: () throws -> MessageBuilder) throws {
        do {
            try checkFit(network, labels, preprocessing, head)
            for entry in parameters.layout.entries { try checkFinite(entry, of: parameters) }
            let message = try make()
            guard message.byteCount <= Int32.max else {
                throw ExportError.Problem.tooLarge(byteCount: message.byteCount)
            }
            try AtomicFile.write(to: url) { output in try message.write { try output.write($0) } }
        } catch let problem as ExportError.Problem {
            throw ExportError(path: url.path, problem: problem)
        } catch let problem as ModelFileError.Problem {
            throw ModelFileError(path: url.path, problem: problem)
        }
    }
}
