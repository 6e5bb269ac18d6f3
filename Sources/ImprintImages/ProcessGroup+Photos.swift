package import Foundation
internal import ImprintCore

extension ProcessGroup? {
    /// Returns the results of reading photos that every process reads, with an error for each photo that another process cannot read.
    ///
    /// All processes then continue with the same photos, or find that too few are readable. Returns the same results for a single process.
    /// - Parameters:
    ///   - results: The results of this process.
    ///   - files: The file of each result.
    package func sharingFailures<Value>(
        _ results: [Result<Value, ImageError>], of files: [URL]
    ) -> [Result<Value, ImageError>] {
        guard let processes = self else { return results }
        func isFailure(_ result: Result<Value, ImageError>) -> Bool {
            if case .failure = result { return true }
            return false
        }
        let all = processes.allGather(results.map { isFailure($0) ? 1 : 0 })
        return results.enumerated().map { index, result in
            guard !isFailure(result), all.contains(where: { $0[index] != 0 }) else { return result }
            return .failure(.unreadableInAnotherProcess(files[index]))
        }
    }
}
