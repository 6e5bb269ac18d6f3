internal import Foundation

extension WeightsFile {
    /// Checks the model, makes a message of it and writes that at `url`, as `AtomicFile` does.
    /// - Throws: `ExportError`, `WeightsFileError` or `FileError`.
    func writeExport(to url: URL, _ make: () throws -> WrittenMessage) throws {
        do {
            guard spotting == nil else { throw ExportError.Problem.spotting }
            try checkFit(network, labels, preprocessing, spotting)
            for entry in parameters.layout.entries { try checkFinite(entry, of: parameters) }
            let message = try make()
            guard message.byteCount <= Int32.max else {
                throw ExportError.Problem.tooLarge(byteCount: message.byteCount)
            }
            try AtomicFile.write(to: url) { output in try message.write { try output.write($0) } }
        } catch let problem as ExportError.Problem {
            throw ExportError(path: url.path, problem: problem)
        } catch let problem as WeightsFileError.Problem {
            throw WeightsFileError(path: url.path, problem: problem)
        }
    }
}
